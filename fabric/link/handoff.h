/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the workers' ports of one device: a wire brings a frame to whoever read it, but it
 * belongs to the worker that owns the QP its BTH names (QPN index % n_workers; what is no RoCEv2 to
 * worker 0).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/frame.h"

struct handoff;

/*
 * depth: frames that may wait for one worker. wake: called by a worker that gave another one
 * frames, after a full fence; see link_switch.h. NULL: no memory.
 */
struct handoff *handoff_create(unsigned n_workers, unsigned depth,
			       void (*wake)(void *ctx, unsigned worker), void *wake_ctx);

/* What still waits there is the caller's to take first. */
void handoff_destroy(struct handoff *h);

/*
 * Keeps in f, in order, what is for `worker` and gives the rest to their workers. Returns how many
 * are left in f; those that cannot be given on (shorter than their headers, no room) are put into
 * lost[0..*n_lost).
 */
unsigned handoff_sort(struct handoff *h, unsigned worker, struct frame **f, unsigned n,
		      struct frame **lost, unsigned *n_lost);

/* What others gave to `worker`. */
unsigned handoff_take(struct handoff *h, unsigned worker, struct frame **f, unsigned n);

/* One frame for that worker, which must be another than the caller's. false: no room. */
bool handoff_give(struct handoff *h, unsigned to, struct frame *f);

unsigned handoff_workers(const struct handoff *h);
