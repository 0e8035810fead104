/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport timer of a requester: local ACK timeout, RNR wait, and their budgets. */
#include "dataplane/transport/core.h"

#define PROBES       4u
#define CALM_MAX     10u
#define NAKS_A_RETRY 8u

/* IBA vol. 1, table "Encoding for RNR NAK Timer Field": units of 10 us. */
static const uint32_t rnr_10us[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t retry_rnr_ns(uint8_t code)
{
	return (uint64_t)rnr_10us[code & 31] * 10000;
}

/* 4.096 us x 2^timeout (IBA vol. 1, 11.2.4.2); 0: wait for ever. */
static uint64_t ack_timeout_ns(const struct qp *qp)
{
	return qp->attr.timeout ? 4096ull << qp->attr.timeout : TIMER_NEVER;
}

static bool has_unacked(const struct qp *qp)
{
	return !psn_eq(qp->req.una_psn, qp->req.nxt_psn);
}

/* No answer for so long, while others come: what was sent again got lost too. */
uint64_t retry_patience(const struct qp *qp)
{
	return qp->req.srtt ? 4 * qp->req.srtt + 100000 : TIMER_NEVER;
}

/*
 * The tail of a burst has nothing behind it whose arrival would show its loss. So some round trips
 * after the last sign of life, and well before the timeout, its last packet is sent once more: the
 * peer answers with an ACK (it was our ACK that got lost) or a NAK. Not without a known round trip;
 * a second and third time, each after twice the time, since probes get lost as well.
 *
 * A peer that is only slow answers sooner than any answer to the probe can come, or twice, and then
 * the second is a ghost: either doubles the patience. A probe that draws neither was needed, and
 * halves it. So where processes wait for a core, and nothing gets lost, there are soon no probes,
 * and where packets get lost they come early.
 */
static uint64_t probe_at(const struct engine *e, const struct qp *qp)
{
	uint64_t delay = retry_patience(qp) + 4 * qp->req.rtt_var, most = ack_timeout_ns(qp) / 2;
	uint32_t twice = qp->req.n_probes + qp->req.calm;

	if (qp->req.n_probes == PROBES || delay > most >> qp->req.n_probes)
		return TIMER_NEVER;
	return e->now + (delay > most >> twice ? most : delay << twice);
}

static void probe_was_needed(struct qp_req *r)
{
	if (r->is_probe_out && r->calm)
		r->calm--;
	r->is_probe_out = false;
}

static void probe_was_needless(struct qp_req *r)
{
	if (r->is_probe_out && r->calm < CALM_MAX)
		r->calm++;
	r->is_probe_out = false;
}

/* An answer to what is acknowledged already. */
void retry_ghost(struct qp *qp)
{
	probe_was_needless(&qp->req);
}

static void set_timer(struct engine *e, struct qp *qp)
{
	uint64_t probe = probe_at(e, qp), ack_at = qp->req.ack_at;

	timer_set(&e->timers, &qp->timer, probe < ack_at ? probe : ack_at);
}

void retry_stop(struct engine *e, struct qp *qp)
{
	qp->req.is_timing = false;
	timer_stop(&e->timers, &qp->timer);
}

/* After sending, or after going back: the timer runs exactly while something is unacknowledged. */
void retry_arm(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	uint64_t t = ack_timeout_ns(qp);

	if (r->is_rnr_waiting)
		return;
	if (!has_unacked(qp)) {
		retry_stop(e, qp);
		return;
	}
	if (r->is_timing)
		return;
	r->is_timing = true;
	r->ack_at = t == TIMER_NEVER ? TIMER_NEVER : e->now + t;
	set_timer(e, qp);
}

/*
 * A packet that asks for an acknowledgement leaves: time it, unless one is being timed. Not behind
 * a READ: its answer waits for all the data before it, and that is no round trip.
 */
void retry_sent(struct engine *e, struct qp *qp, psn_t psn)
{
	struct qp_req *r = &qp->req;

	if (r->is_rtt_timed || r->rd_atomic || !psn_eq(psn, r->sent_psn))
		return;
	r->is_rtt_timed = true;
	r->rtt_psn = psn;
	r->rtt_at = e->now;
}

static void rtt_sample(const struct engine *e, struct qp_req *r, psn_t old_una)
{
	uint64_t rtt;

	if (!r->is_rtt_timed || psn_dist(old_una, r->rtt_psn) >= psn_dist(old_una, r->una_psn))
		return;
	rtt = e->now - r->rtt_at;
	if (r->srtt)
		r->rtt_var = (3 * r->rtt_var + (rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt)) / 4;
	r->srtt = r->srtt ? (7 * r->srtt + rtt) / 8 : rtt + 1;
	if (!r->rtt_min || rtt < r->rtt_min)
		r->rtt_min = rtt + 1;
	r->is_rtt_timed = false;
}

/* The peer acknowledged something new: both budgets are whole again, the time starts anew. */
void retry_progress(struct engine *e, struct qp *qp, psn_t old_una)
{
	struct qp_req *r = &qp->req;

	r->retry_left = qp->attr.retry_cnt;
	r->rnr_left = qp->attr.rnr_retry;
	r->is_rewound = false;
	r->n_rewinds = 0;
	r->n_probes = 0;
	r->is_asking = false;
	if (psn_diff(r->reads.heard_psn, r->una_psn) < 0)
		r->reads.heard_psn = r->una_psn;
	if (psn_diff(r->reads.asked_end, r->una_psn) < 0)
		r->reads.asked_end = r->una_psn;
	if (e->now - r->probed_at + 1 < r->rtt_min) /* which is one too many */
		probe_was_needless(r);
	rtt_sample(e, r, old_una);
	r->cwnd_acked += psn_dist(old_una, r->una_psn);
	r->cwnd += r->cwnd_acked / 4;
	r->cwnd_acked %= 4;
	if (r->cwnd > e->conf.window)
		r->cwnd = e->conf.window;
	if (r->is_rnr_waiting)
		return;
	retry_stop(e, qp);
	retry_arm(e, qp);
}

/* Something got lost, or what says so is wrong: times and probes no longer tell. */
void retry_missed(const struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	/* Until an ACK has come the first sign of loss says about how far away the peer is. */
	if (!r->rtt_min && r->is_rtt_timed)
		r->rtt_min = e->now - r->rtt_at + 1;
	r->is_rtt_timed = false;
	probe_was_needed(r);
}

/* Go-back-N sends all that flies again, so what flies is halved until the loss stays away. */
void retry_lost(const struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	uint32_t least = e->conf.window < ENGINE_CWND_MIN ? e->conf.window : ENGINE_CWND_MIN;

	retry_missed(e, qp);
	r->cwnd /= 2;
	if (r->cwnd < least)
		r->cwnd = least;
}

/*
 * NAKs count as retries too: a path that loses the packet at una each time, and not what follows,
 * never lets the timeout come. More generously than timeouts, as one loss may draw several.
 */
bool retry_may_rewind(struct engine *e, struct qp *qp)
{
	if (qp->req.n_rewinds++ < NAKS_A_RETRY * (qp->attr.retry_cnt + 1u))
		return true;
	engine_count(e, CNT_REQ_RETRIES_EXCEEDED, 1);
	requester_fail(e, qp, UROCE_WC_RETRY_EXC_ERR, UROCE_VERR_TIMEOUT);
	return false;
}

void retry_rnr(struct engine *e, struct qp *qp, uint8_t code)
{
	struct qp_req *r = &qp->req;

	engine_count(e, CNT_RNR_NAK_RETRY_ERR, 1);
	if (!r->rnr_left) {
		engine_count(e, CNT_REQ_RNR_EXCEEDED, 1);
		requester_fail(e, qp, UROCE_WC_RNR_RETRY_EXC_ERR, UROCE_VERR_RNR);
		return;
	}
	if (qp->attr.rnr_retry != 7)
		r->rnr_left--;
	r->retry_left = qp->attr.retry_cnt; /* whoever answers is alive */
	r->n_rewinds = 0;
	requester_rewind(e, qp);
	r->is_rnr_waiting = true;
	timer_set(&e->timers, &qp->timer, e->now + retry_rnr_ns(code));
}

/* The last packet again; or, where data of a READ or an atomic is due, the request for it. */
static void retry_probe(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	probe_was_needed(r); /* of the one before: no ghost has come of it */
	r->is_probe_out = true;
	r->probed_at = e->now;
	r->is_rtt_timed = false; /* an answer could be to either */
	if (wr_is_rd_atomic(qp_rec(qp, r->una)->op))
		r->is_asking = true;
	else
		requester_step_back(qp);
	sched_add(e, qp);
}

void retry_expire(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	if (!qp_can_send(qp)) {
		r->is_timing = false;
		return;
	}
	if (r->is_rnr_waiting) {
		r->is_rnr_waiting = false;
		sched_add(e, qp);
		return;
	}
	r->is_timing = false;
	if (!has_unacked(qp))
		return;
	if (e->now < r->ack_at) {
		r->is_timing = true;
		r->n_probes++;
		set_timer(e, qp);
		retry_probe(e, qp);
		return;
	}
	engine_count(e, CNT_LOCAL_ACK_TIMEOUT_ERR, 1);
	engine_trace(e, TRACE_TIMEOUT, qp, 0, r->una_psn.v, r->retry_left);
	if (!r->retry_left) {
		engine_count(e, CNT_REQ_RETRIES_EXCEEDED, 1);
		requester_fail(e, qp, UROCE_WC_RETRY_EXC_ERR, UROCE_VERR_TIMEOUT);
		return;
	}
	r->retry_left--;
	r->is_rewound = false;
	r->calm = 0; /* a probe might have told */
	retry_lost(e, qp);
	requester_rewind(e, qp);
	sched_add(e, qp);
}
