/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/config.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/abi/abi.h"

enum { OPT_RUN_DIR = 256, OPT_DEVICES, OPT_WORKERS, OPT_READY_FD, OPT_LOG_LEVEL, OPT_CHECK_ICRC };

static const struct argp_option options[] = {
	{ "run-dir", OPT_RUN_DIR, "DIR", 0,
	  "Directory of the control socket and the class tree "
	  "(default: $UROCE_RUN_DIR, /run/uroce, $XDG_RUNTIME_DIR/uroce or /tmp/uroce-UID)",
	  0 },
	{ "devices", OPT_DEVICES, "N", 0, "How many devices to make (1 to 16, default 2)", 0 },
	{ "workers", OPT_WORKERS, "N", 0, "How many worker threads run them (1 to 16, default 1)",
	  0 },
	{ "ready-fd", OPT_READY_FD, "FD", 0, "Write one byte to FD once clients can connect", 0 },
	{ "log-level", OPT_LOG_LEVEL, "LEVEL", 0, "error, warning (default), info or debug", 0 },
	{ "check-icrc", OPT_CHECK_ICRC, "on|off", 0,
	  "Verify the ICRC of packets that come in (default on)", 0 },
	{ 0 },
};

static unsigned number(struct argp_state *state, const char *what, const char *text, unsigned min,
		       unsigned max)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || v < min || v > max)
		argp_error(state, "--%s: '%s' is not a number from %u to %u", what, text, min, max);
	return (unsigned)v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;
	int level;

	switch (key) {
	case OPT_RUN_DIR:
		if (!*arg)
			argp_error(state, "--run-dir: empty name");
		c->run_dir = arg;
		return 0;
	case OPT_DEVICES:
		c->n_devices = number(state, "devices", arg, 1, CONFIG_MAX_DEVICES);
		return 0;
	case OPT_WORKERS:
		c->n_workers = number(state, "workers", arg, 1, UROCE_MAX_WORKERS);
		return 0;
	case OPT_READY_FD:
		c->ready_fd = (int)number(state, "ready-fd", arg, 0, INT_MAX);
		if (fcntl(c->ready_fd, F_GETFD) < 0)
			argp_error(state, "--ready-fd: %s is not an open descriptor", arg);
		return 0;
	case OPT_LOG_LEVEL:
		level = log_level_parse(arg);
		if (level < 0)
			argp_error(state, "--log-level: '%s' is not error, warning, info or debug",
				   arg);
		c->log_level = (enum log_level)level;
		return 0;
	case OPT_CHECK_ICRC:
		if (strcmp(arg, "on") && strcmp(arg, "off"))
			argp_error(state, "--check-icrc: '%s' is neither on nor off", arg);
		c->check_icrc = !strcmp(arg, "on");
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void config_parse(struct config *c, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "The software RDMA NIC: serves the uroce devices to the programs of this machine."
		       "\vIt stays in the foreground until SIGTERM, SIGINT or `uroce stop`.\n\n"
		       "Exit status: 0 clean stop, 1 failure, 2 wrong use, 3 another daemon "
		       "already runs in this directory.",
	};

	*c = (struct config) { .n_devices = 2,
			       .n_workers = 1,
			       .ready_fd = -1,
			       .log_level = LOG_LEVEL_WARNING,
			       .check_icrc = true };
	argp_err_exit_status = 2;
	argp_program_version = "uroced " UROCE_VERSION;
	argp_parse(&argp, argc, argv, 0, NULL, c);
}
