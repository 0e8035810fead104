/* SPDX-License-Identifier: BSD-3-Clause */
/* Control-path log: one line to stderr a call. The data path does not log. */
#pragma once

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* The level's number for "error", "warning", "info", "debug"; -1 for another word. */
/* What this thread logged last as an error, for whoever asked for what failed. */
const char *log_last_error(void);
int log_level_parse(const char *name);

__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *fmt, ...);

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
