/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections (IBA vol. 1, annex A14): the receiving QP has no queues; each
 * request names an SRQ of its domain, which gives the receive, the PD and the CQ.
 */
#include "dataplane/transport/core.h"

struct srq *xrc_find(struct engine *e, const struct qp *qp, const struct packet *pk)
{
	struct srq *srq = srq_find(e, pk->xrc_srqn);

	return srq && srq->cq && srq->xrcd == qp->xrcd ? srq : NULL;
}

bool xrc_select(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct srq *srq = xrc_find(e, qp, pk);

	if (!srq || (qp->resp.msg != MSG_NONE && qp->srq != srq)) /* one message, one SRQ */
		return false;
	qp->srq = srq;
	qp->pd = srq->pd;
	qp->recv_cq = srq->cq;
	return true;
}

/* The SRQ goes away: a message half received into one of its buffers has nowhere to complete. */
void xrc_forget_srq(struct engine *e, const struct srq *srq)
{
	if (!srq->xrcd)
		return;
	for (uint32_t i = 0; i < e->conf.max_qp; i++) {
		struct qp *qp = e->qp[i];

		if (!qp || !qp_is_xrc_recv(qp) || qp->srq != srq)
			continue;
		qp->srq = NULL;
		qp->recv_cq = NULL;
		qp->resp.has_rqe = false;
		qp->resp.msg = MSG_NONE;
	}
}
