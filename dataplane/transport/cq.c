/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/cq.h"

#include <errno.h>

#include "dataplane/abi/ring.h"
#include "dataplane/transport/core.h"

struct cq *cq_find(struct engine *e, uint32_t cqn)
{
	struct cq *cq = &e->cq[cqn & (e->conf.max_cq - 1)];

	return cq->is_live && cq->cqn == cqn ? cq : NULL;
}

int cq_add(struct engine *e, const struct cmd_cq_add *cmd)
{
	struct cq *cq = &e->cq[cmd->cqn & (e->conf.max_cq - 1)];

	if (cq->is_live)
		return -EEXIST;
	if (!cmd->depth || (cmd->depth & (cmd->depth - 1)))
		return -EINVAL;
	*cq = (struct cq) {
		.cqn = cmd->cqn,
		.depth = cmd->depth,
		.owner = cmd->owner,
		.is_live = true,
		.page = cmd->page,
		.ring = cmd->ring,
		.cqe = (struct uroce_cqe *)(cmd->ring + 1),
		.channel = cmd->channel,
		.token = cmd->token,
	};
	return 0;
}

int cq_del(struct engine *e, uint32_t cqn, uint32_t *events_sent)
{
	struct cq *cq = cq_find(e, cqn);

	if (!cq)
		return -ENOENT;
	if (cq->users)
		return -EBUSY;
	*events_sent = cq->events_sent;
	cq->is_live = false;
	return 0;
}

/* One event for the CQ, however many engines lose completions of it. */
static void cq_overrun(struct engine *e, struct cq *cq)
{
	cq->is_overrun = true;
	engine_count(e, CNT_CQ_OVERRUN, 1);
	if (__atomic_exchange_n(&cq->page->overrun, 1, __ATOMIC_RELAXED))
		return;
	cq->events_sent++;
	e->ports.event(e->ports.ctx, &(struct engine_event) { .element = cq->token,
							      .owner = cq->owner,
							      .type = UROCE_EVENT_CQ_ERR,
							      .qpn = cq->cqn });
}

/*
 * The client takes nothing meanwhile. An index of its that cannot be leaves nothing worth moving:
 * the CQ is in error then.
 */
int cq_resize(struct engine *e, const struct cmd_cq_resize *c)
{
	struct cq *cq = cq_find(e, c->cqn);
	struct uroce_cqe *to = (struct uroce_cqe *)(c->ring + 1);
	int64_t used;
	uint32_t n;

	if (!cq)
		return -ENOENT;
	if (!c->depth || (c->depth & (c->depth - 1)))
		return -EINVAL;
	used = uroce_ring_used(cq->ring, cq->prod, cq->depth);
	if (used > c->depth)
		return -EINVAL;
	if (used < 0)
		cq_overrun(e, cq);
	n = used < 0 ? 0 : (uint32_t)used;
	for (uint32_t i = cq->prod - n; i != cq->prod; i++)
		to[i & (c->depth - 1)] = cq->cqe[i & (cq->depth - 1)];
	uroce_ring_consume(c->ring, cq->prod - n);
	uroce_ring_publish(c->ring, cq->prod);
	cq->ring = c->ring;
	cq->cqe = to;
	cq->depth = c->depth;
	return 0;
}

bool cq_push(struct engine *e, struct cq *cq, const struct uroce_cqe *cqe, bool solicited)
{
	struct uroce_cqe *to;

	if (cq->is_overrun)
		return false;
	if (!uroce_ring_room(cq->ring, cq->prod, cq->depth)) {
		cq_overrun(e, cq);
		return false;
	}
	solicited |= cqe->status != UROCE_WC_SUCCESS;
	to = &cq->cqe[cq->prod & (cq->depth - 1)];
	*to = *cqe;
	to->solicited = solicited;
	uroce_ring_publish(cq->ring, ++cq->prod);
	cq->has_solicited |= solicited;
	if (!cq->is_dirty) {
		cq->is_dirty = true;
		cq->next_dirty = e->dirty;
		e->dirty = cq;
	}
	return true;
}

static void notify_if_armed(struct engine *e, struct cq *cq, bool solicited)
{
	if (!cq->channel || !uroce_cq_fire(cq->page, solicited))
		return;
	cq->events_sent++;
	e->ports.cq_notify(e->ports.ctx, cq->owner, cq->cqn, cq->channel, cq->token);
}

void cq_notify_dirty(struct engine *e)
{
	while (e->dirty) {
		struct cq *cq = e->dirty;

		e->dirty = cq->next_dirty;
		cq->is_dirty = false;
		notify_if_armed(e, cq, cq->has_solicited);
		cq->has_solicited = false;
	}
}

/* The client saw to it that there is something to fire for; it can deceive only itself. */
int cq_fire(struct engine *e, uint32_t cqn)
{
	struct cq *cq = cq_find(e, cqn);

	if (!cq)
		return -ENOENT;
	notify_if_armed(e, cq, true);
	return 0;
}
