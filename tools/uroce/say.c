/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(const char *fmt, va_list ap)
{
	char line[2048];

	/* One write, so that two programs' sentences do not mix. */
	vsnprintf(line, sizeof(line), fmt, ap);
	fprintf(stderr, "uroce: %s\n", line);
}

void say_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void say_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void say_no_daemon(const char *run_dir, int err)
{
	switch (-err) {
	case ENOENT:
	case ECONNREFUSED:
		say_error("no daemon runs in %s. Start one with `uroce run -- PROGRAM`, or with "
			  "`uroced --run-dir %s`.",
			  run_dir, run_dir);
		break;
	case EACCES:
	case EPERM:
		say_error("the daemon in %s belongs to another user, who does not let you in. "
			  "Leave out --run-dir (and UROCE_RUN_DIR) to use your own daemon.",
			  run_dir);
		break;
	case EPROTO:
		say_error("the daemon in %s is of another version than this command. Stop it with "
			  "`uroce stop --run-dir %s` and try again; programs that use it lose "
			  "their device.",
			  run_dir, run_dir);
		break;
	case EAGAIN:
	case ETIMEDOUT:
		say_error("the daemon in %s accepts connections but does not answer. See "
			  "%s/uroced.log; `uroce stop --run-dir %s` ends it.",
			  run_dir, run_dir, run_dir);
		break;
	default:
		say_error("the daemon in %s cannot be asked: %s.", run_dir, strerror(-err));
	}
}
