/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level max_level = LOG_LEVEL_WARNING;
static const char *const level_name[] = { "error", "warning", "info", "debug" };
static _Thread_local char last_error[512];
#define N_LEVELS (sizeof(level_name) / sizeof(level_name[0]))

void log_set_level(enum log_level level)
{
	max_level = level;
}

enum log_level log_get_level(void)
{
	return max_level;
}

int log_level_parse(const char *name)
{
	for (unsigned i = 0; i < N_LEVELS; i++)
		if (!strcmp(name, level_name[i]))
			return (int)i;
	return -1;
}

const char *log_last_error(void)
{
	return last_error;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n, m;

	if (level == LOG_LEVEL_ERROR) {
		va_start(ap, fmt);
		vsnprintf(last_error, sizeof(last_error), fmt, ap);
		va_end(ap);
	}
	if (level > max_level)
		return;
	n = snprintf(line, sizeof(line), "uroced: %s%s",
		     level <= LOG_LEVEL_WARNING ? level_name[level] : "",
		     level <= LOG_LEVEL_WARNING ? ": " : "");
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	n += m < 0 ? 0 : m;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	/* A full or closed stderr is no reason to stop. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}
