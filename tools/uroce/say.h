/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences for people, on stderr: what happened, what it means, what to do; each said once. */
#pragma once

#define SAY_FMT __attribute__((format(printf, 1, 2)))

void say_error(const char *fmt, ...) SAY_FMT;
void say_note(const char *fmt, ...) SAY_FMT;

/* Why run_dir has no daemon to talk to: err as uroce_client_connect returned it. */
void say_no_daemon(const char *run_dir, int err);
