/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/mr.h"

#include <errno.h>
#include <stddef.h>

#include "dataplane/transport/mw.h"
#include "dataplane/transport/qp.h"

static struct mr *mr_slot(const struct mr_table *t, uint32_t key)
{
	uint32_t index = key >> 8;

	return index < t->n ? &t->slot[index] : NULL;
}

int mr_add(struct mr_table *t, const struct cmd_mr_add *cmd)
{
	uint32_t remote = UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_ATOMIC;
	struct mr *mr = mr_slot(t, cmd->key);

	if (!mr)
		return -ENOMEM;
	/* IBA vol. 1, 10.6.3.1: who lets others write must be able to write. */
	if ((cmd->access & remote) && !(cmd->access & UROCE_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (mr->is_live)
		return -EEXIST;
	if (cmd->iova + cmd->length < cmd->iova || cmd->addr + cmd->length < cmd->addr)
		return -EINVAL;
	*mr = (struct mr) {
		.key = cmd->key,
		.pd = cmd->pd,
		.access = cmd->access,
		.is_live = true,
		.iova = cmd->iova,
		.length = cmd->length,
		.addr = cmd->addr,
		.region = cmd->region,
	};
	mw_region_open(t, cmd->key, cmd->no_windows);
	return 0;
}

int mr_del(struct mr_table *t, uint32_t key, bool is_forced)
{
	struct mr *mr = mr_slot(t, key);

	if (!mr || !mr->is_live || mr->key != key || mr->kind != MR_REGION)
		return -ENOENT;
	if (mw_region_close(t, key, is_forced))
		return -EBUSY;
	mr->is_live = false;
	return 0;
}

static enum mr_verdict mr_check(const struct mr *mr, uint32_t pd, uint32_t access, uint64_t va,
				uint64_t len, struct mem_vec *out)
{
	uint64_t off;

	if (mr->pd != pd)
		return MR_WRONG_PD;
	if ((mr->access & access) != access)
		return MR_NO_ACCESS;
	off = va - mr->iova;
	if (va < mr->iova || off > mr->length || len > mr->length - off)
		return MR_BOUNDS;
	*out = (struct mem_vec) { .addr = mr->addr + off, .region = mr->region, .len = len };
	return MR_OK;
}

enum mr_verdict mr_access(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t access,
			  uint64_t va, uint64_t len, struct mem_vec *out)
{
	const struct mr *mr = mr_slot(t, key);

	if (!mr || !mr->is_live || mr->key != key || mr->kind != MR_REGION)
		return MR_NO_KEY;
	return mr_check(mr, pd, access, va, len, out);
}

static uint64_t base_of(const struct mr_table *t, uint32_t key)
{
	const struct mr *mr = mr_slot(t, key);
	struct mr_shared w;

	if (mr && mr->is_live && mr->kind != MR_REGION)
		return mw_read(t, key, &w) ? w.iova : 0;
	return mr ? mr->iova : 0;
}

enum mr_verdict mr_flush_access(const struct mr_table *t, const struct qp *qp, uint32_t pd,
				uint32_t key, bool is_whole, uint64_t va, uint64_t len)
{
	struct mem_vec unused;

	return mr_remote_access(t, qp, pd, key, UROCE_ACCESS_FLUSH_GLOBAL,
				is_whole ? base_of(t, key) : va, is_whole ? 0 : len, &unused);
}

enum mr_verdict mr_remote_access(const struct mr_table *t, const struct qp *qp, uint32_t pd,
				 uint32_t key, uint32_t access, uint64_t va, uint64_t len,
				 struct mem_vec *out)
{
	const struct mr *mr = mr_slot(t, key);
	struct mr_shared w;
	struct mr window;

	if (!mr || !mr->is_live || mr->kind == MR_REGION)
		return mr_access(t, key, pd, access, va, len, out);
	if (!mw_read(t, key, &w))
		return MR_NO_KEY;
	if (mr->kind == MR_WINDOW_2 && w.qpn != qp->qpn)
		return MR_WRONG_PD;
	window = (struct mr) {
		.pd = mr->pd,
		.access = w.access,
		.iova = w.iova,
		.length = w.length,
		.addr = w.addr,
		.region = w.region,
	};
	return mr_check(&window, pd, access, va, len, out);
}
