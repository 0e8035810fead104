/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subcommands of `uroce`, and the exit codes a user can count on. `uroce run` has the codes of
 * env(1) and nohup(1), so that they do not collide with those of the program it becomes.
 */
#pragma once

enum uroce_exit {
	UROCE_EXIT_OK = 0,
	UROCE_EXIT_FAIL = 1,
	UROCE_EXIT_USAGE = 2,
	UROCE_EXIT_RUN_FAILED = 125,
	UROCE_EXIT_CANNOT_EXEC = 126,
	UROCE_EXIT_NOT_FOUND = 127,
};

int uroce_run(int argc, char **argv);
int uroce_status(int argc, char **argv);
int uroce_doctor(int argc, char **argv);
int uroce_stop(int argc, char **argv);
int uroce_fault(int argc, char **argv);
int uroce_device(int argc, char **argv);
