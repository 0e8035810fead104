/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport timer of a requester: local ACK timeout, RNR wait, and their budgets. */
#include "dataplane/transport/core.h"

/* IBA vol. 1, table "Encoding for RNR NAK Timer Field": units of 10 us. */
static const uint32_t rnr_10us[32] = {
	65536, 1,   2,   3,   4,   6,	 8,    12,   16,   24,	 32,   48,   64,   96,	 128,	192,
	256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
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

/* After sending, or after going back: the timer runs exactly while something is unacknowledged. */
void retry_arm(struct engine *e, struct qp *qp)
{
	uint64_t t = ack_timeout_ns(qp);

	if (qp->req.is_rnr_waiting)
		return;
	if (!has_unacked(qp) || t == TIMER_NEVER)
		timer_stop(&e->timers, &qp->timer);
	else if (qp->timer.at == TIMER_NEVER)
		timer_set(&e->timers, &qp->timer, e->now + t);
}

/* The peer acknowledged something new: both budgets are whole again, the time starts anew. */
void retry_progress(struct engine *e, struct qp *qp)
{
	qp->req.retry_left = qp->attr.retry_cnt;
	qp->req.rnr_left = qp->attr.rnr_retry;
	qp->req.is_rewound = false;
	if (qp->req.is_rnr_waiting)
		return;
	timer_stop(&e->timers, &qp->timer);
	retry_arm(e, qp);
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
	requester_rewind(e, qp);
	r->is_rnr_waiting = true;
	timer_set(&e->timers, &qp->timer, e->now + retry_rnr_ns(code));
}

void retry_expire(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;

	if (!qp_can_send(qp))
		return;
	if (r->is_rnr_waiting) {
		r->is_rnr_waiting = false;
		sched_add(e, qp);
		return;
	}
	if (!has_unacked(qp))
		return;
	engine_count(e, CNT_LOCAL_ACK_TIMEOUT_ERR, 1);
	engine_trace(e, TRACE_TIMEOUT, qp, 0, r->una_psn.v, r->retry_left);
	if (!r->retry_left) {
		engine_count(e, CNT_REQ_RETRIES_EXCEEDED, 1);
		requester_fail(e, qp, UROCE_WC_RETRY_EXC_ERR, UROCE_VERR_TIMEOUT);
		return;
	}
	r->retry_left--;
	r->is_rewound = false;
	requester_rewind(e, qp);
	sched_add(e, qp);
}
