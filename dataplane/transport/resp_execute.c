/* SPDX-License-Identifier: BSD-3-Clause */
/* Executing a request: SEND, RDMA WRITE, READ, atomics. Data is placed before anything tells of it.
 */
#include "dataplane/transport/core.h"

static void exec_complete_recv(struct engine *e, struct qp *qp, const struct packet *pk,
			       uint8_t opcode, uint32_t len)
{
	bool has_imm = opcode_get(pk->opcode)->flags & OPC_IMM;
	bool has_inv = opcode_get(pk->opcode)->flags & OPC_IETH;
	struct uroce_cqe cqe = {
		.wr_id = qp->resp.rqe.wr_id,
		.wqe_index = qp->resp.rqe.index,
		.byte_len = len,
		.imm = has_imm ? pk->imm : pk->inv_rkey,
		.opcode = opcode,
		.flags = has_imm   ? UROCE_WC_WITH_IMM
			 : has_inv ? UROCE_WC_WITH_INV
				   : 0,
		.status = UROCE_WC_SUCCESS,
	};

	qp->resp.has_rqe = false;
	place_then_complete(e, qp, &cqe, pk->solicited);
}

static void exec_fail_recv(struct engine *e, struct qp *qp, uint8_t status, uint32_t verr)
{
	struct uroce_cqe cqe = {
		.wr_id = qp->resp.rqe.wr_id,
		.wqe_index = qp->resp.rqe.index,
		.opcode = UROCE_WC_RECV,
		.status = status,
		.vendor_err = verr,
	};

	qp->resp.has_rqe = false;
	qp_complete_recv(e, qp, &cqe, false);
}

/* A receive for this message, unless it has one. */
static enum resp_verdict exec_need_rqe(struct engine *e, struct qp *qp)
{
	int got;

	if (qp->resp.has_rqe)
		return RESP_OK;
	got = rqe_take(e, qp);
	if (got == 0)
		return RESP_RNR;
	if (got < 0) {
		exec_fail_recv(e, qp, UROCE_WC_LOC_QP_OP_ERR, UROCE_VERR_WQE);
		return RESP_RECV_BROKEN;
	}
	qp->resp.has_rqe = true;
	return RESP_OK;
}

static enum resp_verdict exec_send(struct engine *e, struct qp *qp, const struct packet *pk)
{
	uint16_t flags = opcode_get(pk->opcode)->flags;
	struct qp_resp *s = &qp->resp;
	enum resp_verdict v = exec_need_rqe(e, qp);

	if (v != RESP_OK)
		return v;
	if (flags & OPC_FIRST) {
		engine_count(e, CNT_RX_SEND_REQUESTS, 1);
		s->msg = MSG_SEND;
		s->msg_len = 0;
	}
	if ((uint64_t)s->msg_len + pk->payload_len > s->rqe.room ||
	    (uint64_t)s->msg_len + pk->payload_len > UROCE_MAX_MSG) {
		if (!place_flush(e) && !qp_can_receive(qp))
			return RESP_HANDLED;
		exec_fail_recv(e, qp, UROCE_WC_LOC_LEN_ERR, UROCE_VERR_RECV_LEN);
		return RESP_RECV_SHORT;
	}
	if (!place_add(e, qp, PLACE_RECV, s->msg_len, pk, NULL))
		return RESP_HANDLED;
	s->msg_len += pk->payload_len;
	if (!(flags & OPC_LAST))
		return RESP_OK;
	if (!place_close(e, qp) && !qp_can_receive(qp))
		return RESP_HANDLED;
	if (flags & OPC_IETH) {
		if (!place_flush(e) && !qp_can_receive(qp))
			return RESP_HANDLED;
		if (!mw_invalidate(e, qp, pk->inv_rkey)) {
			/* IBA vol. 1, 9.9.6.3, class J: the receive is in error, and no NAK. */
			exec_fail_recv(e, qp, UROCE_WC_MW_BIND_ERR, UROCE_VERR_RKEY);
			s->keeps_answers = true;
			return RESP_RECV_INVAL;
		}
	}
	s->msn = (s->msn + 1) & PSN_MASK;
	exec_complete_recv(e, qp, pk, UROCE_WC_RECV, s->msg_len);
	return RESP_OK;
}

/* The RETH of a first or only packet. A zero-length WRITE checks no key (IBA vol. 1, C9-88). */
static enum resp_verdict exec_write_begin(struct engine *e, struct qp *qp, const struct packet *pk,
					  struct mem_vec *dst)
{
	struct qp_resp *s = &qp->resp;

	if (pk->dma_len > UROCE_MAX_MSG)
		return RESP_BAD_REQUEST;
	if (pk->dma_len && mr_remote_access(&e->mr, qp, qp->pd, pk->rkey, UROCE_ACCESS_REMOTE_WRITE,
					    pk->va, pk->dma_len, dst) != MR_OK)
		return RESP_BAD_ACCESS;
	engine_count(e, CNT_RX_WRITE_REQUESTS, 1);
	s->msg = MSG_WRITE;
	s->va = pk->va;
	s->rkey = pk->rkey;
	s->dma_len = pk->dma_len;
	s->msg_len = 0;
	return RESP_OK;
}

static enum resp_verdict exec_write(struct engine *e, struct qp *qp, const struct packet *pk)
{
	uint16_t flags = opcode_get(pk->opcode)->flags;
	struct qp_resp *s = &qp->resp;
	enum resp_verdict v = flags & OPC_IMM ? exec_need_rqe(e, qp) : RESP_OK;
	struct mem_vec dst;

	if (v == RESP_OK && (flags & OPC_FIRST))
		v = exec_write_begin(e, qp, pk, &dst);
	if (v != RESP_OK)
		return v;
	if ((uint64_t)s->msg_len + pk->payload_len > s->dma_len)
		return RESP_BAD_REQUEST;
	if ((flags & OPC_LAST) && s->msg_len + pk->payload_len != s->dma_len)
		return RESP_BAD_REQUEST;
	if (!place_add(e, qp, PLACE_WRITE, s->msg_len, pk, flags & OPC_FIRST ? &dst : NULL))
		return RESP_HANDLED;
	s->msg_len += pk->payload_len;
	if (!(flags & OPC_LAST))
		return RESP_OK;
	place_close(e, qp);
	s->msn = (s->msn + 1) & PSN_MASK;
	if (flags & OPC_IMM)
		exec_complete_recv(e, qp, pk, UROCE_WC_RECV_IMM, s->dma_len);
	return RESP_OK;
}

static enum resp_verdict exec_read(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct qp_resp *s = &qp->resp;
	struct mem_vec vec;

	if (pk->dma_len > UROCE_MAX_MSG || resp_outstanding(qp) >= qp->attr.max_dest_rd_atomic)
		return RESP_BAD_REQUEST;
	if (pk->dma_len && mr_remote_access(&e->mr, qp, qp->pd, pk->rkey, UROCE_ACCESS_REMOTE_READ,
					    pk->va, pk->dma_len, &vec) != MR_OK)
		return RESP_BAD_ACCESS;
	engine_count(e, CNT_RX_READ_REQUESTS, 1);
	s->msn = (s->msn + 1) & PSN_MASK;
	resp_queue_append(e, qp,
			  &(struct resp_item) { .kind = RESP_READ,
						.syndrome = AETH_ACK_UNLIMITED,
						.msn = s->msn,
						.psn = s->epsn,
						.left = packets_of(pk->dma_len, qp->mtu),
						.va = pk->va,
						.pd = qp->pd,
						.rkey = pk->rkey,
						.len = pk->dma_len });
	return RESP_OK;
}

static enum mem_atomic_op exec_atomic_op(uint8_t op)
{
	if (op == BTH_ATOMIC_WRITE)
		return MEM_STORE;
	return op == BTH_FETCH_ADD ? MEM_FETCH_ADD : MEM_CMP_SWAP;
}

/* The eight bytes of an ATOMIC WRITE, out of however many pieces. */
static uint64_t exec_payload8(const struct packet *pk)
{
	uint64_t v = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < pk->n_segs; i++)
		for (uint32_t k = 0; k < pk->seg[i].len && n < sizeof(v); k++)
			((uint8_t *)&v)[n++] = pk->seg[i].base[k];
	return v;
}

/* An answer that is kept, so that a duplicate of the request is not carried out again. */
static void exec_answer(struct engine *e, struct qp *qp, const struct packet *pk, uint64_t orig)
{
	struct qp_resp *s = &qp->resp;

	s->msn = (s->msn + 1) & PSN_MASK;
	s->saved[s->saved_at] = (struct resp_saved) {
		.is_valid = true, .opcode = pk->opcode, .psn = s->epsn, .msn = s->msn, .orig = orig
	};
	s->saved_at = (s->saved_at + 1) % QP_MAX_RD_ATOMIC;
	resp_queue_append(e, qp,
			  &(struct resp_item) { .kind = RESP_ATOMIC,
						.syndrome = AETH_ACK_UNLIMITED,
						.opcode = resp_atomic_answer(pk->opcode),
						.msn = s->msn,
						.psn = s->epsn,
						.left = 1,
						.va = orig });
}

/* What came before is in memory that all share: placing it is all there is to do. */
static enum resp_verdict exec_flush(struct engine *e, struct qp *qp, const struct packet *pk)
{
	bool is_whole = pk->flush & FETH_REGION;

	if (resp_outstanding(qp) >= qp->attr.max_dest_rd_atomic || pk->dma_len > UROCE_MAX_MSG)
		return RESP_BAD_REQUEST;
	if (mr_flush_access(&e->mr, qp, qp->pd, pk->rkey, is_whole, pk->va, pk->dma_len) != MR_OK)
		return RESP_BAD_ACCESS;
	if (!place_flush(e) && !qp_can_receive(qp))
		return RESP_HANDLED;
	exec_answer(e, qp, pk, 0);
	return RESP_OK;
}

static enum resp_verdict exec_atomic(struct engine *e, struct qp *qp, const struct packet *pk)
{
	uint8_t op = pk->opcode & 0x1f;
	bool is_write = op == BTH_ATOMIC_WRITE;
	uint64_t operand = is_write ? exec_payload8(pk) : pk->swap_add;
	uint32_t access = is_write ? UROCE_ACCESS_REMOTE_WRITE : UROCE_ACCESS_REMOTE_ATOMIC;
	struct mem_vec vec;
	uint64_t orig;

	if (is_write && (pk->dma_len != 8 || pk->payload_len != 8))
		return RESP_BAD_REQUEST;
	if ((pk->va & 7) || resp_outstanding(qp) >= qp->attr.max_dest_rd_atomic)
		return RESP_BAD_REQUEST;
	if (mr_remote_access(&e->mr, qp, qp->pd, pk->rkey, access, pk->va, 8, &vec) != MR_OK)
		return RESP_BAD_ACCESS;
	if (!place_flush(e) && !qp_can_receive(qp))
		return RESP_HANDLED;
	if (e->ports.mem_atomic(e->ports.ctx, &vec, exec_atomic_op(op), operand, pk->compare,
				&orig))
		return RESP_BAD_ACCESS;
	engine_count(e, CNT_RX_ATOMIC_REQUESTS, 1);
	exec_answer(e, qp, pk, orig);
	return RESP_OK;
}

enum resp_verdict resp_execute(struct engine *e, struct qp *qp, const struct packet *pk)
{
	switch (pk->opcode & 0x1f) {
	case BTH_READ_REQUEST:
		return exec_read(e, qp, pk);
	case BTH_FLUSH:
		return exec_flush(e, qp, pk);
	case BTH_CMP_SWAP:
	case BTH_FETCH_ADD:
	case BTH_ATOMIC_WRITE:
		return exec_atomic(e, qp, pk);
	case BTH_WRITE_FIRST:
	case BTH_WRITE_MIDDLE:
	case BTH_WRITE_LAST:
	case BTH_WRITE_LAST_IMM:
	case BTH_WRITE_ONLY:
	case BTH_WRITE_ONLY_IMM:
		return exec_write(e, qp, pk);
	default:
		return exec_send(e, qp, pk);
	}
}
