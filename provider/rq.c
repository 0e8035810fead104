/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>

static int check_wr(const struct uroce_wq *rq, const struct ibv_recv_wr *wr, uint32_t used)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	return used >= rq->max_wr ? ENOMEM : 0;
}

void uroce_rqe_put(void *slot, const struct ibv_recv_wr *wr)
{
	struct uroce_rqe *rqe = slot;
	struct uroce_sge *sge = (struct uroce_sge *)(rqe + 1);
	uint32_t n = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		sge[n].addr = wr->sg_list[i].addr;
		sge[n].length = wr->sg_list[i].length;
		sge[n].lkey = wr->sg_list[i].lkey;
		n++;
	}
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = n;
	rqe->reserved = 0;
}

static void put_wr(struct uroce_wq *rq, const struct ibv_recv_wr *wr, uint32_t index)
{
	uint32_t slot = index & (rq->depth - 1);

	uroce_rqe_put(rq->slots + (size_t)slot * rq->stride, wr);
	rq->wr[slot].wr_id = wr->wr_id;
	rq->wr[slot].wc_opcode = IBV_WC_RECV;
}

static int check_state(const struct uroce_qp *qp)
{
	if (atomic_load_explicit(&to_context(qp->v.qp.context)->is_dead, memory_order_relaxed))
		return EIO;
	return qp->v.qp.state == IBV_QPS_RESET || qp->v.qp.srq ? EINVAL : 0;
}

int uroce_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uroce_qp *qp = to_qp(ibqp);
	struct uroce_wq *rq = &qp->rq;
	uint32_t head, first;
	int err;

	uroce_lock(&rq->lock);
	first = head = atomic_load_explicit(&rq->head, memory_order_relaxed);
	err = check_state(qp);
	for (; wr && !err; wr = wr->next) {
		err = check_wr(rq, wr,
			       head - atomic_load_explicit(&rq->tail, memory_order_acquire));
		if (err)
			break;
		put_wr(rq, wr, head++);
	}
	if (head != first) {
		atomic_store_explicit(&rq->head, head, memory_order_release);
		uroce_ring_publish(rq->ring, head);
		if (uroce_qp_wants_doorbell(qp->page))
			uroce_qp_ring(qp);
	}
	uroce_unlock(&rq->lock);
	if (err)
		*bad = wr;
	return err;
}
