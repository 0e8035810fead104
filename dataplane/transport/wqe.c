/* SPDX-License-Identifier: BSD-3-Clause */
/* Send WQEs: copied once out of shared memory, judged as the copy, kept as a send_rec. */
#include <string.h>

#include "dataplane/abi/ring.h"
#include "dataplane/transport/core.h"

static const uint8_t *wqe_slot(const struct qp *qp, uint32_t index)
{
	return qp->sq + (size_t)(index & (qp->sq_depth - 1)) * qp->sq_stride;
}

uint64_t wqe_peek_wr_id(const struct qp *qp, uint32_t index)
{
	uint64_t wr_id;

	memcpy(&wr_id, wqe_slot(qp, index) + offsetof(struct uroce_wqe, wr_id), sizeof(wr_id));
	return wr_id;
}

static bool wqe_fail(struct send_rec *rec, uint8_t status, uint32_t verr)
{
	rec->status = status;
	rec->verr = verr;
	return false;
}

/* Opcodes that the service type has (IBA vol. 1, table "Operations per transport service"). */
static bool wqe_op_fits(uint8_t op, uint32_t qp_type)
{
	switch (qp_type) {
	case UROCE_QPT_RC:
	case UROCE_QPT_XRC_SEND:
		return op <= UROCE_WR_SEND_INV || wr_is_atomic_write(op) || wr_is_flush(op);
	case UROCE_QPT_UC:
		return op <= UROCE_WR_SEND_IMM || wr_is_local(op);
	default:
		return op == UROCE_WR_SEND || op == UROCE_WR_SEND_IMM;
	}
}

static bool wqe_check_opcode(struct send_rec *rec, const struct qp *qp)
{
	if (!wqe_op_fits(rec->op, qp->type))
		return wqe_fail(rec, UROCE_WC_LOC_QP_OP_ERR, UROCE_VERR_WQE);
	if ((wr_is_read(rec->op) || wr_is_atomic(rec->op)) && (rec->flags & UROCE_WQE_INLINE))
		return wqe_fail(rec, UROCE_WC_LOC_QP_OP_ERR, UROCE_VERR_WQE);
	if (wr_is_rd_atomic(rec->op) && !qp->attr.max_rd_atomic)
		return wqe_fail(rec, UROCE_WC_LOC_QP_OP_ERR, UROCE_VERR_NO_RD_ATOMIC);
	return true;
}

/* The scatter/gather list: count, total length, and that every byte may be touched. */
static bool wqe_check_sges(struct engine *e, struct send_rec *rec, const struct qp *qp,
			   const uint8_t *slot, uint16_t num_sge)
{
	struct uroce_sge sge[UROCE_MAX_SGE];
	struct mem_vec vec[UROCE_MAX_SGE];
	uint64_t total;
	int n;

	if (num_sge > qp->attr.cap.max_send_sge)
		return wqe_fail(rec, UROCE_WC_LOC_QP_OP_ERR, UROCE_VERR_WQE);
	memcpy(sge, slot + sizeof(struct uroce_wqe), num_sge * sizeof(sge[0]));
	total = sge_total(sge, num_sge);
	if (total > UROCE_MAX_MSG)
		return wqe_fail(rec, UROCE_WC_LOC_LEN_ERR, UROCE_VERR_WQE);
	if (wr_is_atomic(rec->op) && total != 8)
		return wqe_fail(rec, UROCE_WC_LOC_LEN_ERR, UROCE_VERR_WQE);
	rec->num_sge = (uint8_t)num_sge;
	rec->len = (uint32_t)total;
	n = sge_map(e, qp->pd, sge, num_sge,
		    wr_is_rd_atomic(rec->op) ? UROCE_ACCESS_LOCAL_WRITE : 0, 0, total, vec);
	if (n < 0)
		return wqe_fail(rec, UROCE_WC_LOC_PROT_ERR, (uint32_t)-n);
	return true;
}

static bool wqe_check(struct engine *e, struct send_rec *rec, const struct qp *qp,
		      const struct uroce_wqe *wqe, const uint8_t *slot)
{
	if (!wqe_check_opcode(rec, qp))
		return false;
	if (wr_is_local(rec->op))
		return true;
	if (wr_is_atomic_write(rec->op)) { /* its data is the WQE's operand */
		rec->len = sizeof(rec->compare);
		return true;
	}
	if (wr_is_flush(rec->op)) {
		if (rec->compare > UROCE_MAX_MSG)
			return wqe_fail(rec, UROCE_WC_LOC_LEN_ERR, UROCE_VERR_WQE);
		rec->len = (uint32_t)rec->compare;
		return true;
	}
	if (!(wqe->flags & UROCE_WQE_INLINE)) {
		if (!wqe_check_sges(e, rec, qp, slot, wqe->num_sge))
			return false;
	} else {
		if (wqe->inline_len > qp->attr.cap.max_inline)
			return wqe_fail(rec, UROCE_WC_LOC_LEN_ERR, UROCE_VERR_WQE);
		rec->len = wqe->inline_len;
	}
	if (qp->type == UROCE_QPT_UD && rec->len > qp->mtu)
		return wqe_fail(rec, UROCE_WC_LOC_LEN_ERR, UROCE_VERR_WQE);
	return true;
}

static uint32_t wqe_psns(const struct send_rec *rec, const struct qp *qp)
{
	if (wr_is_local(rec->op))
		return 0;
	if (wr_is_rd_atomic(rec->op) && !wr_is_read(rec->op))
		return 1;
	return packets_of(rec->len, qp->mtu);
}

int wqe_take(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	int64_t n = uroce_ring_pending(&qp->page->sq, r->tail, qp->sq_depth);
	const uint8_t *slot = wqe_slot(qp, r->tail);
	struct send_rec *rec = qp_rec(qp, r->tail);
	struct uroce_wqe wqe;

	if (n < 0 || (uint64_t)n + (r->tail - r->una) > qp->sq_depth)
		return -1;
	if (n == 0)
		return 0;
	memcpy(&wqe, slot, sizeof(wqe));
	*rec = (struct send_rec) {
		.wr_id = wqe.wr_id,
		.va = wqe.remote_addr,
		.compare = wqe.compare_add,
		.swap_add = wqe.opcode == UROCE_WR_FETCH_ADD ? wqe.compare_add : wqe.swap,
		.psn = r->asg_psn,
		.n_psn = 1,
		.rkey = wqe.rkey,
		.imm = wqe.imm,
		.op = wqe.opcode,
		.flags = wqe.flags,
	};
	if (qp->type == UROCE_QPT_XRC_SEND)
		rec->xrc_srqn = wqe.remote_qpn & BTH_QPN_MASK;
	if (qp->type == UROCE_QPT_UD) {
		rec->va = (uint64_t)wqe.ah << 32 | (wqe.remote_qpn & BTH_QPN_MASK);
		rec->rkey = wqe.remote_qkey;
	}
	if (wqe_check(e, rec, qp, &wqe, slot)) {
		rec->n_psn = wqe_psns(rec, qp);
	} else {
		r->is_failing = true;
		r->fail_at = r->tail;
	}
	r->asg_psn = psn_add(r->asg_psn, rec->n_psn);
	r->tail++;
	return 1;
}
