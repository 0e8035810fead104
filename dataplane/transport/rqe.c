/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "dataplane/abi/ring.h"
#include "dataplane/transport/core.h"

int rqe_take(struct engine *e, struct qp *qp)
{
	struct qp_resp *s = &qp->resp;
	struct recv_wqe *rqe = &s->rqe;
	struct uroce_rqe head;
	const uint8_t *slot;
	int64_t n;

	if (qp->srq)
		return srq_take(e, qp);
	if (!qp->rq_depth)
		return 0;
	n = uroce_ring_pending(&qp->page->rq, s->rq_tail, qp->rq_depth);
	if (n == 0)
		return 0;
	slot = qp->rq + (size_t)(s->rq_tail & (qp->rq_depth - 1)) * qp->rq_stride;
	memcpy(&head, slot, sizeof(head));
	rqe->wr_id = head.wr_id;
	rqe->index = s->rq_tail;
	rqe->num_sge = head.num_sge;
	if (n < 0)
		engine_count(e, CNT_BAD_RING, 1);
	else
		s->rq_tail++;
	if (n < 0 || head.num_sge > qp->attr.cap.max_recv_sge) {
		rqe->num_sge = 0;
		rqe->room = 0;
		return -1;
	}
	memcpy(rqe->sge, slot + sizeof(head), head.num_sge * sizeof(rqe->sge[0]));
	rqe->room = sge_total(rqe->sge, head.num_sge);
	return 1;
}
