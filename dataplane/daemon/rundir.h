/* SPDX-License-Identifier: BSD-3-Clause */
/* The run directory: where clients find the control socket and the class tree. One daemon owns it.
 */
#pragma once

#include <limits.h>

#define RUNDIR_SOCKET "control.sock"
#define RUNDIR_PID    "uroced.pid"
#define RUNDIR_SYS    "sys"
#define RUNDIR_DEV    "dev" /* nodes of the devices */

struct rundir {
	char path[PATH_MAX]; /* absolute */
	int fd;              /* the directory; holds the lock */
};

/*
 * Which directory: `given` if not NULL, else $UROCE_RUN_DIR, else by who we are. Makes it if need
 * be and refuses one in which somebody else could put files. 0 or a negative errno, logged.
 */
int rundir_open(struct rundir *d, const char *given);

/* Only one daemon in a directory. -EWOULDBLOCK: another has it. */
int rundir_lock(struct rundir *d);

int rundir_write_pid(struct rundir *d);

/* Removes what the daemon put there (not the class tree) and gives the lock back. */
void rundir_close(struct rundir *d);
