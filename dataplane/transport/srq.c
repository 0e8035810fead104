/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/srq.h"

#include <errno.h>
#include <string.h>

#include "dataplane/abi/ring.h"
#include "dataplane/transport/core.h"

struct srq *srq_find(struct engine *e, uint32_t srqn)
{
	struct srq *srq = e->conf.max_srq ? &e->srq[srqn & (e->conf.max_srq - 1)] : NULL;

	return srq && srq->is_live && srq->srqn == srqn ? srq : NULL;
}

int srq_add(struct engine *e, const struct cmd_srq_add *c)
{
	struct cq *cq = c->cqn ? cq_find(e, c->cqn) : NULL;
	struct srq *srq;

	if (!e->conf.max_srq)
		return -EOPNOTSUPP;
	srq = &e->srq[c->srqn & (e->conf.max_srq - 1)];
	if (srq->is_live)
		return -EEXIST;
	if (!c->depth || (c->depth & (c->depth - 1)) || c->max_sge > UROCE_MAX_SGE ||
	    c->stride < sizeof(struct uroce_rqe) + c->max_sge * sizeof(struct uroce_sge))
		return -EINVAL;
	if (c->xrcd && !cq)
		return -ENOENT;
	if (cq)
		cq->users++;
	*srq = (struct srq) {
		.is_live = true,
		.srqn = c->srqn,
		.pd = c->pd,
		.owner = c->owner,
		.max_sge = c->max_sge,
		.depth = c->depth,
		.stride = c->stride,
		.xrcd = c->xrcd,
		.cq = cq,
		.token = c->token,
		.ring = c->ring,
		.slots = c->slots,
		.shared = c->shared,
	};
	return 0;
}

int srq_limit(struct engine *e, const struct cmd_srq_limit *c)
{
	struct srq *srq = srq_find(e, c->srqn);

	if (!srq)
		return -ENOENT;
	if (c->limit > srq->depth)
		return -EINVAL;
	__atomic_store_n(&srq->shared->limit, c->limit, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Another engine may have taken, and said so, more than we have: the index never goes back. Whoever
 * scribbles over it meanwhile must not keep us here.
 */
static void srq_consume(struct srq *srq, uint32_t taken)
{
	uint32_t cons = __atomic_load_n(&srq->ring->cons, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < UROCE_MAX_WORKERS && (int32_t)(taken - cons) > 0; i++)
		if (__atomic_compare_exchange_n(&srq->ring->cons, &cons, taken, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
}

int srq_resize(struct engine *e, const struct cmd_srq_resize *c)
{
	struct srq *srq = srq_find(e, c->srqn);

	if (!srq)
		return -ENOENT;
	if (!c->depth || (c->depth & (c->depth - 1)))
		return -EINVAL;
	srq->depth = c->depth;
	srq->ring = c->ring;
	srq->slots = c->slots;
	/* We may have told the old memory what we took. */
	srq_consume(srq, __atomic_load_n(&srq->shared->tail, __ATOMIC_ACQUIRE));
	return 0;
}

int srq_query(struct engine *e, uint32_t srqn, struct cmd_reply *reply)
{
	const struct srq *srq = srq_find(e, srqn);

	if (!srq)
		return -ENOENT;
	reply->events_sent = __atomic_load_n(&srq->shared->events_sent, __ATOMIC_RELAXED);
	reply->srq.limit = __atomic_load_n(&srq->shared->limit, __ATOMIC_RELAXED);
	reply->srq.taken = __atomic_load_n(&srq->shared->tail, __ATOMIC_ACQUIRE);
	return 0;
}

int srq_del(struct engine *e, uint32_t srqn, uint32_t *events_sent)
{
	struct srq *srq = srq_find(e, srqn);

	if (!srq)
		return -ENOENT;
	if (srq->users)
		return -EBUSY;
	*events_sent = __atomic_load_n(&srq->shared->events_sent, __ATOMIC_RELAXED);
	xrc_forget_srq(e, srq);
	if (srq->cq)
		srq->cq->users--;
	srq->is_live = false;
	return 0;
}

/* After a take: `left` receives remain (IBA vol. 1, 10.2.9.3: the event fires once, then disarms).
 */
static void srq_check_limit(struct engine *e, struct srq *srq, uint32_t left)
{
	uint32_t limit = __atomic_load_n(&srq->shared->limit, __ATOMIC_RELAXED);

	if (!limit || left >= limit ||
	    !__atomic_compare_exchange_n(&srq->shared->limit, &limit, 0, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	__atomic_fetch_add(&srq->shared->events_sent, 1, __ATOMIC_RELAXED);
	e->ports.event(e->ports.ctx, &(struct engine_event) { .element = srq->token,
							      .owner = srq->owner,
							      .type = UROCE_EVENT_SRQ_LIMIT,
							      .qpn = srq->srqn });
}

uint32_t srq_pd(const struct qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

/* Copy first, then claim: whoever loses the race has read a slot that may be rewritten, and drops
 * it. */
int srq_take(struct engine *e, struct qp *qp)
{
	struct srq *srq = qp->srq;
	struct recv_wqe *rqe = &qp->resp.rqe;
	uint32_t tail = __atomic_load_n(&srq->shared->tail, __ATOMIC_ACQUIRE);
	struct uroce_rqe head;
	const uint8_t *slot;
	int64_t n;

	do {
		n = uroce_ring_pending(srq->ring, tail, srq->depth);
		if (n <= 0) {
			engine_count(e, CNT_BAD_RING, n < 0);
			return 0;
		}
		slot = srq->slots + (size_t)(tail & (srq->depth - 1)) * srq->stride;
		memcpy(&head, slot, sizeof(head));
		if (head.num_sge <= srq->max_sge)
			memcpy(rqe->sge, slot + sizeof(head), head.num_sge * sizeof(rqe->sge[0]));
	} while (!__atomic_compare_exchange_n(&srq->shared->tail, &tail, tail + 1, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	srq_consume(srq, tail + 1);
	rqe->wr_id = head.wr_id;
	rqe->index = tail;
	srq_check_limit(e, srq, (uint32_t)n - 1);
	if (head.num_sge > srq->max_sge) {
		rqe->num_sge = 0;
		rqe->room = 0;
		return -1;
	}
	rqe->num_sge = head.num_sge;
	rqe->room = sge_total(rqe->sge, head.num_sge);
	return 1;
}
