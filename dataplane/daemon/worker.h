/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one thread that owns its share of every device (an engine and a link port each), looks
 * at the doorbells of all sessions, and sleeps when nothing moves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/abi/abi.h"

struct worker;
struct engine;
struct link_port;

struct worker_conf {
	unsigned id;
	/* Called once by the new thread before anything else; may be NULL. 0 or a negative errno.
	 */
	int (*enter)(void);
	/* Called by the thread each time it wakes from sleep; may be NULL. */
	void (*woken)(void *ctx);
	void *ctx;
};

/* What a worker needs of one session. */
struct worker_doorbells {
	struct uroce_uar_worker *page;
	struct engine *engine;
	const uint32_t *qpn_of_slot; /* UROCE_CTX_QPS entries, 0: no QP */
	uint64_t *clock;             /* uroce_uar.clock_ns: when this session was last heard */
	int event_fd;
};

struct worker_status {
	uint64_t turns, sleeps;
	bool is_asleep;
};

/* Negative errno in *err when NULL is returned. The thread runs after worker_start only. */
struct worker *worker_create(const struct worker_conf *conf, int *err);
void worker_destroy(struct worker *w);
int worker_start(struct worker *w);
void worker_stop(struct worker *w); /* ends the thread; engines stay as they are */

/*
 * Runs fn in the worker's thread between two bursts and waits for its end. Control thread only. A
 * worker without a thread (not started, or stopped) runs it at once in the caller's.
 */
typedef void worker_fn(struct worker *w, uint64_t now, void *arg);
void worker_call(struct worker *w, worker_fn *fn, void *arg);

/* Any thread, after a full fence: wakes the worker if it sleeps. */
void worker_wake(struct worker *w);

void worker_get_status(const struct worker *w, struct worker_status *out);

/* Inside worker_call, or while there is no thread. 0 or a negative errno. */
int worker_add_device(struct worker *w, struct engine *engine, struct link_port *port);
/* Frees what it kept of the port and never touches it again; doorbells of the engine stay. */
void worker_del_device(struct worker *w, const struct link_port *port);
int worker_add_doorbells(struct worker *w, const struct worker_doorbells *d);
void worker_del_doorbells(struct worker *w, const struct uroce_uar_worker *page);
