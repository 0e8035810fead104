/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completer: answers to our requests. Every answer acknowledges all PSNs before its own, except
 * that READs and atomics are only done by their data: an answer from beyond one that is still open
 * says that its data was lost (an implied NAK, IBA vol. 1, 9.7.5.2.x "implied NAK").
 */
#include "dataplane/transport/core.h"

/* Completes WQE una; its PSNs are all acknowledged. */
void completer_finish(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	struct send_rec *rec = qp_rec(qp, r->una);

	if (wr_is_rd_atomic(rec->op) && r->rd_atomic)
		r->rd_atomic--;
	r->una_psn = psn_add(rec->psn, rec->n_psn);
	qp_complete_send(e, qp, r->una, UROCE_WC_SUCCESS, UROCE_VERR_NONE);
	r->una++;
}

/* The sending position must not lie before what is acknowledged (we had gone back too far). */
void completer_fix_position(struct qp *qp, psn_t old_una)
{
	struct qp_req *r = &qp->req;

	if (psn_dist(old_una, r->nxt_psn) >= psn_dist(old_una, r->una_psn) &&
	    (int32_t)(r->cur - r->una) >= 0)
		return;
	r->cur = r->una;
	r->cur_pkt = r->una == r->tail ? 0 : psn_dist(qp_rec(qp, r->una)->psn, r->una_psn);
	r->nxt_psn = r->una_psn;
}

/*
 * Everything before `to` is acknowledged. False: a READ or atomic before it has not been answered;
 * una stands there.
 */
bool completer_advance(struct engine *e, struct qp *qp, psn_t to)
{
	struct qp_req *r = &qp->req;
	psn_t old = r->una_psn;
	bool is_reached = true;

	while (!psn_eq(r->una_psn, to) && r->una != r->tail) {
		struct send_rec *rec = qp_rec(qp, r->una);
		uint32_t left = psn_dist(r->una_psn, psn_add(rec->psn, rec->n_psn));

		if (wr_is_rd_atomic(rec->op)) {
			is_reached = false;
			break;
		}
		if (psn_dist(r->una_psn, to) < left) {
			r->una_psn = to;
			break;
		}
		completer_finish(e, qp);
		requester_pass_local(e, qp);
	}
	if (!psn_eq(old, r->una_psn)) {
		completer_fix_position(qp, old);
		retry_progress(e, qp, old);
	}
	return is_reached;
}

/*
 * Something at una is missing: go back there. Once for each place, since all that was in flight
 * tells of the same loss; unless a round trip later there is news that what was sent again got lost
 * too.
 */
void completer_go_back(struct engine *e, struct qp *qp, enum counter why, bool is_news)
{
	struct qp_req *r = &qp->req;
	uint64_t since = e->now - r->rewound_at;

	if (r->is_rnr_waiting) /* we are there already, and the timer is the wait's */
		return;
	if (r->is_rewound && psn_eq(r->rewound_psn, r->una_psn) && since < retry_patience(qp) &&
	    !(is_news && since >= r->rtt_min / 2)) {
		engine_count(e, CNT_DROP_RESP_SEQ, 1);
		return;
	}
	engine_count(e, why, 1);
	if (!retry_may_rewind(e, qp))
		return;
	retry_lost(e, qp);
	requester_rewind(e, qp);
	r->is_rewound = true;
	r->rewound_psn = r->una_psn;
	r->rewound_at = e->now;
}

static void comp_fatal_nak(struct engine *e, struct qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_INV_REQ:
		engine_count(e, CNT_REQ_REMOTE_INVALID_REQUEST, 1);
		requester_fail(e, qp, UROCE_WC_REM_INV_REQ_ERR, UROCE_VERR_NAK);
		return;
	case AETH_NAK_ACCESS:
		engine_count(e, CNT_REQ_REMOTE_ACCESS_ERRORS, 1);
		requester_fail(e, qp, UROCE_WC_REM_ACCESS_ERR, UROCE_VERR_NAK);
		return;
	case AETH_NAK_OP:
		engine_count(e, CNT_REQ_REMOTE_OP_ERRORS, 1);
		requester_fail(e, qp, UROCE_WC_REM_OP_ERR, UROCE_VERR_NAK);
		return;
	default:
		engine_count(e, CNT_DROP_SYNDROME, 1);
		return;
	}
}

static void comp_nak(struct engine *e, struct qp *qp, const struct packet *pk)
{
	if (!completer_advance(e, qp, psn_make(pk->psn))) {
		completer_go_back(e, qp, CNT_IMPLIED_NAK_SEQ_ERR, false);
		return;
	}
	if (AETH_TYPE(pk->syndrome) == AETH_RNR) {
		if (!qp->req.is_rnr_waiting)
			retry_rnr(e, qp, pk->syndrome & 0x1f);
	} else if (pk->syndrome == AETH_NAK_SEQ) {
		completer_go_back(e, qp, CNT_PACKET_SEQ_ERR, true);
	} else {
		comp_fatal_nak(e, qp, pk->syndrome);
	}
}

static void comp_ack(struct engine *e, struct qp *qp, const struct packet *pk)
{
	switch (AETH_TYPE(pk->syndrome)) {
	case AETH_ACK:
		if (!completer_advance(e, qp, psn_add(psn_make(pk->psn), 1)))
			comp_read_skipped(e, qp, psn_add(psn_make(pk->psn), 1));
		return;
	case AETH_RNR:
	case AETH_NAK:
		comp_nak(e, qp, pk);
		return;
	default:
		engine_count(e, CNT_DROP_SYNDROME, 1);
		return;
	}
}

static void comp_atomic(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct qp_req *r = &qp->req;
	uint64_t value = pk->atomic_orig;
	psn_t old = r->una_psn;
	struct packet data = {
		.psn = pk->psn,
		.payload_len = sizeof(value),
		.n_segs = 1,
		.seg = { { (uint8_t *)&value, sizeof(value) } },
	};

	r->reads.wqe = r->una;
	if (!place_add(e, qp, PLACE_READ, 0, &data, NULL) || (!place_flush(e) && !qp_can_send(qp)))
		return;
	completer_finish(e, qp);
	requester_pass_local(e, qp);
	completer_fix_position(qp, old);
	retry_progress(e, qp, old);
	comp_read_follow(e, qp);
}

/* Does an answer of this kind belong to that request? */
static bool comp_answers(const struct send_rec *rec, uint8_t op)
{
	if (op == BTH_ATOMIC_ACK || wr_is_atomic(rec->op))
		return op == BTH_ATOMIC_ACK && wr_is_atomic(rec->op);
	return wr_is_read(rec->op) || op == BTH_READ_RESP_ONLY;
}

/* An ATOMIC WRITE or a FLUSH has been carried out. */
static void comp_carried_out(struct engine *e, struct qp *qp)
{
	psn_t old = qp->req.una_psn;

	completer_finish(e, qp);
	requester_pass_local(e, qp);
	completer_fix_position(qp, old);
	retry_progress(e, qp, old);
	comp_read_follow(e, qp);
}

/* A READ response or an atomic answer: the one that is due at una, or one from beyond a gap. */
static void comp_data(struct engine *e, struct qp *qp, const struct packet *pk, uint8_t op)
{
	struct qp_req *r = &qp->req;
	struct send_rec *rec;

	comp_read_seen(qp, psn_make(pk->psn), op);
	if (!completer_advance(e, qp, psn_make(pk->psn))) {
		comp_read_early(e, qp, pk, op);
		return;
	}
	rec = qp_rec(qp, r->una);
	if (!psn_within(psn_make(pk->psn), rec->psn, rec->n_psn) || !comp_answers(rec, op)) {
		engine_count(e, CNT_DROP_RESP_SEQ, 1);
		return;
	}
	if (wr_is_atomic(rec->op))
		comp_atomic(e, qp, pk);
	else if (!wr_is_read(rec->op))
		comp_carried_out(e, qp);
	else
		comp_read(e, qp, pk);
}

void completer_rx(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct qp_req *r = &qp->req;
	uint8_t op = pk->opcode & 0x1f;

	if (!qp_can_send(qp)) {
		engine_count(e, CNT_DROP_QP_STATE, 1);
		return;
	}
	/* Answers to what is acknowledged already, or was never sent: ghosts (IBA vol. 1, 9.7.5.1).
	 */
	if (psn_dist(r->una_psn, psn_make(pk->psn)) >= psn_dist(r->una_psn, r->sent_psn)) {
		engine_count(e, CNT_DROP_GHOST, 1);
		retry_ghost(qp);
		return;
	}
	if (op == BTH_ACKNOWLEDGE)
		comp_ack(e, qp, pk);
	else
		comp_data(e, qp, pk, op);
	if (!qp_can_send(qp))
		return;
	requester_check_failing(e, qp);
	requester_check_drained(e, qp);
	if (qp_can_send(qp))
		sched_add(e, qp);
}
