/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define QPT(type) (1u << IBV_QPT_##type)
#define SEND_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | \
	 IBV_SEND_IP_CSUM)
#define WQE_FLAGS \
	(UROCE_WQE_FENCE | UROCE_WQE_SIGNALED | UROCE_WQE_SOLICITED | UROCE_WQE_INLINE)

/* What may be posted to which kind of QP, and what its completion is called. Others: no type. */
/* clang-format off */
static const struct {
	uint32_t types;
	uint32_t wc_opcode;
	bool may_inline;
} opcode_table[] = {
	[IBV_WR_RDMA_WRITE]           = { QPT(RC) | QPT(UC),           IBV_WC_RDMA_WRITE, true },
	[IBV_WR_RDMA_WRITE_WITH_IMM]  = { QPT(RC) | QPT(UC),           IBV_WC_RDMA_WRITE, true },
	[IBV_WR_SEND]                 = { QPT(RC) | QPT(UC) | QPT(UD), IBV_WC_SEND,       true },
	[IBV_WR_SEND_WITH_IMM]        = { QPT(RC) | QPT(UC) | QPT(UD), IBV_WC_SEND,       true },
	[IBV_WR_RDMA_READ]            = { QPT(RC),                     IBV_WC_RDMA_READ,  false },
	[IBV_WR_ATOMIC_CMP_AND_SWP]   = { QPT(RC),                     IBV_WC_COMP_SWAP,  false },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { QPT(RC),                     IBV_WC_FETCH_ADD,  false },
	[IBV_WR_LOCAL_INV]            = { 0,                           IBV_WC_LOCAL_INV,  false },
};
/* clang-format on */
#define N_OPCODES (sizeof(opcode_table) / sizeof(*opcode_table))

static int check_wr(const struct uroce_qp *qp, const struct ibv_send_wr *wr, uint32_t used)
{
	if ((unsigned)wr->opcode >= N_OPCODES ||
	    !(opcode_table[wr->opcode].types & (1u << qp->v.qp.qp_type)))
		return EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge ||
	    (wr->send_flags & ~(unsigned)SEND_FLAGS))
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) && !opcode_table[wr->opcode].may_inline)
		return EINVAL;
	if (qp->v.qp.qp_type == IBV_QPT_UD && !wr->wr.ud.ah)
		return EINVAL;
	return used >= qp->sq.max_wr ? ENOMEM : 0;
}

static int put_inline(const struct uroce_qp *qp, const struct ibv_send_wr *wr, struct uroce_wqe *wqe)
{
	uint8_t *to = (uint8_t *)(wqe + 1);
	uint32_t len = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (s->length > qp->max_inline - len)
			return EINVAL;
		memcpy(to + len, (const void *)(uintptr_t)s->addr, s->length);
		len += s->length;
	}
	wqe->num_sge = 0;
	wqe->inline_len = len;
	return 0;
}

/* Empty entries are left out: they name no memory, so their keys mean nothing. */
static uint32_t put_sges(struct uroce_sge *to, const struct ibv_sge *list, int n)
{
	uint32_t put = 0;

	for (int i = 0; i < n; i++) {
		if (!list[i].length)
			continue;
		to[put].addr = list[i].addr;
		to[put].length = list[i].length;
		to[put].lkey = list[i].lkey;
		put++;
	}
	return put;
}

static void put_operands(struct uroce_wqe *wqe, const struct ibv_send_wr *wr, bool is_ud)
{
	wqe->rkey = 0;
	wqe->remote_addr = wqe->compare_add = wqe->swap = 0;
	wqe->ah = wqe->remote_qpn = wqe->remote_qkey = 0;
	wqe->imm = wr->imm_data;
	switch ((int)wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
		break;
	default:
		break;
	}
	if (is_ud) {
		wqe->ah = wr->wr.ud.ah->handle;
		wqe->remote_qpn = wr->wr.ud.remote_qpn;
		wqe->remote_qkey = wr->wr.ud.remote_qkey;
	}
}

static int put_wr(struct uroce_qp *qp, const struct ibv_send_wr *wr, uint32_t index)
{
	uint32_t slot = index & (qp->sq.depth - 1);
	struct uroce_wqe *wqe = (struct uroce_wqe *)(qp->sq.slots + (size_t)slot * qp->sq.stride);
	struct uroce_wr_record *rec = &qp->sq.wr[slot];

	if (wr->send_flags & IBV_SEND_INLINE) {
		int err = put_inline(qp, wr, wqe);

		if (err)
			return err;
	} else {
		wqe->num_sge = (uint16_t)put_sges((struct uroce_sge *)(wqe + 1), wr->sg_list,
						  wr->num_sge);
		wqe->inline_len = 0;
	}
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)((wr->send_flags & WQE_FLAGS) |
			       (qp->sq_sig_all ? UROCE_WQE_SIGNALED : 0));
	wqe->reserved = 0;
	put_operands(wqe, wr, qp->v.qp.qp_type == IBV_QPT_UD);
	rec->wr_id = wr->wr_id;
	rec->wc_opcode = opcode_table[wr->opcode].wc_opcode;
	return 0;
}

/* The daemon may be asleep: only then does a doorbell cost a system call. */
void uroce_qp_ring(struct uroce_qp *qp)
{
	const struct uroce_context *ctx = to_context(qp->v.qp.context);
	const uint64_t one = 1;

	if (!uroce_uar_ring(uar_worker(ctx, qp->worker), qp->slot))
		return;
	/* A full eventfd is a rung one. */
	if (write(ctx->wake_fd[qp->worker], &one, sizeof(one)) < 0)
		return;
}

static int check_state(const struct uroce_qp *qp)
{
	if (atomic_load_explicit(&to_context(qp->v.qp.context)->is_dead, memory_order_relaxed))
		return EIO;
	return qp->v.qp.state < IBV_QPS_RTS ? EINVAL : 0;
}

int uroce_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct uroce_qp *qp = to_qp(ibqp);
	struct uroce_wq *sq = &qp->sq;
	uint32_t head, first;
	int err;

	pthread_mutex_lock(&sq->lock);
	first = head = atomic_load_explicit(&sq->head, memory_order_relaxed);
	err = check_state(qp);
	for (; wr && !err; wr = wr->next) {
		err = check_wr(qp, wr,
			       head - atomic_load_explicit(&sq->tail, memory_order_acquire));
		if (!err)
			err = put_wr(qp, wr, head);
		if (err)
			break;
		head++;
	}
	if (head != first) {
		atomic_store_explicit(&sq->head, head, memory_order_release);
		uroce_ring_publish(sq->ring, head);
		uroce_qp_ring(qp);
	}
	pthread_mutex_unlock(&sq->lock);
	if (err)
		*bad = wr;
	return err;
}
