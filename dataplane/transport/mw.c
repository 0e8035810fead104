/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/mw.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "dataplane/transport/core.h"

size_t mw_shared_size(uint32_t max_mr)
{
	return UROCE_MAX_WORKERS * sizeof(struct mw_epoch) + max_mr * sizeof(struct mr_shared);
}

void mw_shared_init(struct engine *e, void *mem)
{
	e->epoch = mem;
	e->mr.shared = (struct mr_shared *)(e->epoch + UROCE_MAX_WORKERS);
}

/* Released by whoever leaves; what is looked up between is ordered by the locks below. */
static void mw_step(struct engine *e)
{
	uint32_t *seq = &e->epoch[e->conf.worker].seq;

	if (e->conf.n_workers > 1)
		__atomic_store_n(seq, *seq + 1, __ATOMIC_RELEASE);
}

void mw_enter(struct engine *e)
{
	mw_step(e);
}

void mw_leave(struct engine *e)
{
	mw_step(e);
}

/* Held for a few stores. */
static struct mr_shared *mw_lock(const struct mr_table *t, uint32_t key)
{
	struct mr_shared *s = &t->shared[key >> 8];

	while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&s->lock, __ATOMIC_RELAXED))
			;
	return s;
}

static void mw_unlock(struct mr_shared *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

void mw_region_open(const struct mr_table *t, uint32_t key, bool is_held)
{
	struct mr_shared *s;

	if (!t->shared)
		return;
	s = mw_lock(t, key);
	if (s->key != key) {
		s->key = key;
		s->n_windows = 0;
		s->is_closed = is_held;
	}
	if (!is_held)
		s->is_closed = false;
	mw_unlock(s);
}

int mw_region_close(const struct mr_table *t, uint32_t key, bool is_forced)
{
	struct mr_shared *s;
	int err = 0;

	if (!t->shared)
		return 0;
	s = mw_lock(t, key);
	if (s->key == key && s->n_windows && !is_forced)
		err = -EBUSY;
	else
		s->is_closed = true;
	if (is_forced) /* its windows find that their region is another */
		s->key = 0;
	mw_unlock(s);
	return err;
}

static struct mr *mw_slot(const struct mr_table *t, uint32_t key)
{
	uint32_t index = key >> 8;
	struct mr *w = index < t->n && t->shared ? &t->slot[index] : NULL;

	return w && w->is_live && w->kind != MR_REGION ? w : NULL;
}

/* The first engine that hears of it makes it. */
int mw_add(struct mr_table *t, const struct cmd_mw_add *cmd)
{
	uint32_t index = cmd->key >> 8;
	struct mr *w = index < t->n && t->shared ? &t->slot[index] : NULL;
	struct mr_shared *s;

	if (!w)
		return -ENOMEM;
	if (w->is_live)
		return -EEXIST;
	if (cmd->type != 1 && cmd->type != 2)
		return -EINVAL;
	*w = (struct mr) {
		.key = cmd->key,
		.pd = cmd->pd,
		.is_live = true,
		.kind = cmd->type == 1 ? MR_WINDOW_1 : MR_WINDOW_2,
	};
	s = mw_lock(t, cmd->key);
	if (!s->key || s->is_closed) { /* of nothing, or of a region that is gone */
		s->key = cmd->key;
		s->parent = 0;
		s->is_closed = false;
	}
	mw_unlock(s);
	return 0;
}

/* s: locked. */
static void mw_unbind(const struct mr_table *t, struct mr_shared *s)
{
	struct mr_shared *region;

	if (!s->parent)
		return;
	region = mw_lock(t, s->parent);
	if (region->key == s->parent)
		region->n_windows--;
	mw_unlock(region);
	s->parent = 0;
}

/* By index: binding has changed the key's low byte since. */
int mw_del(struct mr_table *t, uint32_t key)
{
	struct mr *w = mw_slot(t, key);
	struct mr_shared *s;

	if (!w)
		return -ENOENT;
	w->is_live = false;
	s = mw_lock(t, key);
	mw_unbind(t, s);
	s->key = 0;
	mw_unlock(s);
	return 0;
}

static const struct mr *mw_parent(const struct mr_table *t, const struct qp *qp, uint32_t lkey,
				  uint64_t addr, uint64_t len, uint32_t access)
{
	const struct mr *mr = (lkey >> 8) < t->n ? &t->slot[lkey >> 8] : NULL;
	uint32_t writes = UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_ATOMIC;

	if (!mr || !mr->is_live || mr->kind != MR_REGION || mr->key != lkey || mr->pd != qp->pd)
		return NULL;
	if (!(mr->access & UROCE_ACCESS_MW_BIND) ||
	    ((access & writes) && !(mr->access & UROCE_ACCESS_LOCAL_WRITE)))
		return NULL;
	if (addr < mr->iova || addr - mr->iova > mr->length || len > mr->length - (addr - mr->iova))
		return NULL;
	return mr;
}

/* s: the window's, locked; no region is locked before a window is. */
static bool mw_attach(const struct mr_table *t, const struct mr *mr, struct mr_shared *s)
{
	struct mr_shared *region = mw_lock(t, mr->key);
	bool is_open = region->key == mr->key && !region->is_closed;

	region->n_windows += is_open;
	mw_unlock(region);
	if (!is_open)
		return false;
	mw_unbind(t, s);
	s->parent = mr->key;
	return true;
}

static bool mw_bind_locked(struct engine *e, const struct qp *qp, const struct send_rec *rec,
			   const struct mr *w, struct mr_shared *s)
{
	uint32_t lkey = (uint32_t)rec->swap_add, access = (uint32_t)(rec->swap_add >> 32);
	uint64_t addr = rec->va, len = rec->compare;
	const struct mr *mr;

	if (!s->key) /* another engine has deleted it already */
		return false;
	if (w->kind == MR_WINDOW_2 && (s->parent || !len)) /* IBA vol. 1, 10.6.7.2.4 */
		return false;
	if (!len) {
		mw_unbind(&e->mr, s);
		s->key = rec->rkey;
		return true;
	}
	mr = mw_parent(&e->mr, qp, lkey, addr, len, access);
	if (!mr || !mw_attach(&e->mr, mr, s))
		return false;
	s->key = rec->rkey;
	s->qpn = w->kind == MR_WINDOW_2 ? qp->qpn : 0;
	s->access = access;
	s->iova = access & UROCE_ACCESS_ZERO_BASED ? 0 : addr;
	s->length = len;
	s->addr = mr->addr + (addr - mr->iova);
	s->region = mr->region;
	return true;
}

bool mw_bind(struct engine *e, const struct qp *qp, const struct send_rec *rec, bool *is_revoked)
{
	struct mr *w = mw_slot(&e->mr, rec->imm);
	struct mr_shared *s;
	bool is_done;

	/*
	 * The window is meant by its index: which of its keys was the last to be bound, a program
	 * knows only when the binding has completed.
	 */
	if (!w || w->pd != qp->pd || rec->rkey >> 8 != rec->imm >> 8)
		return false;
	s = mw_lock(&e->mr, rec->imm);
	*is_revoked = s->parent != 0;
	is_done = mw_bind_locked(e, qp, rec, w, s);
	mw_unlock(s);
	return is_done;
}

bool mw_invalidate(struct engine *e, const struct qp *qp, uint32_t key)
{
	struct mr *w = mw_slot(&e->mr, key);
	struct mr_shared *s;
	bool is_ours;

	if (!w || w->kind != MR_WINDOW_2)
		return false;
	s = mw_lock(&e->mr, key);
	is_ours = s->key == key && s->parent && s->qpn == qp->qpn;
	if (is_ours)
		mw_unbind(&e->mr, s);
	mw_unlock(s);
	return is_ours;
}

bool mw_read(const struct mr_table *t, uint32_t key, struct mr_shared *out)
{
	const struct mr *w = mw_slot(t, key), *parent;
	struct mr_shared *s;

	if (!w)
		return false;
	s = mw_lock(t, key);
	memcpy(&out->key, &s->key, sizeof(*s) - offsetof(struct mr_shared, key));
	mw_unlock(s);
	if (out->key != key || !out->parent)
		return false;
	parent = &t->slot[out->parent >> 8]; /* its owner may have died */
	return parent->is_live && parent->key == out->parent;
}

void mw_grace_begin(const struct engine *e, struct qp *qp)
{
	qp->req.grace = 0;
	for (uint32_t w = 0; w < e->conf.n_workers; w++) {
		uint32_t seq = __atomic_load_n(&e->epoch[w].seq, __ATOMIC_ACQUIRE);

		qp->req.grace_seq[w] = seq;
		if (w != e->conf.worker && (seq & 1))
			qp->req.grace |= 1u << w;
	}
}

bool mw_grace_is_over(const struct engine *e, struct qp *qp)
{
	for (uint32_t left = qp->req.grace; left; left &= left - 1) {
		uint32_t w = (uint32_t)__builtin_ctz(left);

		if (__atomic_load_n(&e->epoch[w].seq, __ATOMIC_ACQUIRE) != qp->req.grace_seq[w])
			qp->req.grace &= ~(1u << w);
	}
	return !qp->req.grace;
}
