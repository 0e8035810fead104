/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completer's part for READs. A response is placed where its PSN says, also when others before
 * it are missing; of those only the missing run is asked for again, as a duplicate READ may name
 * any part of the original (IBA vol. 1, 9.7.5.1.3). What is asked for never begins before an
 * earlier request did: Linux rxe would not answer that.
 */
#include "dataplane/transport/core.h"

#define HOLD_MASK (READ_HOLD - 1)

static bool has_bit(const uint64_t *map, psn_t psn)
{
	return map[(psn.v & HOLD_MASK) / 64] >> (psn.v % 64) & 1;
}

static void set_bit(uint64_t *map, psn_t psn)
{
	map[(psn.v & HOLD_MASK) / 64] |= 1ull << (psn.v % 64);
}

static void clear_bit(uint64_t *map, psn_t psn)
{
	map[(psn.v & HOLD_MASK) / 64] &= ~(1ull << (psn.v % 64));
}

static psn_t read_end(const struct send_rec *rec)
{
	return psn_add(rec->psn, rec->n_psn);
}

/*
 * Does the packet look as the response at this offset must? (IBA vol. 1, 9.7.5.1 and 9.5) LAST and
 * ONLY end the READ, or a part of it that was asked for.
 */
static bool read_fits(const struct qp *qp, const struct packet *pk, uint32_t left)
{
	uint8_t op = pk->opcode & 0x1f;
	bool is_end = op == BTH_READ_RESP_LAST || op == BTH_READ_RESP_ONLY;

	if (pk->payload_len != (left > qp->mtu ? qp->mtu : left))
		return false;
	return left <= qp->mtu ? is_end : !is_end || has_bit(qp->req.reads.ends, psn_make(pk->psn));
}

/* The response at una is in place, or will be before the READ completes. False: the QP is in ERR.
 */
static bool read_pass(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	const struct send_rec *rec = qp_rec(qp, r->una);

	clear_bit(r->reads.held, r->una_psn);
	clear_bit(r->reads.ends, r->una_psn);
	if (r->rd_psns)
		r->rd_psns--;
	if (psn_dist(rec->psn, r->una_psn) + 1 < rec->n_psn) {
		r->una_psn = psn_add(r->una_psn, 1);
		return true;
	}
	if (!place_flush(e) && !qp_can_send(qp))
		return false;
	completer_finish(e, qp);
	requester_pass_local(e, qp);
	return true;
}

/* Asked for: what is missing before `end`. */
void comp_read_asked(const struct engine *e, struct qp *qp, psn_t end)
{
	struct qp_reads *d = &qp->req.reads;

	d->asked_end = end;
	d->asked_at = e->now;
	d->is_new = false;
}

/* Where the run that has to be asked for ends: behind the last response that is known missing. */
static psn_t missing_end(struct qp *qp)
{
	const struct qp_req *r = &qp->req;
	psn_t end = read_end(qp_rec(qp, r->una));

	if (psn_diff(r->reads.heard_psn, end) < 0)
		end = r->reads.heard_psn;
	if (psn_dist(r->una_psn, end) > READ_HOLD)
		return read_end(qp_rec(qp, r->una));
	while (psn_dist(r->una_psn, end) > 1 && has_bit(r->reads.held, psn_add(end, PSN_MASK)))
		end = psn_add(end, PSN_MASK);
	return end;
}

static void read_ask(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	psn_t end = missing_end(qp);

	engine_count(e, CNT_IMPLIED_NAK_SEQ_ERR, 1);
	if (!retry_may_rewind(e, qp))
		return;
	retry_missed(e, qp);
	comp_read_asked(e, qp, end);
	if (psn_dist(r->una_psn, end) <= READ_HOLD)
		set_bit(r->reads.ends, psn_add(end, PSN_MASK));
	r->reads.is_due = true;
	retry_stop(e, qp);
	retry_arm(e, qp);
	sched_add(e, qp);
}

/* Data at una, of a READ, is missing. is_lost: so it is although it was asked for. */
static void read_missing(struct engine *e, struct qp *qp, bool is_lost)
{
	struct qp_req *r = &qp->req;
	const struct qp_reads *d = &r->reads;
	uint64_t since = e->now - d->asked_at;

	if (r->is_rnr_waiting)
		return;
	if (psn_diff(d->asked_end, r->una_psn) > 0 && !(is_lost && since >= r->rtt_min / 2)) {
		/*
		 * The rest of the answer that has the gap may come first, however long it is. To
		 * ask once more would only lengthen what comes before the data we wait for.
		 */
		if ((!d->is_new && !d->is_preempted) || since < retry_patience(qp))
			return;
	}
	read_ask(e, qp);
}

/* On over all that is in place or acknowledged already; and what is missing there is asked for. */
void comp_read_follow(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	struct qp_reads *d = &r->reads;
	psn_t old = r->una_psn;

	while (qp_can_send(qp) && r->una != r->tail && psn_diff(d->heard_psn, r->una_psn) > 0) {
		const struct send_rec *rec = qp_rec(qp, r->una);

		if (r->is_failing && r->una == r->fail_at)
			break;
		if (!wr_is_rd_atomic(rec->op))
			completer_advance(e, qp, d->heard_psn);
		else if (!wr_is_read(rec->op) || !has_bit(d->held, r->una_psn) || !read_pass(e, qp))
			break;
	}
	if (!qp_can_send(qp))
		return;
	if (!psn_eq(old, r->una_psn)) {
		completer_fix_position(qp, old);
		retry_progress(e, qp, old);
	}
	if (psn_diff(d->heard_psn, r->una_psn) > 0 && psn_diff(d->asked_end, r->una_psn) <= 0 &&
	    r->una != r->tail && wr_is_read(qp_rec(qp, r->una)->op))
		read_missing(e, qp, false);
}

/* The response that is due. */
void comp_read(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct qp_req *r = &qp->req;
	const struct send_rec *rec = qp_rec(qp, r->una);
	uint32_t off = psn_dist(rec->psn, r->una_psn) * qp->mtu;
	psn_t old = r->una_psn;

	if (!read_fits(qp, pk, rec->len - off)) {
		requester_fail(e, qp, UROCE_WC_BAD_RESP_ERR, UROCE_VERR_BAD_RESPONSE);
		return;
	}
	r->reads.last_psn = r->una_psn;
	r->reads.wqe = r->una;
	if (!place_add(e, qp, PLACE_READ, off, pk, NULL) || !read_pass(e, qp))
		return;
	completer_fix_position(qp, old);
	retry_progress(e, qp, old);
	comp_read_follow(e, qp);
}

/* The READ that a PSN from beyond a gap belongs to, and its index; NULL: none. */
static const struct send_rec *read_of(const struct qp *qp, psn_t psn, uint32_t *index)
{
	const struct qp_req *r = &qp->req;

	for (uint32_t i = r->una; i != r->tail; i++) {
		const struct send_rec *rec = &qp->rec[i & (qp->sq_depth - 1)];

		*index = i;
		if (psn_within(psn, rec->psn, rec->n_psn))
			return wr_is_read(rec->op) ? rec : NULL;
	}
	return NULL;
}

/* Places a response from beyond a gap; false: it cannot be kept, or is there already. */
static bool read_hold(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct qp_req *r = &qp->req;
	psn_t psn = psn_make(pk->psn);
	const struct send_rec *rec;
	uint32_t off, wqe;

	if (psn_dist(r->una_psn, psn) >= READ_HOLD || has_bit(r->reads.held, psn))
		return false;
	rec = read_of(qp, psn, &wqe);
	if (!rec)
		return false;
	off = psn_dist(rec->psn, psn) * qp->mtu;
	if (!read_fits(qp, pk, rec->len - off))
		return false;
	r->reads.wqe = wqe;
	set_bit(r->reads.held, psn);
	return place_add(e, qp, PLACE_READ, off, pk, NULL);
}

static void read_heard(struct qp_reads *d, psn_t psn)
{
	if (psn_diff(psn, d->heard_psn) > 0)
		d->heard_psn = psn;
}

/*
 * Any READ response or atomic answer. The first that is no news shows that what was asked for anew
 * is coming: some peers break off the answer that has the gap for it (uroce does), others finish it
 * first (Linux rxe). Remembered, as it tells how long to wait the next time.
 */
void comp_read_seen(struct qp *qp, psn_t psn, uint8_t op)
{
	struct qp_reads *d = &qp->req.reads;

	if (psn_diff(d->asked_end, qp->req.una_psn) > 0 && !d->is_new &&
	    psn_diff(psn, d->heard_psn) < 0) {
		d->is_preempted = !d->is_end;
		d->is_new = true;
	}
	d->is_end = op != BTH_READ_RESP_FIRST && op != BTH_READ_RESP_MIDDLE;
}

/* An answer from beyond a gap. */
void comp_read_early(struct engine *e, struct qp *qp, const struct packet *pk, uint8_t op)
{
	struct qp_req *r = &qp->req;
	struct qp_reads *d = &r->reads;
	psn_t psn = psn_make(pk->psn);
	/* It runs backwards, or leaves something out of what came in order: the same is lost again.
	 */
	bool is_lost = psn_diff(psn, d->last_psn) <= 0 || psn_diff(d->last_psn, r->una_psn) < 0;

	d->last_psn = psn;
	if (op != BTH_ATOMIC_ACK && read_hold(e, qp, pk)) {
		read_heard(d, psn_add(psn, 1));
		if (!r->is_rnr_waiting) { /* else the timer is the wait's */
			retry_stop(e, qp);
			retry_arm(e, qp);
		}
	} else if (qp_can_send(qp)) {
		engine_count(e, CNT_DROP_RESP_SEQ, 1);
	}
	if (!qp_can_send(qp))
		return;
	if (wr_is_read(qp_rec(qp, r->una)->op))
		read_missing(e, qp, is_lost);
	else
		completer_go_back(e, qp, CNT_IMPLIED_NAK_SEQ_ERR, is_lost);
}

/* An ACK of all before `heard`, though data of a READ or atomic before it is missing. */
void comp_read_skipped(struct engine *e, struct qp *qp, psn_t heard)
{
	struct qp_req *r = &qp->req;

	r->reads.is_end = true; /* the peer is through with the answer */
	if (!wr_is_read(qp_rec(qp, r->una)->op)) {
		completer_go_back(e, qp, CNT_IMPLIED_NAK_SEQ_ERR, false);
		return;
	}
	read_heard(&r->reads, heard);
	read_missing(e, qp, false);
}

/* What was held could not be written: it comes again. */
void comp_read_forget(struct qp *qp)
{
	__builtin_memset(qp->req.reads.held, 0, sizeof(qp->req.reads.held));
}
