/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs: creation, the error state and its flush, reset, and their completions. */
#include "dataplane/transport/qp.h"

#include <errno.h>
#include <string.h>

#include "dataplane/abi/ring.h"
#include "dataplane/transport/core.h"

size_t engine_qp_size(uint32_t sq_depth)
{
	return sizeof(struct qp) + (size_t)sq_depth * sizeof(struct send_rec);
}

static struct qp **qp_slot(const struct engine *e, uint32_t qpn)
{
	return &e->qp[qpn & (e->conf.max_qp - 1)];
}

struct qp *qp_find(const struct engine *e, uint32_t qpn)
{
	struct qp *qp = *qp_slot(e, qpn);

	return qp && qp->qpn == qpn ? qp : NULL;
}

static bool is_pow2_or_0(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

static int qp_check_add(const struct cmd_qp_add *c)
{
	size_t wqe = sizeof(struct uroce_wqe) + c->cap.max_send_sge * sizeof(struct uroce_sge);
	size_t inl = sizeof(struct uroce_wqe) + c->cap.max_inline;
	size_t rqe = sizeof(struct uroce_rqe) + c->cap.max_recv_sge * sizeof(struct uroce_sge);

	if (c->type != UROCE_QPT_RC && c->type != UROCE_QPT_UC && c->type != UROCE_QPT_UD &&
	    c->type != UROCE_QPT_XRC_SEND && c->type != UROCE_QPT_XRC_RECV)
		return -EOPNOTSUPP;
	if (c->type == UROCE_QPT_XRC_RECV)
		return c->sq_depth || c->rq_depth || !c->xrcd ? -EINVAL : 0;
	if (c->cap.max_send_sge > UROCE_MAX_SGE || c->cap.max_recv_sge > UROCE_MAX_SGE ||
	    c->cap.max_inline > UROCE_MAX_INLINE)
		return -EINVAL;
	if (!is_pow2_or_0(c->sq_depth) || !is_pow2_or_0(c->rq_depth))
		return -EINVAL;
	if (c->sq_depth && (c->sq_stride < wqe || c->sq_stride < inl))
		return -EINVAL;
	if (c->rq_depth && c->rq_stride < rqe)
		return -EINVAL;
	return 0;
}

static bool qp_is_xrc_type(uint32_t type)
{
	return type == UROCE_QPT_XRC_SEND || type == UROCE_QPT_XRC_RECV;
}

/* A QP counts as a user of its CQs and of its SRQ; XRC receive QPs have neither. */
static void qp_count_users(struct qp *qp, int n)
{
	if (qp->send_cq)
		qp->send_cq->users += n;
	if (qp->recv_cq && !qp_is_xrc_recv(qp))
		qp->recv_cq->users += n;
	if (qp->srq && !qp_is_xrc_recv(qp))
		qp->srq->users += n;
}

int qp_add(struct engine *e, const struct cmd_qp_add *c)
{
	struct qp **slot = qp_slot(e, c->qpn);
	struct cq *scq = cq_find(e, c->send_cqn), *rcq = cq_find(e, c->recv_cqn);
	struct qp *qp = c->mem;
	struct srq *srq = srq_find(e, c->srqn);
	int err = qp_check_add(c);

	if (err)
		return err;
	if (*slot)
		return -EEXIST;
	if ((!scq && c->type != UROCE_QPT_XRC_RECV) || (!rcq && !qp_is_xrc_type(c->type)) ||
	    (c->srqn && !srq))
		return -ENOENT;
	qp->qpn = c->qpn;
	qp->type = c->type;
	qp->pd = c->pd;
	qp->owner = c->owner;
	qp->slot = c->slot;
	qp->is_sig_all = c->sq_sig_all;
	qp->token = c->token;
	qp->sq_depth = c->sq_depth;
	qp->rq_depth = c->rq_depth;
	qp->sq_stride = c->sq_stride;
	qp->rq_stride = c->rq_stride;
	qp->page = c->page;
	qp->sq = c->sq;
	qp->rq = c->rq;
	qp->send_cq = scq;
	qp->recv_cq = rcq;
	qp->srq = c->srqn ? srq : NULL;
	qp->mtu = e->conf.ud_mtu;
	qp->attr.cap = c->cap;
	qp->timer.at = qp->pace.at = TIMER_NEVER;
	qp->xrcd = c->xrcd;
	qp_count_users(qp, 1);
	*slot = qp;
	return 0;
}

/* Forget all traffic; what remains is what creation gave. */
void qp_reset(struct engine *e, struct qp *qp)
{
	struct uroce_qp_cap cap = qp->attr.cap;

	sched_remove(e, qp);
	timer_remove(&e->timers, &qp->timer);
	congest_reset(e, qp);
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->resp, 0, sizeof(qp->resp));
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.cap = cap;
	uroce_qp_set_want(qp->page, 0);
}

int qp_del(struct engine *e, uint32_t qpn, uint32_t *events_sent)
{
	struct qp *qp = qp_find(e, qpn);

	if (!qp)
		return -ENOENT;
	qp_reset(e, qp);
	mcast_forget(e, qpn);
	qp_count_users(qp, -1);
	*qp_slot(e, qpn) = NULL;
	*events_sent = qp->events_sent;
	return 0;
}

void qp_set_state(struct engine *e, struct qp *qp, enum uroce_qps next)
{
	engine_trace(e, TRACE_QP_STATE, qp, 0, 0, next);
	qp->state = next;
}

void qp_event(struct engine *e, struct qp *qp, uint32_t type)
{
	qp->events_sent++;
	e->ports.event(e->ports.ctx, &(struct engine_event) { .element = qp->token,
							      .owner = qp->owner,
							      .type = type,
							      .qpn = qp->qpn });
}

/* A completion was lost or the ring is broken: the QP cannot go on. Done when the entry ends. */
void qp_doom(struct engine *e, struct qp *qp)
{
	if (qp->is_doomed || qp->state == UROCE_QPS_ERR)
		return;
	qp->is_doomed = true;
	qp->next_doomed = e->doomed;
	e->doomed = qp;
}

void qp_run_doomed(struct engine *e)
{
	while (e->doomed) {
		struct qp *qp = e->doomed;

		e->doomed = qp->next_doomed;
		qp->is_doomed = false;
		qp_event(e, qp, UROCE_EVENT_QP_FATAL);
		qp_to_error(e, qp);
	}
}

/* Only the SQ stops (UC and UD, IBA vol. 1, 10.3.1.7). */
void qp_to_sqe(struct engine *e, struct qp *qp)
{
	qp_set_state(e, qp, UROCE_QPS_SQE);
	qp_flush(e, qp);
}

void qp_to_error(struct engine *e, struct qp *qp)
{
	bool was_error = qp->state == UROCE_QPS_ERR;

	place_flush(e); /* what came before the error is good, and its receives complete first */
	timer_remove(&e->timers, &qp->timer);
	resp_queue_keep_nak(qp);
	qp_set_state(e, qp, UROCE_QPS_ERR);
	uroce_qp_set_want(qp->page, 1);
	qp_flush(e, qp);
	if (qp->srq && !was_error && !qp_is_xrc_recv(qp))
		qp_event(e, qp, UROCE_EVENT_QP_LAST_WQE);
}

static void flush_recv(struct engine *e, struct qp *qp, uint64_t wr_id, uint32_t index)
{
	struct uroce_cqe cqe = {
		.wr_id = wr_id,
		.wqe_index = index,
		.opcode = UROCE_WC_RECV,
		.status = UROCE_WC_WR_FLUSH_ERR,
	};

	qp_complete_recv(e, qp, &cqe, false);
}

static void flush_rq(struct engine *e, struct qp *qp)
{
	struct qp_resp *s = &qp->resp;
	int64_t n;

	if (s->has_rqe) {
		s->has_rqe = false;
		flush_recv(e, qp, s->rqe.wr_id, s->rqe.index);
	}
	if (qp->srq || !qp->rq_depth)
		return;
	n = uroce_ring_pending(&qp->page->rq, s->rq_tail, qp->rq_depth);
	if (n < 0)
		engine_count(e, CNT_BAD_RING, 1);
	for (; n > 0; n--, s->rq_tail++) {
		uint32_t at = s->rq_tail & (qp->rq_depth - 1);
		uint64_t wr_id;

		memcpy(&wr_id, qp->rq + (size_t)at * qp->rq_stride, sizeof(wr_id));
		flush_recv(e, qp, wr_id, s->rq_tail);
	}
}

static void flush_sq(struct engine *e, struct qp *qp)
{
	struct qp_req *r = &qp->req;
	int64_t n;

	if (!qp->sq_depth)
		return;
	for (; r->una != r->tail; r->una++)
		qp_complete_send(e, qp, r->una, UROCE_WC_WR_FLUSH_ERR, UROCE_VERR_NONE);
	n = uroce_ring_pending(&qp->page->sq, r->tail, qp->sq_depth);
	if (n < 0)
		engine_count(e, CNT_BAD_RING, 1);
	for (; n > 0; n--) {
		*qp_rec(qp, r->tail) = (struct send_rec) { .wr_id = wqe_peek_wr_id(qp, r->tail) };
		qp_complete_send(e, qp, r->tail++, UROCE_WC_WR_FLUSH_ERR, UROCE_VERR_NONE);
	}
	r->una = r->cur = r->tail;
	r->cur_pkt = 0; /* UC and UD go on from SQE, perhaps after a message that broke off */
	r->una_psn = r->nxt_psn = r->sent_psn = r->asg_psn;
	r->is_failing = false;
}

/* In ERR both queues, in SQE the SQ; also what was posted since. */
void qp_flush(struct engine *e, struct qp *qp)
{
	flush_sq(e, qp);
	if (qp->state == UROCE_QPS_ERR)
		flush_rq(e, qp);
}

static void fill_and_push(struct engine *e, struct qp *qp, struct cq *cq, struct uroce_cqe *cqe,
			  bool solicited)
{
	if (!cq) /* an XRC SRQ that has gone */
		return;
	cqe->timestamp = e->now;
	cqe->qpn = qp->qpn;
	cqe->qp_slot = qp->slot;
	engine_trace(e, TRACE_COMPLETE, qp, cqe->opcode, cqe->wqe_index, cqe->status);
	if (!cq_push(e, cq, cqe, solicited))
		qp_doom(e, qp);
}

void qp_complete_send(struct engine *e, struct qp *qp, uint32_t index, uint8_t status,
		      uint32_t verr)
{
	struct send_rec *rec = qp_rec(qp, index);
	struct uroce_cqe cqe = {
		.wr_id = rec->wr_id,
		.wqe_index = index,
		.status = status,
		.opcode = req_wc_opcode(rec->op),
		.queue = UROCE_CQE_SQ,
		.vendor_err = verr,
		.byte_len = rec->len,
	};

	if (status == UROCE_WC_WR_FLUSH_ERR)
		engine_count(e, CNT_REQ_CQE_FLUSH_ERROR, 1);
	else if (status != UROCE_WC_SUCCESS)
		engine_count(e, CNT_REQ_CQE_ERROR, 1);
	else if (!qp->is_sig_all && !(rec->flags & UROCE_WQE_SIGNALED))
		return;
	fill_and_push(e, qp, qp->send_cq, &cqe, false);
}

void qp_complete_recv(struct engine *e, struct qp *qp, struct uroce_cqe *cqe, bool solicited)
{
	cqe->queue = qp->srq ? UROCE_CQE_SRQ : UROCE_CQE_RQ;
	if (qp->type != UROCE_QPT_UD)
		cqe->src_qp = qp->attr.dest_qp_num;
	if (cqe->status == UROCE_WC_WR_FLUSH_ERR)
		engine_count(e, CNT_RESP_CQE_FLUSH_ERROR, 1);
	else if (cqe->status != UROCE_WC_SUCCESS)
		engine_count(e, CNT_RESP_CQE_ERROR, 1);
	fill_and_push(e, qp, qp->recv_cq, cqe, solicited);
}
