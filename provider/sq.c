/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/sq.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define QPT(type) (1u << IBV_QPT_##type)
#define RELIABLE  (QPT(RC) | QPT(XRC_SEND))
#define CONNECTED (RELIABLE | QPT(UC))
#define SEND_FLAGS                                                                   \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | \
	 IBV_SEND_IP_CSUM)
#define WQE_FLAGS (UROCE_WQE_FENCE | UROCE_WQE_SIGNALED | UROCE_WQE_SOLICITED | UROCE_WQE_INLINE)

/* What may be posted to which kind of QP, and what its completion is called. Others: no type. */
/* clang-format off */
static const struct {
	uint32_t types;
	uint32_t wc_opcode;
	bool may_inline;
} opcode_table[] = {
	[IBV_WR_RDMA_WRITE]           = { CONNECTED,           IBV_WC_RDMA_WRITE,     true },
	[IBV_WR_RDMA_WRITE_WITH_IMM]  = { CONNECTED,           IBV_WC_RDMA_WRITE,     true },
	[IBV_WR_SEND]                 = { CONNECTED | QPT(UD), IBV_WC_SEND,           true },
	[IBV_WR_SEND_WITH_IMM]        = { CONNECTED | QPT(UD), IBV_WC_SEND,           true },
	[IBV_WR_RDMA_READ]            = { RELIABLE,            IBV_WC_RDMA_READ,      false },
	[IBV_WR_ATOMIC_CMP_AND_SWP]   = { RELIABLE,            IBV_WC_COMP_SWAP,      false },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RELIABLE,            IBV_WC_FETCH_ADD,      false },
	[IBV_WR_LOCAL_INV]            = { CONNECTED,           IBV_WC_LOCAL_INV,      false },
	[IBV_WR_BIND_MW]              = { CONNECTED,           IBV_WC_BIND_MW,        false },
	[IBV_WR_SEND_WITH_INV]        = { RELIABLE,            IBV_WC_SEND,           true },
	[UROCE_WR_FLUSH]              = { RELIABLE,            UROCE_WC_FLUSH,        false },
	[UROCE_WR_ATOMIC_WRITE]       = { RELIABLE,            UROCE_WC_ATOMIC_WRITE, true },
};
/* clang-format on */
#define N_OPCODES (sizeof(opcode_table) / sizeof(*opcode_table))

bool uroce_sq_may_post(enum ibv_qp_type type, uint32_t opcode)
{
	return opcode < N_OPCODES && (opcode_table[opcode].types & (1u << type));
}

bool uroce_sq_may_inline(uint32_t opcode)
{
	return opcode_table[opcode].may_inline;
}

int uroce_sq_begin(struct uroce_qp *qp, uint32_t index, const struct uroce_sq_op *op,
		   struct uroce_draft *draft)
{
	struct uroce_wq *sq = &qp->sq;
	uint32_t slot = index & (sq->depth - 1);
	struct uroce_draft d = { .opcode = op->opcode };

	if (!uroce_sq_may_post(qp->v.qp.qp_type, op->opcode) || (op->flags & ~(unsigned)SEND_FLAGS))
		return EINVAL;
	if ((op->flags & IBV_SEND_INLINE) && !opcode_table[op->opcode].may_inline)
		return EINVAL;
	if (index - atomic_load_explicit(&sq->tail, memory_order_acquire) >= sq->max_wr)
		return ENOMEM;
	d.wqe = (struct uroce_wqe *)(sq->slots + (size_t)slot * sq->stride);
	d.flags = (uint8_t)((op->flags & WQE_FLAGS) | (qp->sq_sig_all ? UROCE_WQE_SIGNALED : 0));
	*d.wqe = (struct uroce_wqe) {
		.wr_id = op->wr_id,
		.opcode = (uint8_t)op->opcode,
		.flags = d.flags,
	};
	sq->wr[slot].wr_id = op->wr_id;
	sq->wr[slot].wc_opcode = opcode_table[op->opcode].wc_opcode;
	*draft = d;
	return 0;
}

int uroce_wqe_add_inline(const struct uroce_qp *qp, struct uroce_draft *d, const void *data,
			 size_t length)
{
	if (length > qp->max_inline - d->inline_len)
		return EINVAL;
	memcpy((uint8_t *)(d->wqe + 1) + d->inline_len, data, length);
	d->inline_len += (uint32_t)length;
	d->wqe->inline_len = d->inline_len;
	return 0;
}

void uroce_wqe_add_sge(struct uroce_draft *d, uint64_t addr, uint32_t length, uint32_t lkey)
{
	struct uroce_sge *sge = (struct uroce_sge *)(d->wqe + 1) + d->num_sge;

	if (!length)
		return;
	*sge = (struct uroce_sge) { .addr = addr, .length = length, .lkey = lkey };
	d->wqe->num_sge = (uint16_t)++d->num_sge;
}

void uroce_wqe_clear_data(struct uroce_draft *d, bool is_inline)
{
	d->num_sge = d->inline_len = 0;
	d->flags = (uint8_t)((d->flags & ~UROCE_WQE_INLINE) | (is_inline ? UROCE_WQE_INLINE : 0));
	d->wqe->num_sge = 0;
	d->wqe->inline_len = 0;
	d->wqe->flags = d->flags;
}

/* Its data is an operand, so it has to come with the request. */
static int put_atomic_write(struct uroce_draft *d, const struct ibv_send_wr *wr)
{
	uint64_t operand;

	if (!(wr->send_flags & IBV_SEND_INLINE) || wr->num_sge != 1 ||
	    wr->sg_list[0].length != sizeof(operand))
		return EINVAL;
	memcpy(&operand, (const void *)(uintptr_t)wr->sg_list[0].addr, sizeof(operand));
	uroce_wqe_clear_data(d, false);
	d->wqe->compare_add = operand;
	return 0;
}

static int put_data(const struct uroce_qp *qp, struct uroce_draft *d, const struct ibv_send_wr *wr)
{
	int err = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (d->opcode == UROCE_WR_ATOMIC_WRITE)
		return put_atomic_write(d, wr);
	for (int i = 0; i < wr->num_sge && !err; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (wr->send_flags & IBV_SEND_INLINE)
			err = uroce_wqe_add_inline(qp, d, (const void *)(uintptr_t)s->addr,
						   s->length);
		else
			uroce_wqe_add_sge(d, s->addr, s->length, s->lkey);
	}
	return err;
}

/* A window and its region are of one PD; only the region says what the window may allow. */
int uroce_wqe_set_bind(const struct uroce_qp *qp, struct uroce_wqe *wqe, const struct ibv_mw *mw,
		       uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	if (info->mw_access_flags & ~(unsigned)UROCE_MW_ACCESS)
		return EINVAL;
	if (info->length && (!info->mr || info->mr->context != qp->v.qp.context))
		return EINVAL;
	wqe->rkey = rkey;
	wqe->imm = mw->rkey;
	wqe->remote_addr = info->addr;
	wqe->compare_add = info->length;
	wqe->swap = (uint64_t)info->mw_access_flags << 32 | (info->mr ? info->mr->lkey : 0);
	return 0;
}

void uroce_wqe_set_ud(struct uroce_wqe *wqe, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	wqe->ah = ah->handle;
	wqe->remote_qpn = qpn;
	wqe->remote_qkey = qkey;
}

static int put_operands(const struct uroce_qp *qp, struct uroce_wqe *wqe,
			const struct ibv_send_wr *wr)
{
	wqe->imm = wr->imm_data;
	switch ((int)wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case UROCE_WR_ATOMIC_WRITE:
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
	case UROCE_WR_FLUSH: /* an ibv_send_wr has no place for its operands; ibv_wr_flush has */
		return EINVAL;
	case IBV_WR_BIND_MW:
		/* A type 1 window is bound by ibv_bind_mw. */
		if (!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2)
			return EINVAL;
		return uroce_wqe_set_bind(qp, wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
					  &wr->bind_mw.bind_info);
	default:
		break;
	}
	if (qp->v.qp.qp_type == IBV_QPT_XRC_SEND)
		wqe->remote_qpn = wr->qp_type.xrc.remote_srqn;
	if (qp->v.qp.qp_type != IBV_QPT_UD)
		return 0;
	if (!wr->wr.ud.ah)
		return EINVAL;
	uroce_wqe_set_ud(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return 0;
}

static int put_wr(struct uroce_qp *qp, const struct ibv_send_wr *wr, uint32_t index)
{
	struct uroce_sq_op op = { wr->wr_id, (uint32_t)wr->opcode, wr->send_flags };
	struct uroce_draft d;
	int err = uroce_sq_begin(qp, index, &op, &d);

	if (!err)
		err = put_operands(qp, d.wqe, wr);
	return err ? err : put_data(qp, &d, wr);
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

int uroce_sq_check_state(const struct uroce_qp *qp)
{
	if (atomic_load_explicit(&to_context(qp->v.qp.context)->is_dead, memory_order_relaxed))
		return EIO;
	return qp->v.qp.state < IBV_QPS_RTS ? EINVAL : 0;
}

void uroce_sq_publish(struct uroce_qp *qp, uint32_t head)
{
	atomic_store_explicit(&qp->sq.head, head, memory_order_release);
	uroce_ring_publish(qp->sq.ring, head);
	uroce_qp_ring(qp);
}

int uroce_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct uroce_qp *qp = to_qp(ibqp);
	struct uroce_wq *sq = &qp->sq;
	uint32_t head, first;
	int err;

	uroce_lock(&sq->lock);
	first = head = atomic_load_explicit(&sq->head, memory_order_relaxed);
	err = uroce_sq_check_state(qp);
	for (; wr && !err; wr = wr->next) {
		err = put_wr(qp, wr, head);
		if (err)
			break;
		head++;
	}
	if (head != first)
		uroce_sq_publish(qp, head);
	uroce_unlock(&sq->lock);
	if (err)
		*bad = wr;
	return err;
}
