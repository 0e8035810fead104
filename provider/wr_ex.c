/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting by calls: ibv_wr_start takes the SQ's lock, each operation begins a WQE in its slot,
 * setters fill it, ibv_wr_complete publishes all or, when one was refused, none.
 */
#include "provider/sq.h"

#include <errno.h>
#include <string.h>

/* The bit of send_ops_flags for each operation. Those of ibv_wr_opcode's numbers come first. */
#define FLUSH_BIT        11
#define ATOMIC_WRITE_BIT 12
static const uint8_t op_bit[] = {
	[0] = IBV_WR_RDMA_WRITE,
	[1] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[2] = IBV_WR_SEND,
	[3] = IBV_WR_SEND_WITH_IMM,
	[4] = IBV_WR_RDMA_READ,
	[5] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[6] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[7] = IBV_WR_LOCAL_INV,
	[8] = IBV_WR_BIND_MW,
	[9] = IBV_WR_SEND_WITH_INV,
	[10] = IBV_WR_TSO,
	[FLUSH_BIT] = UROCE_WR_FLUSH,
	[ATOMIC_WRITE_BIT] = UROCE_WR_ATOMIC_WRITE,
};
#define N_OP_BITS (sizeof(op_bit) / sizeof(*op_bit))

int uroce_wr_ex_check(enum ibv_qp_type type, uint64_t send_ops)
{
	if (send_ops >> N_OP_BITS)
		return EOPNOTSUPP;
#ifndef UROCE_HAS_WR_FLUSH
	if (send_ops >> FLUSH_BIT & 1) /* as of the next */
		return EOPNOTSUPP;
#endif
#ifndef UROCE_HAS_WR_ATOMIC_WRITE
	if (send_ops >> ATOMIC_WRITE_BIT & 1) /* its call has no place in this ibv_qp_ex */
		return EOPNOTSUPP;
#endif
	for (unsigned i = 0; i < N_OP_BITS; i++) {
		if ((send_ops >> i & 1) && !uroce_sq_may_post(type, op_bit[i]))
			return EOPNOTSUPP;
	}
	return 0;
}

static struct uroce_qp *from_ex(struct ibv_qp_ex *qp)
{
	return (struct uroce_qp *)qp;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct uroce_qp *qp = from_ex(ex);
	struct uroce_wr_build *b = &qp->build;

	uroce_lock(&qp->sq.lock);
	b->first = b->head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	b->draft.wqe = NULL;
	b->needs_address = false;
	b->err = uroce_sq_check_state(qp);
}

static void refuse(struct uroce_wr_build *b, int err)
{
	if (!b->err)
		b->err = err;
	b->draft.wqe = NULL;
}

/* UD: an address handle; XRC: an SRQ, but for what stays here. */
static bool needs_address(const struct uroce_qp *qp, uint32_t opcode)
{
	if (qp->v.qp.qp_type == IBV_QPT_XRC_SEND)
		return opcode != UROCE_WR_LOCAL_INV && opcode != UROCE_WR_BIND_MW;
	return qp->v.qp.qp_type == IBV_QPT_UD;
}

/* The operation before is complete now: a message without an address is none. */
static void conclude(struct uroce_wr_build *b)
{
	if (b->needs_address)
		refuse(b, EINVAL);
	b->needs_address = false;
}

/* NULL: refused. */
static struct uroce_wqe *begin(struct ibv_qp_ex *ex, uint32_t opcode)
{
	struct uroce_qp *qp = from_ex(ex);
	struct uroce_wr_build *b = &qp->build;
	struct uroce_sq_op op = { ex->wr_id, opcode, ex->wr_flags & ~(unsigned)IBV_SEND_INLINE };
	int err;

	conclude(b);
	if (b->err)
		return NULL;
	err = uroce_sq_begin(qp, b->head, &op, &b->draft);
	if (err) {
		refuse(b, err);
		return NULL;
	}
	b->head++;
	b->needs_address = needs_address(qp, opcode);
	return b->draft.wqe;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct uroce_qp *qp = from_ex(ex);
	struct uroce_wr_build *b = &qp->build;
	int err;

	conclude(b);
	err = b->err;
	if (!err && b->head != b->first)
		uroce_sq_publish(qp, b->head);
	uroce_unlock(&qp->sq.lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	uroce_unlock(&from_ex(ex)->sq.lock);
}

static void begin_at(struct ibv_qp_ex *ex, uint32_t opcode, uint32_t rkey, uint64_t remote_addr,
		     uint32_t imm)
{
	struct uroce_wqe *wqe = begin(ex, opcode);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->imm = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_at(ex, UROCE_WR_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	begin_at(ex, UROCE_WR_WRITE_IMM, rkey, remote_addr, imm_data);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_at(ex, UROCE_WR_READ, rkey, remote_addr, 0);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin_at(ex, UROCE_WR_SEND, 0, 0, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	begin_at(ex, UROCE_WR_SEND_IMM, 0, 0, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_at(ex, UROCE_WR_SEND_INV, 0, 0, invalidate_rkey);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_at(ex, UROCE_WR_LOCAL_INV, 0, 0, invalidate_rkey);
}

static void begin_atomic(struct ibv_qp_ex *ex, uint32_t opcode, uint32_t rkey, uint64_t remote_addr,
			 uint64_t compare_add, uint64_t swap)
{
	struct uroce_wqe *wqe;

	begin_at(ex, opcode, rkey, remote_addr, 0);
	wqe = from_ex(ex)->build.draft.wqe;
	if (!wqe)
		return;
	wqe->compare_add = compare_add;
	wqe->swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin_atomic(ex, UROCE_WR_CMP_SWAP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin_atomic(ex, UROCE_WR_FETCH_ADD, rkey, remote_addr, add, 0);
}

#ifdef UROCE_HAS_WR_ATOMIC_WRITE
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	uint64_t operand;

	memcpy(&operand, value, sizeof(operand));
	begin_atomic(ex, UROCE_WR_ATOMIC_WRITE, rkey, remote_addr, operand, 0);
}
#endif

#ifdef UROCE_HAS_WR_FLUSH
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	if (len > UINT32_MAX) {
		refuse(&from_ex(ex)->build, EINVAL);
		return;
	}
	begin_atomic(ex, UROCE_WR_FLUSH, rkey, remote_addr, len, 0);
	if (from_ex(ex)->build.draft.wqe)
		from_ex(ex)->build.draft.wqe->imm = (uint32_t)(level & 3) << 4 | (type & 0xf);
}
#endif

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct uroce_wqe *wqe = begin(ex, UROCE_WR_BIND_MW);
	struct uroce_qp *qp = from_ex(ex);
	int err;

	if (!wqe)
		return;
	err = mw->type == IBV_MW_TYPE_2 ? uroce_wqe_set_bind(qp, wqe, mw, rkey, info) : EINVAL;
	if (err)
		refuse(&qp->build, err);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct uroce_wr_build *b = &from_ex(ex)->build;

	if (!b->draft.wqe)
		return;
	if (!b->needs_address || !ah || from_ex(ex)->v.qp.qp_type != IBV_QPT_UD) {
		refuse(b, EINVAL);
		return;
	}
	uroce_wqe_set_ud(b->draft.wqe, ah, remote_qpn, remote_qkey);
	b->needs_address = false;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct uroce_wr_build *b = &from_ex(ex)->build;

	if (!b->draft.wqe)
		return;
	if (from_ex(ex)->v.qp.qp_type != IBV_QPT_XRC_SEND) {
		refuse(b, EINVAL);
		return;
	}
	b->draft.wqe->remote_qpn = remote_srqn;
	b->needs_address = false;
}

/* A setter replaces what another has put. NULL: refused, or this operation takes no data. */
static struct uroce_draft *clear_data(struct uroce_wr_build *b, bool is_inline)
{
	struct uroce_draft *d = &b->draft;

	if (!d->wqe)
		return NULL;
	if (d->opcode == UROCE_WR_LOCAL_INV || d->opcode == UROCE_WR_BIND_MW ||
	    d->opcode == UROCE_WR_FLUSH || d->opcode == UROCE_WR_ATOMIC_WRITE ||
	    (is_inline && !uroce_sq_may_inline(d->opcode))) {
		refuse(b, EINVAL);
		return NULL;
	}
	uroce_wqe_clear_data(d, is_inline);
	return d;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct uroce_qp *qp = from_ex(ex);
	struct uroce_draft *d = clear_data(&qp->build, false);

	if (!d)
		return;
	if (num_sge > qp->sq.max_sge) {
		refuse(&qp->build, EINVAL);
		return;
	}
	for (size_t i = 0; i < num_sge; i++)
		uroce_wqe_add_sge(d, sg_list[i].addr, sg_list[i].length, sg_list[i].lkey);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct uroce_qp *qp = from_ex(ex);
	struct uroce_draft *d = clear_data(&qp->build, true);
	int err = 0;

	if (!d)
		return;
	for (size_t i = 0; i < num_buf && !err; i++)
		err = uroce_wqe_add_inline(qp, d, buf_list[i].addr, buf_list[i].length);
	if (err)
		refuse(&qp->build, err);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* Calls for operations that the program did not ask for stay NULL, as with any driver. */
static void set_operations(struct ibv_qp_ex *ex, uint64_t send_ops)
{
#define SET(bit, call)        \
	if (send_ops & (bit)) \
	ex->call = call
	SET(IBV_QP_EX_WITH_RDMA_WRITE, wr_rdma_write);
	SET(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
	SET(IBV_QP_EX_WITH_SEND, wr_send);
	SET(IBV_QP_EX_WITH_SEND_WITH_IMM, wr_send_imm);
	SET(IBV_QP_EX_WITH_RDMA_READ, wr_rdma_read);
	SET(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
	SET(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
	SET(IBV_QP_EX_WITH_LOCAL_INV, wr_local_inv);
	SET(IBV_QP_EX_WITH_BIND_MW, wr_bind_mw);
	SET(IBV_QP_EX_WITH_SEND_WITH_INV, wr_send_inv);
#ifdef UROCE_HAS_WR_FLUSH
	SET(IBV_QP_EX_WITH_FLUSH, wr_flush);
#endif
#ifdef UROCE_HAS_WR_ATOMIC_WRITE
	SET(IBV_QP_EX_WITH_ATOMIC_WRITE, wr_atomic_write);
#endif
#undef SET
}

void uroce_wr_ex_init(struct uroce_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *ex = &qp->v.qp_ex;
	uint32_t mask = VERBS_QP_EX;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	set_operations(ex, send_ops);
	/* Last: where an older library keeps its word, a newer one has a call that it never makes.
	 */
	memcpy(qp->v.room + uroce_library.layout->qp_comp_mask, &mask, sizeof(mask));
}
