/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: inbound requests of an RC QP. Checks run in the order of IBA vol. 1, 9.7.4.1
 * (figure "Inbound request packet validation"); the first failure is the verdict and one table says
 * what a verdict does.
 */
#include "dataplane/transport/core.h"

enum resp_reply { REPLY_NONE, REPLY_ACK, REPLY_NAK }; /* RESP_OK acknowledges when asked to */

/* clang-format off */
static const struct {
	enum resp_reply reply;
	uint8_t syndrome;       /* of the NAK */
	bool quiet;             /* nothing more until the expected PSN arrives */
	bool qp_to_err;
	uint32_t event;         /* 0: none */
	enum counter counter;
} resp_outcome[RESP_N_VERDICTS] = {
	/*                      reply       syndrome          quiet  err    event                      counter */
	[RESP_OK]          = { REPLY_NONE, 0,                false, false, 0,                         CNT_N },
	[RESP_DUPLICATE]   = { REPLY_ACK,  0,                false, false, 0,                         CNT_DUPLICATE_REQUEST },
	[RESP_SEQ_GAP]     = { REPLY_NAK,  AETH_NAK_SEQ,     true,  false, 0,                         CNT_OUT_OF_SEQUENCE },
	[RESP_AFTER_NAK]   = { REPLY_NONE, 0,                false, false, 0,                         CNT_DROP_AFTER_NAK },
	[RESP_RNR]         = { REPLY_NAK,  AETH_RNR_CODE(0), true,  false, 0,                         CNT_OUT_OF_BUFFER },
	[RESP_BAD_REQUEST] = { REPLY_NAK,  AETH_NAK_INV_REQ, false, true,  UROCE_EVENT_QP_REQ_ERR,    CNT_RESP_REMOTE_INVALID_REQUEST },
	[RESP_BAD_ACCESS]  = { REPLY_NAK,  AETH_NAK_ACCESS,  false, true,  UROCE_EVENT_QP_ACCESS_ERR, CNT_RESP_REMOTE_ACCESS_ERRORS },
	[RESP_OP_ERROR]    = { REPLY_NAK,  AETH_NAK_OP,      false, true,  UROCE_EVENT_QP_FATAL,      CNT_RESP_REMOTE_OP_ERRORS },
	[RESP_RECV_SHORT]  = { REPLY_NAK,  AETH_NAK_INV_REQ, false, true,  0,                         CNT_RESP_LOCAL_LENGTH_ERROR },
	[RESP_RECV_BROKEN] = { REPLY_NAK,  AETH_NAK_OP,      false, true,  0,                         CNT_RESP_REMOTE_OP_ERRORS },
	[RESP_RECV_INVAL]  = { REPLY_NONE, 0,                false, true,  0,                         CNT_N },
	[RESP_DROP_REPLAY] = { REPLY_NONE, 0,                false, false, 0,                         CNT_DROP_REPLAY },
	[RESP_HANDLED]     = { REPLY_NONE, 0,                false, false, 0,                         CNT_N },
};
/* clang-format on */

void responder_apply(struct engine *e, struct qp *qp, enum resp_verdict v, psn_t psn)
{
	uint8_t syndrome = resp_outcome[v].syndrome;
	bool is_recv_error = v == RESP_RECV_SHORT || v == RESP_RECV_BROKEN || v == RESP_RECV_INVAL;

	if (resp_outcome[v].counter != CNT_N)
		engine_count(e, resp_outcome[v].counter, 1);
	if (!qp_is_reliable(
		    qp)) { /* UC: no answers; only a fault of our own receive stops the QP */
		if (is_recv_error)
			qp_to_error(e, qp);
		return;
	}
	if (v == RESP_RNR) {
		syndrome = AETH_RNR_CODE(qp->attr.min_rnr_timer);
		qp->resp.early_psn = psn; /* what follows it is no restart */
	}
	if (resp_outcome[v].reply == REPLY_NAK)
		resp_queue_nak(e, qp, syndrome, psn);
	else if (resp_outcome[v].reply == REPLY_ACK)
		resp_queue_ack(e, qp);
	if (resp_outcome[v].quiet)
		qp->resp.is_nak_sent = true;
	if (resp_outcome[v].event)
		qp_event(e, qp, resp_outcome[v].event);
	if (resp_outcome[v].qp_to_err)
		qp_to_error(e, qp);
}

/* C9-67 and following: expected, duplicate or out of sequence. */
static enum resp_verdict resp_check_psn(struct qp *qp, psn_t psn)
{
	struct qp_resp *s = &qp->resp;
	int32_t d = psn_diff(psn, s->epsn);
	bool is_restart = psn_diff(psn, s->early_psn) <= 0;

	if (d == 0)
		return RESP_OK;
	if (d < 0)
		return RESP_DUPLICATE;
	/* One NAK a gap. PSNs that run backwards: the requester began again and lost epsn once
	 * more. */
	s->early_psn = psn;
	return s->is_nak_sent && !is_restart ? RESP_AFTER_NAK : RESP_SEQ_GAP;
}

/* Which message a request continues; MSG_NONE: it begins one (or is one). */
static enum resp_msg resp_continues(uint8_t op)
{
	switch (op) {
	case BTH_SEND_MIDDLE:
	case BTH_SEND_LAST:
	case BTH_SEND_LAST_IMM:
	case BTH_SEND_LAST_INV:
		return MSG_SEND;
	case BTH_WRITE_MIDDLE:
	case BTH_WRITE_LAST:
	case BTH_WRITE_LAST_IMM:
		return MSG_WRITE;
	default:
		return MSG_NONE;
	}
}

/* Opcode sequence and the packet's own length against the path MTU. */
static enum resp_verdict resp_check_sequence(const struct qp *qp, const struct packet *pk)
{
	uint16_t flags = opcode_get(pk->opcode)->flags;
	uint8_t op = pk->opcode & 0x1f;

	if (resp_continues(op) != qp->resp.msg)
		return RESP_BAD_REQUEST;
	if (!(flags & OPC_PAYLOAD))
		return RESP_OK;
	if (pk->payload_len > qp->mtu)
		return RESP_BAD_REQUEST;
	if (!(flags & OPC_LAST) && pk->payload_len != qp->mtu)
		return RESP_BAD_REQUEST;
	if ((flags & OPC_LAST) && !(flags & OPC_FIRST) && !pk->payload_len)
		return RESP_BAD_REQUEST;
	return RESP_OK;
}

/* Memory that outlives its owner is not ours to promise; the reserved bits mean nothing. */
static enum resp_verdict resp_check_flush(uint32_t access, uint32_t flush)
{
	if ((flush & FETH_PLACEMENT) != FETH_GLOBAL || (flush & FETH_SELECTION) > FETH_REGION)
		return RESP_BAD_REQUEST;
	return access & UROCE_ACCESS_FLUSH_GLOBAL ? RESP_OK : RESP_BAD_REQUEST;
}

/* Is this operation supported, and enabled on this QP? */
static enum resp_verdict resp_check_operation(const struct qp *qp, const struct packet *pk)
{
	uint32_t access = qp->attr.access;

	switch (pk->opcode & 0x1f) {
	case BTH_SEND_FIRST:
	case BTH_SEND_MIDDLE:
	case BTH_SEND_LAST:
	case BTH_SEND_LAST_IMM:
	case BTH_SEND_LAST_INV:
	case BTH_SEND_ONLY:
	case BTH_SEND_ONLY_IMM:
	case BTH_SEND_ONLY_INV:
		return RESP_OK;
	case BTH_WRITE_FIRST:
	case BTH_WRITE_MIDDLE:
	case BTH_WRITE_LAST:
	case BTH_WRITE_LAST_IMM:
	case BTH_WRITE_ONLY:
	case BTH_WRITE_ONLY_IMM:
		return access & UROCE_ACCESS_REMOTE_WRITE ? RESP_OK : RESP_BAD_REQUEST;
	case BTH_READ_REQUEST:
		return access & UROCE_ACCESS_REMOTE_READ ? RESP_OK : RESP_BAD_REQUEST;
	case BTH_FLUSH:
		return resp_check_flush(access, pk->flush);
	case BTH_ATOMIC_WRITE:
		return access & UROCE_ACCESS_REMOTE_WRITE ? RESP_OK : RESP_BAD_REQUEST;
	case BTH_CMP_SWAP:
	case BTH_FETCH_ADD:
		return access & UROCE_ACCESS_REMOTE_ATOMIC ? RESP_OK : RESP_BAD_REQUEST;
	default:
		return RESP_BAD_REQUEST;
	}
}

enum resp_verdict resp_check_request(struct engine *e, struct qp *qp, const struct packet *pk)
{
	enum resp_verdict v = resp_check_sequence(qp, pk);

	if (v == RESP_OK && qp_is_xrc_recv(qp) && !xrc_select(e, qp, pk))
		return RESP_BAD_REQUEST;
	return v == RESP_OK ? resp_check_operation(qp, pk) : v;
}

static enum resp_verdict resp_duplicate(struct engine *e, struct qp *qp, const struct packet *pk)
{
	uint8_t op = pk->opcode & 0x1f;

	if (op == BTH_READ_REQUEST || op == BTH_CMP_SWAP || op == BTH_FETCH_ADD ||
	    op == BTH_ATOMIC_WRITE || op == BTH_FLUSH)
		return resp_replay(e, qp, pk);
	return RESP_DUPLICATE;
}

/* The PSNs a request uses: a READ's responses take one each. */
static uint32_t resp_psns(const struct qp *qp, const struct packet *pk)
{
	return (pk->opcode & 0x1f) == BTH_READ_REQUEST ? packets_of(pk->dma_len, qp->mtu) : 1;
}

static void resp_done(struct engine *e, struct qp *qp, const struct packet *pk)
{
	uint16_t flags = opcode_get(pk->opcode)->flags;
	struct qp_resp *s = &qp->resp;

	s->epsn = psn_add(s->epsn, resp_psns(qp, pk));
	if (flags & OPC_LAST)
		s->msg = MSG_NONE;
	if (!pk->ack_req || !(flags & OPC_PAYLOAD) || (pk->opcode & 0x1f) == BTH_ATOMIC_WRITE)
		return;
	/* It says that the data is in place, and leaves when engine_rx has seen to that. */
	resp_queue_ack(e, qp);
}

void resp_comm_est(struct engine *e, struct qp *qp)
{
	if (qp->state != UROCE_QPS_RTR || qp->resp.is_comm_est_told)
		return;
	qp->resp.is_comm_est_told = true;
	qp_event(e, qp, UROCE_EVENT_COMM_EST);
}

void responder_rx(struct engine *e, struct qp *qp, const struct packet *pk)
{
	psn_t psn = psn_make(pk->psn);
	enum resp_verdict v;

	if (!qp_can_receive(qp)) {
		engine_count(e, CNT_DROP_QP_STATE, 1);
		return;
	}
	resp_comm_est(e, qp);
	v = resp_check_psn(qp, psn);
	if (v == RESP_DUPLICATE) {
		responder_apply(e, qp, resp_duplicate(e, qp, pk), qp->resp.epsn);
		return;
	}
	if (v == RESP_OK) {
		qp->resp.is_nak_sent = false;
		v = resp_check_request(e, qp, pk);
	}
	if (v == RESP_OK)
		v = resp_execute(e, qp, pk);
	if (v == RESP_OK)
		resp_done(e, qp, pk);
	else
		responder_apply(e, qp, v, qp->resp.epsn);
}
