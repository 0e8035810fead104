/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: made here, bound by work requests. */
#include "provider/sq.h"

#include <errno.h>
#include <stdlib.h>

struct ibv_mw *uroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct uroce_alloc_mw req = { .pd = pd->handle, .type = type };
	struct ibv_mw *mw = calloc(1, sizeof(*mw));
	struct uroce_alloc_mw_rep rep;
	int err = ENOMEM;

	if (mw)
		err = uroce_context_call(to_context(pd->context), UROCE_OP_ALLOC_MW, &req,
					 sizeof(req), &rep, sizeof(rep));
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->handle = rep.handle;
	mw->rkey = rep.rkey;
	return mw;
}

int uroce_dealloc_mw(struct ibv_mw *mw)
{
	int err =
		uroce_context_destroy(to_context(mw->context), UROCE_OP_FREE_MW, mw->handle, NULL);

	if (!err)
		free(mw);
	return err;
}

/* Type 1 (IBA vol. 1, 10.6.7.2.2): the key is ours to choose, and addresses are those of the
 * region. */
static int check_bind(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;
	if (!info->mr)
		return info->addr || info->length ? EINVAL : 0;
	return info->mr->pd != mw->pd ? EPERM : 0;
}

static int post_bind(struct uroce_qp *qp, const struct ibv_mw *mw, const struct ibv_mw_bind *bind,
		     uint32_t rkey)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	struct uroce_sq_op op = { bind->wr_id, IBV_WR_BIND_MW, bind->send_flags };
	struct uroce_draft d;
	int err = uroce_sq_check_state(qp);

	if (!err)
		err = uroce_sq_begin(qp, head, &op, &d);
	if (!err)
		err = uroce_wqe_set_bind(qp, d.wqe, mw, rkey, &bind->bind_info);
	if (!err)
		uroce_sq_publish(qp, head + 1);
	return err;
}

int uroce_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct uroce_qp *qp = to_qp(ibqp);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	int err = check_bind(mw, &bind->bind_info);

	if (err)
		return err;
	uroce_lock(&qp->sq.lock);
	err = post_bind(qp, mw, bind, rkey);
	if (!err)
		mw->rkey = rkey;
	uroce_unlock(&qp->sq.lock);
	return err;
}
