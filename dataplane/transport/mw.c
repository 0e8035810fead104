/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/mw.h"

#include <errno.h>
#include <stddef.h>

#include "dataplane/transport/core.h"

static struct mr *mw_slot(const struct mr_table *t, uint32_t key)
{
	uint32_t index = key >> 8;
	struct mr *w = index < t->n ? &t->slot[index] : NULL;

	return w && w->is_live && w->kind != MR_REGION ? w : NULL;
}

int mw_add(struct mr_table *t, const struct cmd_mw_add *cmd)
{
	uint32_t index = cmd->key >> 8;
	struct mr *w = index < t->n ? &t->slot[index] : NULL;

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
	return 0;
}

static void mw_unbind(const struct mr_table *t, struct mr *w)
{
	if (w->is_bound)
		t->slot[w->parent].n_windows--;
	w->is_bound = false;
	w->access = 0;
	w->length = 0;
}

/* By index: binding has changed the key's low byte since. */
int mw_del(struct mr_table *t, uint32_t key)
{
	struct mr *w = mw_slot(t, key);

	if (!w)
		return -ENOENT;
	mw_unbind(t, w);
	w->is_live = false;
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

bool mw_bind(struct engine *e, const struct qp *qp, const struct send_rec *rec)
{
	uint32_t lkey = (uint32_t)rec->swap_add, access = (uint32_t)(rec->swap_add >> 32);
	uint64_t addr = rec->va, len = rec->compare;
	struct mr *w = mw_slot(&e->mr, rec->imm);
	const struct mr *mr;

	/*
	 * The window is meant by its index: which of its keys was the last to be bound, a program
	 * knows only when the binding has completed.
	 */
	if (!w || w->pd != qp->pd || rec->rkey >> 8 != rec->imm >> 8)
		return false;
	if (w->kind == MR_WINDOW_2 && (w->is_bound || !len)) /* IBA vol. 1, 10.6.7.2.4 */
		return false;
	if (!len) {
		mw_unbind(&e->mr, w);
		w->key = rec->rkey;
		return true;
	}
	mr = mw_parent(&e->mr, qp, lkey, addr, len, access);
	if (!mr)
		return false;
	mw_unbind(&e->mr, w);
	w->key = rec->rkey;
	w->is_bound = true;
	w->parent = lkey >> 8;
	w->qpn = w->kind == MR_WINDOW_2 ? qp->qpn : 0;
	w->access = access;
	w->iova = access & UROCE_ACCESS_ZERO_BASED ? 0 : addr;
	w->length = len;
	w->addr = mr->addr + (addr - mr->iova);
	w->region = mr->region;
	e->mr.slot[w->parent].n_windows++;
	return true;
}

bool mw_invalidate(struct engine *e, const struct qp *qp, uint32_t key)
{
	struct mr *w = mw_slot(&e->mr, key);

	if (!w || w->key != key || w->kind != MR_WINDOW_2 || !w->is_bound || w->qpn != qp->qpn)
		return false;
	mw_unbind(&e->mr, w);
	return true;
}
