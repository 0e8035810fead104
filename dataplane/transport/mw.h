/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: narrower, revocable keys onto regions (IBA vol. 1, 10.6.7). A QP binds them in
 * its own engine while requests come in at any: so what a window shows, and how many windows a
 * region has, is shared by all engines of a device, a lock each. Regions themselves are in every
 * engine.
 */
#pragma once

#include "dataplane/transport/mr.h"

struct engine;
struct send_rec;

/* One for each index of the table of keys: a window, or a region's windows. In the daemon's memory.
 */
struct mr_shared {
	uint32_t lock;
	uint32_t key;    /* of the window or region; 0: of nothing */
	uint32_t parent; /* window: key of its region, 0: not bound */
	uint32_t qpn;    /* type 2 window: whose it is */
	uint32_t access;
	uint32_t n_windows; /* region: bound to it */
	uint32_t is_closed; /* region: none can be bound */
	uint32_t reserved;
	uint64_t iova, length, addr, region;
};
_Static_assert(sizeof(struct mr_shared) == 64, "a cache line");

/* Where an engine is: odd while it is inside an entry, and may use what it has looked up. */
struct mw_epoch {
	uint32_t seq;
	uint32_t reserved[15];
};

size_t mw_shared_size(uint32_t max_mr);
void mw_shared_init(struct engine *e, void *mem);
void mw_enter(struct engine *e);
void mw_leave(struct engine *e);

int mw_add(struct mr_table *t, const struct cmd_mw_add *cmd);
int mw_del(struct mr_table *t, uint32_t key);

/* A region comes: windows can be bound to it, unless held back; -EBUSY: it cannot go, it has some.
 */
void mw_region_open(const struct mr_table *t, uint32_t key, bool is_held);
int mw_region_close(const struct mr_table *t, uint32_t key, bool is_forced);

/* What a bound window of this key shows now; all but the lock. */
bool mw_read(const struct mr_table *t, uint32_t key, struct mr_shared *out);

/*
 * A BIND_MW work request; false: refused, nothing has changed. *is_revoked: something was shown
 * before that no longer is.
 */
bool mw_bind(struct engine *e, const struct qp *qp, const struct send_rec *rec, bool *is_revoked);

/* LOCAL_INV, or a SEND with Invalidate: unbind a type 2 window of this QP. */
bool mw_invalidate(struct engine *e, const struct qp *qp, uint32_t key);

/*
 * Other engines may be using what was revoked. Notes who is inside of an entry now; it is over when
 * each of those has left it.
 */
void mw_grace_begin(const struct engine *e, struct qp *qp);
bool mw_grace_is_over(const struct engine *e, struct qp *qp);
