/* SPDX-License-Identifier: BSD-3-Clause */
/* The way from the control thread into a worker: one call at a time, each acknowledged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/daemon/worker.h"

struct worker_cmd;

struct worker_cmds {
	struct worker_cmd *next; /* shared: stored by the one thread, taken by the other */
	int done_fd; /* eventfd, blocking: the worker counts up, the control thread waits */
};

int worker_cmds_init(struct worker_cmds *c);
void worker_cmds_fini(struct worker_cmds *c);

/* Control thread: hands fn to the worker; wake it, then wait, before the next. */
struct worker_cmd {
	worker_fn *fn;
	void *arg;
};
void worker_cmds_push(struct worker_cmds *c, struct worker_cmd *cmd);
void worker_cmds_wait(struct worker_cmds *c);

/* Worker: runs what is there. True if there was something. */
bool worker_cmds_run(struct worker_cmds *c, struct worker *w, uint64_t now);
bool worker_cmds_pending(const struct worker_cmds *c);
