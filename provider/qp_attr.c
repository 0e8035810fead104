/* SPDX-License-Identifier: BSD-3-Clause */
/* Modify and query: the state table is the daemon's; here attributes change their dress. */
#include "provider/provider.h"

#include <errno.h>
#include <string.h>

static void pack(struct uroce_qp_attr *to, const struct ibv_qp_attr *a)
{
	*to = (struct uroce_qp_attr){
		.qp_state = a->qp_state,
		.cur_qp_state = a->cur_qp_state,
		.path_mtu = a->path_mtu,
		.path_mig_state = a->path_mig_state,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qp_num,
		.access = a->qp_access_flags,
		.cap = { a->cap.max_send_wr, a->cap.max_recv_wr, a->cap.max_send_sge,
			 a->cap.max_recv_sge, a->cap.max_inline_data },
		.pkey_index = a->pkey_index,
		.alt_pkey_index = a->alt_pkey_index,
		.en_sqd_async_notify = a->en_sqd_async_notify,
		.sq_draining = a->sq_draining,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port_num,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.alt_port_num = a->alt_port_num,
		.alt_timeout = a->alt_timeout,
		.rate_limit = a->rate_limit,
	};
	uroce_ah_attr_pack(&to->ah, &a->ah_attr);
	uroce_ah_attr_pack(&to->alt_ah, &a->alt_ah_attr);
}

static void unpack(struct ibv_qp_attr *a, const struct uroce_qp_attr *from)
{
	memset(a, 0, sizeof(*a));
	a->qp_state = (enum ibv_qp_state)from->qp_state;
	a->cur_qp_state = (enum ibv_qp_state)from->cur_qp_state;
	a->path_mtu = (enum ibv_mtu)from->path_mtu;
	a->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
	a->qkey = from->qkey;
	a->rq_psn = from->rq_psn;
	a->sq_psn = from->sq_psn;
	a->dest_qp_num = from->dest_qp_num;
	a->qp_access_flags = from->access;
	a->pkey_index = from->pkey_index;
	a->alt_pkey_index = from->alt_pkey_index;
	a->en_sqd_async_notify = from->en_sqd_async_notify;
	a->sq_draining = from->sq_draining;
	a->max_rd_atomic = from->max_rd_atomic;
	a->max_dest_rd_atomic = from->max_dest_rd_atomic;
	a->min_rnr_timer = from->min_rnr_timer;
	a->port_num = from->port_num;
	a->timeout = from->timeout;
	a->retry_cnt = from->retry_cnt;
	a->rnr_retry = from->rnr_retry;
	a->alt_port_num = from->alt_port_num;
	a->alt_timeout = from->alt_timeout;
	a->rate_limit = from->rate_limit;
	uroce_ah_attr_unpack(&a->ah_attr, &from->ah);
	uroce_ah_attr_unpack(&a->alt_ah_attr, &from->alt_ah);
}

/* Both sides begin again at index 0. */
static void rewind_wq(struct uroce_wq *wq)
{
	uroce_lock(&wq->lock);
	atomic_store(&wq->head, 0);
	atomic_store(&wq->tail, 0);
	if (wq->depth)
		uroce_ring_publish(wq->ring, 0);
	uroce_unlock(&wq->lock);
}

int uroce_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct uroce_context *ctx = to_context(ibqp->context);
	struct uroce_qp *qp = to_qp(ibqp);
	struct uroce_modify_qp req = { .handle = ibqp->handle, .mask = (uint32_t)mask };
	int err;

	pack(&req.attr, attr);
	err = uroce_context_call(ctx, UROCE_OP_MODIFY_QP, &req, sizeof(req), NULL, 0);
	if (err)
		return err;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
		pthread_mutex_lock(&ctx->objects);
		uroce_qp_forget_work(qp, false);
		pthread_mutex_unlock(&ctx->objects);
		rewind_wq(&qp->sq);
		rewind_wq(&qp->rq);
	}
	return 0;
}

static void caps(const struct uroce_qp *qp, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.max_wr;
	cap->max_recv_wr = qp->rq.max_wr;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_recv_sge = qp->rq.max_sge;
	cap->max_inline_data = qp->max_inline;
}

int uroce_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct uroce_handle req = { .handle = ibqp->handle };
	struct uroce_query_qp_rep rep;
	struct uroce_qp *qp = to_qp(ibqp);
	int err;

	(void)mask; /* more than was asked for is allowed */
	err = uroce_context_call(to_context(ibqp->context), UROCE_OP_QUERY_QP, &req, sizeof(req),
				 &rep, sizeof(rep));
	if (err)
		return err;
	unpack(attr, &rep.attr);
	caps(qp, &attr->cap);
	memset(init, 0, sizeof(*init));
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_all = qp->sq_sig_all;
	caps(qp, &init->cap);
	return 0;
}
