/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/cmd.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *argp_program_version = "uroce " UROCE_VERSION;

static const struct {
	const char *name, *full_name;
	int (*go)(int argc, char **argv);
} commands[] = {
	{ "run", "uroce run", uroce_run },          { "status", "uroce status", uroce_status },
	{ "doctor", "uroce doctor", uroce_doctor }, { "stop", "uroce stop", uroce_stop },
	{ "fault", "uroce fault", uroce_fault },    { "device", "uroce device", uroce_device },
};

struct main_args {
	int command; /* index into commands */
	int argc;
	char **argv;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct main_args *a = state->input;

	if (key == ARGP_KEY_NO_ARGS)
		argp_error(state, "a command is missing");
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	for (unsigned i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(arg, commands[i].name))
			a->command = (int)i;
	if (a->command < 0)
		argp_error(state, "there is no command %s", arg);
	/* What follows the command is the command's to read. */
	a->argc = state->argc - state->next + 1;
	a->argv = state->argv + state->next - 1;
	state->next = state->argc;
	return 0;
}

static const struct argp main_argp = {
	.parser = parse,
	.args_doc = "COMMAND [ARG...]",
	.doc = "RDMA devices in software, for programs that use libibverbs.\v"
	       "Commands:\n"
	       "  run [-d DEVICE] -- PROGRAM   run PROGRAM with the devices visible to it\n"
	       "  status [--json]              show devices, clients and queue pairs\n"
	       "  doctor [--json]              check what can keep a device from showing up\n"
	       "  device add|del|set|show      devices that come and go, ports up and down\n"
	       "  fault set|show|clear         lose, delay or damage packets on purpose\n"
	       "  stop                         stop the daemon\n"
	       "\n"
	       "The daemon lives in $UROCE_RUN_DIR, else /run/uroce for root, else "
	       "$XDG_RUNTIME_DIR/uroce, else /tmp/uroce-UID; --run-dir DIR names another place. "
	       "`uroce COMMAND --help` says more.",
};

int main(int argc, char **argv)
{
	struct main_args args = { .command = -1 };

	argp_err_exit_status = UROCE_EXIT_USAGE;
	if (argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &args) || args.command < 0)
		return UROCE_EXIT_USAGE;
	/* argp names the program after argv[0] in its messages. */
	args.argv[0] = (char *)commands[args.command].full_name;
	return commands[args.command].go(args.argc, args.argv);
}
