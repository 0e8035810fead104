/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/core.h"

void sched_add(struct engine *e, struct qp *qp)
{
	if (qp->is_queued)
		return;
	qp->is_queued = true;
	qp->next_queued = NULL;
	if (e->sched_tail)
		e->sched_tail->next_queued = qp;
	else
		e->sched_head = qp;
	e->sched_tail = qp;
}

struct qp *sched_pop(struct engine *e)
{
	struct qp *qp = e->sched_head;

	if (!qp)
		return NULL;
	e->sched_head = qp->next_queued;
	if (!e->sched_head)
		e->sched_tail = NULL;
	qp->is_queued = false;
	return qp;
}

void sched_remove(struct engine *e, struct qp *qp)
{
	struct qp *prev = NULL;

	if (!qp->is_queued)
		return;
	for (struct qp *q = e->sched_head; q != qp; q = q->next_queued)
		prev = q;
	if (prev)
		prev->next_queued = qp->next_queued;
	else
		e->sched_head = qp->next_queued;
	if (e->sched_tail == qp)
		e->sched_tail = prev;
	qp->is_queued = false;
}
