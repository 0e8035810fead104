/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/config.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/abi/abi.h"
#include "dataplane/daemon/config_file.h"

enum {
	OPT_RUN_DIR = 256,
	OPT_CONFIG,
	OPT_DEVICES,
	OPT_DEVICE,
	OPT_WORKERS,
	OPT_READY_FD,
	OPT_LOG_LEVEL,
	OPT_CHECK_ICRC
};

/* The command line is read twice: for --config first, so that other options go before the file. */
struct command_line {
	struct config *c;
	const char *file;
	bool is_first_pass;
	unsigned n_switch; /* --devices */
	unsigned n_others; /* --device */
	struct config_device other[CONFIG_MAX_DEVICES];
};

static const struct argp_option options[] = {
	{ "run-dir", OPT_RUN_DIR, "DIR", 0,
	  "Directory of the control socket and the class tree "
	  "(default: $UROCE_RUN_DIR, /run/uroce, $XDG_RUNTIME_DIR/uroce or /tmp/uroce-UID)",
	  0 },
	{ "config", OPT_CONFIG, "FILE", 0,
	  "Read this file (default: " CONFIG_FILE ", if there is one)", 0 },
	{ "devices", OPT_DEVICES, "N", 0,
	  "How many devices on the embedded switch (1 to 16; default 2 if no other is named)", 0 },
	{ "device", OPT_DEVICE, "KEY=VALUE,...", 0,
	  "One more device: name=NAME, link=switch|udp|packet|dpdk, addr=ADDRESS, interface=NAME, "
	  "mtu=BYTES, vlan=ID, congestion=off|dcqcn, devargs=...",
	  0 },
	{ "workers", OPT_WORKERS, "N", 0, "How many worker threads run them (1 to 16, default 1)",
	  0 },
	{ "ready-fd", OPT_READY_FD, "FD", 0, "Write one byte to FD once clients can connect", 0 },
	{ "log-level", OPT_LOG_LEVEL, "LEVEL", 0, "error, warning (default), info or debug", 0 },
	{ "check-icrc", OPT_CHECK_ICRC, "on|off", 0,
	  "Verify the ICRC of packets that come in, where they have one (default on)", 0 },
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

static void add_device(struct argp_state *state, struct command_line *line, const char *text)
{
	struct config_error e;

	if (line->n_others == CONFIG_MAX_DEVICES)
		argp_error(state, "more than %u devices", CONFIG_MAX_DEVICES);
	else if (config_device_parse(&line->other[line->n_others], text, &e))
		argp_error(state, "--device %s: %s", text, e.text);
	else
		line->n_others++;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;
	struct config *c = line->c;
	int level;

	if (line->is_first_pass && key != OPT_CONFIG)
		return 0;
	switch (key) {
	case OPT_CONFIG:
		line->file = arg;
		return 0;
	case OPT_DEVICE:
		add_device(state, line, arg);
		return 0;
	case OPT_RUN_DIR:
		if (!*arg)
			argp_error(state, "--run-dir: empty name");
		c->run_dir = arg;
		return 0;
	case OPT_DEVICES:
		line->n_switch = number(state, "devices", arg, 1, CONFIG_MAX_DEVICES);
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

/* What is wrong with a file or with all together; ends the program. */
__attribute__((noreturn)) static void wrong(const char *text)
{
	fprintf(stderr, "uroced: %s\n", text);
	exit(2);
}

static void read_file(struct config *c, const char *path)
{
	struct config_error e;
	int err = config_file_read(c, path ? path : CONFIG_FILE, &e);

	if (err && (path || err != -ENOENT))
		wrong(e.text);
}

static void choose_devices(struct config *c, const struct command_line *line)
{
	if (line->n_switch || line->n_others) {
		if (line->n_switch + line->n_others > CONFIG_MAX_DEVICES)
			wrong("more than 16 devices");
		memset(c->device, 0, sizeof(c->device));
		memcpy(c->device + line->n_switch, line->other,
		       line->n_others * sizeof(line->other[0]));
		c->n_devices = line->n_switch + line->n_others;
	} else if (!c->n_devices) {
		c->n_devices = 2;
	}
}

static void check_devices(struct config *c)
{
	struct config_error e;

	for (unsigned i = 0; i < c->n_devices; i++) {
		if (config_device_check(&c->device[i], i, &e))
			wrong(e.text);
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(c->device[k].name, c->device[i].name))
				continue;
			config_fail(&e, "two devices have the name %s", c->device[i].name);
			wrong(e.text);
		}
	}
}

void config_parse(struct config *c, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "The software RDMA NIC: serves the uroce devices to the programs of this "
		       "machine.\vIt stays in the foreground until SIGTERM, SIGINT or "
		       "`uroce stop`.\n\n"
		       "Exit status: 0 clean stop, 1 failure, 2 wrong use, 3 another daemon "
		       "already runs in this directory.",
	};

	struct command_line line = { .c = c, .is_first_pass = true };

	*c = (struct config) {
		.n_workers = 1, .ready_fd = -1, .log_level = LOG_LEVEL_WARNING, .check_icrc = true
	};
	argp_err_exit_status = 2;
	argp_program_version = "uroced " UROCE_VERSION;
	argp_parse(&argp, argc, argv, 0, NULL, &line);
	read_file(c, line.file);
	line.is_first_pass = false;
	argp_parse(&argp, argc, argv, 0, NULL, &line);
	choose_devices(c, &line);
	check_devices(c);
}
