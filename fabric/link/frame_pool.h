/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames in mbufs: one mempool, FRAME_HEADROOM then FRAME_PAYLOAD bytes of buffer, the struct frame
 * in the mbuf's private area, frame.owner the mbuf. Each worker has its own cache of the pool,
 * since a worker need not be an lcore; caches hand out what was freed last, which is still in the
 * CPU's.
 */
#pragma once

#include <limits.h>

#include "fabric/wire/frame.h"

struct frame_pool;

#define FRAME_POOL_NO_WORKER UINT_MAX /* a thread without a cache: the control thread */

/* NULL: no memory. */
struct frame_pool *frame_pool_create(unsigned n_frames, unsigned n_workers);

/* All frames must be back. */
void frame_pool_destroy(struct frame_pool *p);

/* Up to n empty frames; fewer when the pool runs dry. */
unsigned frame_pool_get(struct frame_pool *p, unsigned worker, struct frame **f, unsigned n);
void frame_pool_put(struct frame_pool *p, unsigned worker, struct frame *const *f, unsigned n);

/* Frames that nobody has; exact only while no worker runs. */
unsigned frame_pool_free_count(const struct frame_pool *p);
