/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce run: a daemon if there is none, a view of its devices, and then the program itself. */
#include "tools/uroce/cmd.h"

#include "tools/uroce/driver.h"
#include "tools/uroce/launch.h"
#include "tools/uroce/netlink_rule.h"
#include "tools/uroce/rundir.h"
#include "tools/uroce/say.h"
#include "tools/uroce/view.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run_args {
	const char *device, *run_dir;
	char **program;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;

	switch (key) {
	case 'd':
		a->device = arg;
		return 0;
	case 'r':
		a->run_dir = arg;
		return 0;
	case ARGP_KEY_ARGS:
		a->program = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "PROGRAM is missing. For example: uroce run -- ibv_devinfo");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp run_argp = {
	.options =
		(const struct argp_option[]) {
			{ "device", 'd', "DEVICE", 0, "Show the program this device only", 0 },
			{ "run-dir", 'r', "DIR", 0, "The daemon's run directory", 0 },
			{ 0 } },
	.parser = parse,
	.args_doc = "-- PROGRAM [ARG...]",
	.doc = "Runs PROGRAM so that it finds the devices of uroce.\v"
	       "A daemon is started if none answers. PROGRAM takes the place of this command, so "
	       "its exit code, signals and terminal are its own; 125 means that uroce failed "
	       "before, 126 that PROGRAM cannot be executed, 127 that there is none.",
};

/* What a container without the right to make namespaces has to be given from outside. */
static int use_sysfs_path(const struct view *v, const struct view_error *why)
{
	char root[PATH_MAX], missing[1024];
	struct tree t;

	if (snprintf(root, sizeof(root), "%s/sys", v->run_dir) >= PATH_MAX || tree_read(&t, root)) {
		say_error("the daemon's class tree %s/sys cannot be read.", v->run_dir);
		return -ENOENT;
	}
	if (!view_has_nodes(&t, v->device, missing, sizeof(missing))) {
		say_error("the devices cannot be made visible: %s was refused (%s), and without "
			  "that %s must exist. Allow user namespaces (`uroce doctor` says how), or "
			  "mount into this container at /dev/infiniband a directory with symbolic "
			  "links to /dev/null of these names, such as %s/dev.",
			  why->step, strerror(-why->err), missing, v->run_dir);
		return why->err;
	}
	if (v->device && t.n_devs > 1)
		say_note("without namespaces -d cannot hide the other devices; they stay visible.");
	if (netlink_rule_install())
		say_note("RDMA netlink could not be refused (seccomp); if this kernel has ib_core, "
			 "the devices stay hidden.");
	setenv("SYSFS_PATH", root, 1);
	return 0;
}

static int show_devices(const struct view *v)
{
	struct view_error e;

	if (view_is_current(v))
		return 0;
	if (view_try(v, &e))
		return use_sysfs_path(v, &e);
	unsetenv("SYSFS_PATH");
	if (view_enter(v, &e)) {
		say_error("%s worked a moment ago and fails now: %s. Try again.", e.step,
			  strerror(-e.err));
		return e.err;
	}
	return 0;
}

static int check_device(const struct view *v)
{
	char root[PATH_MAX], names[1024];
	struct tree t;

	if (!v->device)
		return 0;
	if (snprintf(root, sizeof(root), "%s/sys", v->run_dir) >= PATH_MAX || tree_read(&t, root)) {
		say_error("the daemon's class tree %s/sys cannot be read.", v->run_dir);
		return -ENOENT;
	}
	if (tree_find(&t, v->device))
		return 0;
	tree_names(&t, names, sizeof(names));
	say_error("the daemon in %s has no device %s; it has %s.", v->run_dir, v->device, names);
	return -ENODEV;
}

/* Mounting /sys/class or /dev anew leaves a working directory in the old one. */
static void reenter_cwd(void)
{
	char cwd[PATH_MAX];

	if (getcwd(cwd, sizeof(cwd)) && cwd[0] == '/' && chdir(cwd))
		say_note("the working directory %s is gone.", cwd);
}

static int become(char **program)
{
	int err;

	execvp(program[0], program);
	err = errno;
	if (err == ENOENT) {
		say_error("%s: there is no such program.", program[0]);
		return UROCE_EXIT_NOT_FOUND;
	}
	say_error("%s cannot be executed: %s.", program[0], strerror(err));
	return UROCE_EXIT_CANNOT_EXEC;
}

int uroce_run(int argc, char **argv)
{
	struct run_args args = { 0 };
	char run_dir[PATH_MAX];
	struct view view;

	argp_err_exit_status = UROCE_EXIT_RUN_FAILED;
	if (argp_parse(&run_argp, argc, argv, ARGP_IN_ORDER, NULL, &args))
		return UROCE_EXIT_RUN_FAILED;
	if (rundir_find(args.run_dir, run_dir) || launch_ensure(run_dir))
		return UROCE_EXIT_RUN_FAILED;
	view = (struct view) { .run_dir = run_dir, .device = args.device };
	driver_name();
	if (check_device(&view) || show_devices(&view))
		return UROCE_EXIT_RUN_FAILED;
	reenter_cwd();
	return become(args.program);
}
