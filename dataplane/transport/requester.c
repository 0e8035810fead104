/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester: which packet of which WQE goes next, and building it. Packets are made from WQEs
 * each time they are sent; going back (requester_rewind) is only a change of position.
 */
#include <string.h>

#include "dataplane/abi/ring.h"
#include "dataplane/transport/core.h"

/* Request packets in flight; READ responses that are awaited do not count, they fly the other way.
 */
static uint32_t req_flying(const struct qp *qp)
{
	return psn_dist(qp->req.una_psn, qp->req.nxt_psn) - qp->req.rd_psns;
}

/* May (the rest of) this WQE be sent now? */
static bool req_may_send(const struct qp *qp, const struct send_rec *rec)
{
	const struct qp_req *r = &qp->req;

	if (r->cur_pkt == 0 && (rec->flags & UROCE_WQE_FENCE) && r->rd_atomic)
		return false;
	/* One may always go: the limit may have become 0 since this one was taken. */
	if (wr_is_rd_atomic(rec->op) && r->rd_atomic && r->rd_atomic >= qp->attr.max_rd_atomic)
		return false;
	/* IBA vol. 1, 9.7.2: never more than 2^23 PSNs outstanding, or old and new look the same.
	 */
	if (psn_dist(r->una_psn, r->nxt_psn) + (wr_is_read(rec->op) ? rec->n_psn : 1) > PSN_HALF)
		return false;
	return req_flying(qp) < qp->req.cwnd;
}

/* The WQE at the sending position, taken from the ring if need be; NULL: nothing to send now. */
static struct send_rec *req_current(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	struct send_rec *rec;

	if (!qp_can_send(qp) || r->is_rnr_waiting || qp->is_doomed)
		return NULL;
	if (r->cur == r->tail) {
		int got;

		if (qp->state != UROCE_QPS_RTS || r->is_failing)
			return NULL;
		got = wqe_take(e, qp);
		if (got < 0) {
			engine_count(e, CNT_BAD_RING, 1);
			qp_doom(e, qp);
		}
		if (got <= 0)
			return NULL;
		requester_check_failing(e, qp);
		if (!qp_can_send(qp))
			return NULL;
	}
	if (r->is_failing && r->cur == r->fail_at)
		return NULL;
	rec = qp_rec(qp, r->cur);
	return req_may_send(qp, rec) ? rec : NULL;
}

/* A local error of the WQE at cur, found while sending: it completes when all before it have. */
static void req_local_error(struct engine *e, struct qp *qp, uint8_t status, uint32_t verr)
{
	struct send_rec *rec = qp_rec(qp, qp->req.cur);

	rec->status = status;
	rec->verr = verr;
	qp->req.is_failing = true;
	qp->req.fail_at = qp->req.cur;
	requester_check_failing(e, qp);
}

/* Local operations that have been carried out complete when all before them have. */
void requester_pass_local(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	while (r->una != r->tail && qp_rec(qp, r->una)->is_done)
		completer_finish(e, qp);
}

static bool req_carry_out(struct engine *e, struct qp *qp, struct send_rec *rec)
{
	bool is_revoked = false;

	if (rec->op != UROCE_WR_BIND_MW)
		return mw_invalidate(e, qp, rec->imm);
	if (!mw_bind(e, qp, rec, &is_revoked))
		return false;
	rec->is_revoked = is_revoked;
	if (is_revoked)
		mw_grace_begin(e, qp);
	return true;
}

/*
 * BIND_MW or LOCAL_INV at cur; when we went back over it, it is not done twice. False: it failed,
 * or other engines are still at what it revoked.
 */
static bool req_local_op(struct engine *e, struct qp *qp, struct send_rec *rec)
{
	struct qp_req *r = &qp->req;

	if (!rec->is_done && !rec->is_revoked && !req_carry_out(e, qp, rec)) {
		req_local_error(e, qp, UROCE_WC_MW_BIND_ERR, UROCE_VERR_RKEY);
		return false;
	}
	if (rec->is_revoked && !rec->is_done && !mw_grace_is_over(e, qp)) {
		sched_add(e, qp);
		return false;
	}
	rec->is_done = true;
	r->cur++;
	requester_pass_local(e, qp);
	return true;
}

void requester_check_failing(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	struct send_rec *rec;

	if (!r->is_failing || r->una != r->fail_at)
		return;
	rec = qp_rec(qp, r->una);
	requester_fail(e, qp, rec->status, rec->verr);
}

void requester_fail(struct engine *e, struct qp *qp, uint8_t status, uint32_t verr)
{
	struct qp_req *r = &qp->req;

	if (r->una != r->tail) {
		qp_complete_send(e, qp, r->una, status, verr);
		r->una++;
	}
	if (qp_is_reliable(qp))
		qp_to_error(e, qp);
	else
		qp_to_sqe(e, qp);
}

void requester_check_drained(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	if (qp->state != UROCE_QPS_SQD || r->una != r->tail || r->is_drain_told)
		return;
	r->is_drain_told = true;
	if (qp->attr.en_sqd_async_notify)
		qp_event(e, qp, UROCE_EVENT_SQ_DRAINED);
}

void requester_rewind(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	retry_stop(e, qp);
	r->is_rtt_timed = false;
	r->is_asking = false;
	comp_read_asked(e, qp, r->sent_psn);
	r->reads.is_due = false;
	r->cur = r->una;
	r->cur_pkt = r->una == r->tail ? 0 : psn_dist(qp_rec(qp, r->una)->psn, r->una_psn);
	r->nxt_psn = r->una_psn;
	r->rd_atomic = 0;
	r->rd_psns = 0;
	r->since_ackreq = 0;
}

/* The last packet sent goes once more; its position becomes the sending position. */
void requester_step_back(struct qp *qp)
{
	struct qp_req *r = &qp->req;
	struct send_rec *rec;

	if (psn_eq(r->nxt_psn, r->una_psn))
		return;
	r->since_ackreq = ACKREQ_EVERY; /* whatever it is, it shall ask for an answer */
	if (r->cur_pkt) {
		r->cur_pkt--;
	} else {
		do
			rec = qp_rec(qp, --r->cur);
		while (!rec->n_psn);
		r->cur_pkt = rec->n_psn - 1;
		if (wr_is_rd_atomic(rec->op)) {
			r->cur_pkt = r->cur == r->una ? psn_dist(rec->psn, r->una_psn) : 0;
			r->rd_atomic -= r->rd_atomic > 0;
			if (wr_is_read(rec->op))
				r->rd_psns -= rec->n_psn - r->cur_pkt;
		}
	}
	r->nxt_psn = psn_add(qp_rec(qp, r->cur)->psn, r->cur_pkt);
}

static uint32_t pkt_len(const struct qp *qp, const struct send_rec *rec, uint32_t i)
{
	return i + 1 < rec->n_psn ? qp->mtu : rec->len - (rec->n_psn - 1) * qp->mtu;
}

static enum pkt_pos pkt_pos(const struct send_rec *rec, uint32_t i)
{
	if (rec->n_psn == 1)
		return PKT_ONLY;
	if (i == 0)
		return PKT_FIRST;
	return i + 1 == rec->n_psn ? PKT_LAST : PKT_MIDDLE;
}

/* Payload of k packets from cur_pkt on, into their frames, in one go. Bytes, or -UROCE_VERR_*. */
static int64_t req_gather(struct engine *e, struct qp *qp, const struct send_rec *rec,
			  struct frame *const *out, uint32_t k)
{
	const uint8_t *slot = qp->sq + (size_t)(qp->req.cur & (qp->sq_depth - 1)) * qp->sq_stride;
	uint64_t off = (uint64_t)qp->req.cur_pkt * qp->mtu, len = 0;
	struct uroce_sge sge[UROCE_MAX_SGE];
	struct mem_vec vec[UROCE_MAX_SGE];
	struct buf_vec buf[ENGINE_BURST];
	int n;

	for (uint32_t i = 0; i < k; i++) {
		buf[i] = (struct buf_vec) { out[i]->buf, pkt_len(qp, rec, qp->req.cur_pkt + i) };
		if (rec->flags & UROCE_WQE_INLINE)
			memcpy(buf[i].base, slot + sizeof(struct uroce_wqe) + off + len,
			       buf[i].len);
		len += buf[i].len;
	}
	if ((rec->flags & UROCE_WQE_INLINE) || !len)
		return (int64_t)len;
	memcpy(sge, slot + sizeof(struct uroce_wqe), rec->num_sge * sizeof(sge[0]));
	if (sge_total(sge, rec->num_sge) != rec->len)
		return -(int64_t)UROCE_VERR_WQE_CHANGED;
	n = sge_map(e, qp->pd, sge, rec->num_sge, 0, off, len, vec);
	if (n < 0)
		return n;
	if (e->ports.mem_read(e->ports.ctx, vec, (unsigned)n, buf, k))
		return -(int64_t)UROCE_VERR_APP_MEMORY;
	return (int64_t)len;
}

static void req_send(struct engine *e, struct qp *qp, struct packet *pk, psn_t psn, struct frame *f)
{
	struct qp_req *r = &qp->req;

	pk->pkey = 0xffff;
	pk->dest_qpn = qp->attr.dest_qp_num;
	pk->psn = psn.v;
	if (pk->payload_len) {
		f->seg[0] = (struct frame_seg) { f->buf, pk->payload_len };
		f->n_segs = 1;
	} else {
		f->n_segs = 0;
	}
	if (pk->ack_req)
		retry_sent(e, qp, psn);
	packet_build(pk, &qp->tmpl, f);
	engine_trace(e, TRACE_TX, qp, pk->opcode, pk->psn, pk->payload_len);
	engine_count(e, CNT_TX_PACKETS, 1);
	engine_count(e, CNT_TX_BYTES, frame_len(f));
	congest_sent(e, qp, frame_len(f));
	if (psn_dist(r->una_psn, psn) < psn_dist(r->una_psn, r->sent_psn))
		engine_count(e, CNT_RETRANSMITTED, 1);
}

static void req_advance(struct qp *qp, uint32_t n)
{
	struct qp_req *r = &qp->req;
	struct send_rec *rec = qp_rec(qp, r->cur);

	r->nxt_psn = psn_add(r->nxt_psn, n);
	r->cur_pkt += n;
	if (r->cur_pkt == rec->n_psn) {
		r->cur++;
		r->cur_pkt = 0;
	}
	if (psn_dist(r->una_psn, r->nxt_psn) > psn_dist(r->una_psn, r->sent_psn))
		r->sent_psn = r->nxt_psn;
}

/* READ and atomic requests: one packet. Of a READ, n packets of its answer from psn on. */
static void req_ask(struct engine *e, struct qp *qp, const struct send_rec *rec, psn_t psn,
		    uint32_t n, struct frame *f)
{
	uint32_t done = psn_dist(rec->psn, psn) * qp->mtu; /* of an atomic: 0 */
	uint32_t rest = rec->len - done;
	struct packet pk = {
		.opcode = qp_service(qp) | req_opcode(rec->op, PKT_ONLY),
		.xrc_srqn = rec->xrc_srqn,
		.ack_req = true,
		.va = rec->va + done,
		.rkey = rec->rkey,
		.dma_len = wr_is_read(rec->op) && (uint64_t)n * qp->mtu < rest ? n * qp->mtu : rest,
		.flush = rec->imm,
		.compare = rec->compare,
		.swap_add = rec->swap_add,
	};

	if (wr_is_atomic_write(rec->op)) {
		pk.payload_len = sizeof(rec->compare);
		memcpy(f->buf, &rec->compare, sizeof(rec->compare));
	}
	req_send(e, qp, &pk, psn, f);
}

static unsigned req_emit_rd_atomic(struct engine *e, struct qp *qp, struct send_rec *rec,
				   struct frame *f)
{
	struct qp_req *r = &qp->req;

	req_ask(e, qp, rec, r->nxt_psn, rec->n_psn - r->cur_pkt, f);
	r->rd_atomic++;
	if (wr_is_read(rec->op))
		r->rd_psns += rec->n_psn - r->cur_pkt;
	req_advance(qp, rec->n_psn - r->cur_pkt);
	return 1;
}

/* UC: what has left is complete; nothing is ever sent again. */
static void req_sent_is_done(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	r->una_psn = r->nxt_psn;
	if (r->una != r->cur)
		completer_finish(e, qp);
}

/* Often enough that the window never waits for an ACK nobody was asked for. */
static uint32_t ackreq_every(const struct qp_req *r)
{
	return r->cwnd / 4 < ACKREQ_EVERY ? r->cwnd / 4 : ACKREQ_EVERY;
}

static void req_emit_data(struct engine *e, struct qp *qp, const struct send_rec *rec,
			  struct frame *f)
{
	struct qp_req *r = &qp->req;
	enum pkt_pos pos = pkt_pos(rec, r->cur_pkt);
	bool is_last = pos == PKT_LAST || pos == PKT_ONLY;
	struct packet pk;

	packet_clear(&pk);
	pk.opcode = qp_service(qp) | req_opcode(rec->op, pos);
	pk.xrc_srqn = rec->xrc_srqn;
	pk.payload_len = pkt_len(qp, rec, r->cur_pkt);
	pk.va = rec->va;
	pk.rkey = rec->rkey;
	pk.dma_len = rec->len;
	pk.imm = pk.inv_rkey = rec->imm;
	pk.solicited = is_last && (rec->flags & UROCE_WQE_SOLICITED) && rec->op != UROCE_WR_WRITE;
	pk.ack_req = is_last || ++r->since_ackreq >= ackreq_every(r);
	if (pk.ack_req)
		r->since_ackreq = 0;
	pk.ack_req &= qp_is_reliable(qp);
	req_send(e, qp, &pk, r->nxt_psn, f);
	req_advance(qp, 1);
	if (!qp_is_reliable(qp))
		req_sent_is_done(e, qp);
}

static unsigned req_emit_wqe(struct engine *e, struct qp *qp, struct send_rec *rec,
			     struct frame *const *out, unsigned n)
{
	uint32_t k = rec->n_psn - qp->req.cur_pkt;
	uint32_t window = qp->req.cwnd - req_flying(qp);
	int64_t got;

	if (wr_is_rd_atomic(rec->op))
		return req_emit_rd_atomic(e, qp, rec, out[0]);
	if (k > n)
		k = n;
	if (k > window)
		k = window;
	got = req_gather(e, qp, rec, out, k);
	if (got < 0) {
		req_local_error(e, qp, UROCE_WC_LOC_PROT_ERR, (uint32_t)-got);
		return 0;
	}
	for (uint32_t i = 0; i < k; i++)
		req_emit_data(e, qp, rec, out[i]);
	return k;
}

/*
 * What is due at una once more, and nothing else: all of it as a probe, or the part of a READ that
 * is known to be missing. The sending position stays.
 */
static unsigned req_emit_again(struct engine *e, struct qp *qp, struct frame *f)
{
	struct qp_req *r = &qp->req;
	const struct send_rec *rec;
	bool is_probe = r->is_asking;
	psn_t end;

	if (!is_probe && !r->reads.is_due)
		return 0;
	r->is_asking = r->reads.is_due = false;
	if (!qp_can_send(qp) || r->is_rnr_waiting || psn_eq(r->una_psn, r->nxt_psn))
		return 0;
	rec = qp_rec(qp, r->una);
	if (!wr_is_rd_atomic(rec->op))
		return 0;
	end = psn_add(rec->psn, rec->n_psn);
	if (is_probe && wr_is_read(rec->op))
		comp_read_asked(e, qp, end);
	else if (!is_probe && psn_diff(r->reads.asked_end, end) < 0)
		end = r->reads.asked_end;
	if (psn_diff(end, r->una_psn) <= 0)
		return 0;
	req_ask(e, qp, rec, r->una_psn, psn_dist(r->una_psn, end), f);
	return 1;
}

/* Local operations are bounded too: who posts as fast as we take must not hold the engine. */
unsigned requester_emit(struct engine *e, struct qp *qp, struct frame *const *out, unsigned n)
{
	unsigned done = 0, n_local = 0;

	if (!qp->sq_depth)
		return 0;
	if (qp->type == UROCE_QPT_UD)
		return ud_emit(e, qp, out, n);
	if (n > ENGINE_BURST)
		n = ENGINE_BURST;
	n = congest_room(e, qp, n);
	if (n)
		done = req_emit_again(e, qp, out[0]);
	while (done < n) {
		struct send_rec *rec = req_current(e, qp);
		unsigned k;

		if (rec && wr_is_local(rec->op) && req_local_op(e, qp, rec)) {
			if (++n_local < ENGINE_BURST)
				continue;
			sched_add(e, qp);
			break;
		}
		k = rec && !wr_is_local(rec->op) ? req_emit_wqe(e, qp, rec, out + done, n - done)
						 : 0;
		if (!k)
			break;
		done += k;
	}
	if (done)
		retry_arm(e, qp);
	requester_check_drained(e, qp);
	return done;
}
