/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers waiting to be sent, in PSN order, and the replay of READs and atomics. Its length is
 * bounded: at most max_dest_rd_atomic fresh READs and atomics, as many replays, an ACK after each
 * fresh one and one NAK.
 */
#include <string.h>

#include "dataplane/transport/core.h"

bool resp_queue_full(const struct qp *qp)
{
	return qp->resp.n_queue == RESP_QUEUE;
}

static void queue_insert(struct engine *e, struct qp *qp, uint32_t at, const struct resp_item *item)
{
	struct qp_resp *s = &qp->resp;

	memmove(&s->queue[at + 1], &s->queue[at], (s->n_queue - at) * sizeof(*item));
	s->queue[at] = *item;
	s->n_queue++;
	sched_add(e, qp);
}

void resp_queue_append(struct engine *e, struct qp *qp, const struct resp_item *item)
{
	if (resp_queue_full(qp)) /* the peer asks faster than it can use: it will ask again */
		engine_count(e, CNT_DROP_REPLAY, 1);
	else
		queue_insert(e, qp, qp->resp.n_queue, item);
}

/* READs and atomics of fresh requests that are not answered yet; replays do not count. */
uint32_t resp_outstanding(const struct qp *qp)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < qp->resp.n_queue; i++) {
		const struct resp_item *it = &qp->resp.queue[i];

		n += (it->kind == RESP_READ || it->kind == RESP_ATOMIC) && !it->is_replay;
	}
	return n;
}

/* Acknowledge all before epsn. Coalesced: one ACK at the tail says it for all before. */
void resp_queue_ack(struct engine *e, struct qp *qp)
{
	struct qp_resp *s = &qp->resp;
	struct resp_item ack = {
		.kind = RESP_ACK,
		.syndrome = AETH_ACK_UNLIMITED,
		.msn = s->msn,
		.psn = psn_add(s->epsn, PSN_MASK),
		.left = 1,
	};
	struct resp_item *tail = s->n_queue ? &s->queue[s->n_queue - 1] : NULL;

	if (tail && tail->kind == RESP_ACK)
		*tail = ack;
	else if (!tail || !psn_eq(psn_add(tail->psn, tail->left), s->epsn) ||
		 tail->kind == RESP_NAK)
		resp_queue_append(e, qp, &ack);
}

void resp_queue_nak(struct engine *e, struct qp *qp, uint8_t syndrome, psn_t psn)
{
	struct qp_resp *s = &qp->resp;
	struct resp_item nak = {
		.kind = RESP_NAK, .syndrome = syndrome, .msn = s->msn, .psn = psn, .left = 1
	};
	struct resp_item *tail = s->n_queue ? &s->queue[s->n_queue - 1] : NULL;

	/* An RNR NAK for the same place says more: a gap behind it must not call the peer back. */
	if (tail && tail->kind == RESP_NAK && syndrome == AETH_NAK_SEQ && psn_eq(tail->psn, psn))
		return;
	if (tail && tail->kind == RESP_NAK)
		*tail = nak;
	else
		resp_queue_append(e, qp, &nak);
}

/* The request at psn failed after all: what has not been sent of the answers from there on. */
void resp_queue_retract(struct qp *qp, psn_t psn)
{
	struct qp_resp *s = &qp->resp;

	while (s->n_queue) {
		const struct resp_item *tail = &s->queue[s->n_queue - 1];

		if (tail->is_replay || psn_diff(psn_add(tail->psn, tail->left - 1), psn) < 0)
			break;
		s->n_queue--;
	}
}

/*
 * The QP is in error. If it refused a request, that NAK is still sent, and before it the answers to
 * the requests before: a requester that misses one of those would ask again, and find nobody.
 */
void resp_queue_keep_nak(struct qp *qp)
{
	struct qp_resp *s = &qp->resp;
	const struct resp_item *tail = s->n_queue ? &s->queue[s->n_queue - 1] : NULL;

	if (s->keeps_answers)
		return;
	if (!tail || tail->kind != RESP_NAK || tail->syndrome <= AETH_NAK_SEQ)
		s->n_queue = 0;
}

static enum resp_verdict replay_insert(struct engine *e, struct qp *qp, struct resp_item *item)
{
	struct qp_resp *s = &qp->resp;
	uint32_t at = 0, replays = 0;

	for (uint32_t i = 0; i < s->n_queue; i++)
		replays += s->queue[i].is_replay;
	if (resp_queue_full(qp) || replays >= QP_MAX_RD_ATOMIC)
		return RESP_DROP_REPLAY;
	while (at < s->n_queue && psn_diff(s->queue[at].psn, item->psn) <= 0)
		at++;
	item->is_replay = true;
	queue_insert(e, qp, at, item);
	return RESP_HANDLED;
}

/* A duplicate READ (IBA vol. 1, 9.7.5.1.3): executed again, from any PSN within the original. */
static enum resp_verdict replay_read(struct engine *e, struct qp *qp, const struct packet *pk,
				     uint32_t pd)
{
	struct qp_resp *s = &qp->resp;
	psn_t psn = psn_make(pk->psn);
	uint32_t n = packets_of(pk->dma_len, qp->mtu);
	struct resp_item item = {
		.kind = RESP_READ,
		.syndrome = AETH_ACK_UNLIMITED,
		.msn = s->msn,
		.psn = psn,
		.left = n,
		.va = pk->va,
		.rkey = pk->rkey,
		.pd = pd,
		.len = pk->dma_len,
	};
	struct mem_vec vec;

	if (!(qp->attr.access & UROCE_ACCESS_REMOTE_READ) || pk->dma_len > UROCE_MAX_MSG ||
	    n > psn_dist(psn, s->epsn))
		return RESP_DROP_REPLAY;
	if (pk->dma_len && mr_remote_access(&e->mr, qp, pd, pk->rkey, UROCE_ACCESS_REMOTE_READ,
					    pk->va, pk->dma_len, &vec) != MR_OK)
		return RESP_DROP_REPLAY;
	for (uint32_t i = 0; i < s->n_queue; i++) {
		struct resp_item *it = &s->queue[i];

		/* The same READ is being answered: start again where the requester wants it. */
		if (it->kind == RESP_READ && psn_eq(psn_add(it->psn, it->left), psn_add(psn, n))) {
			item.is_replay = it->is_replay;
			*it = item;
			return RESP_HANDLED;
		}
	}
	return replay_insert(e, qp, &item);
}

/* A duplicate atomic is never executed again: its saved result, or silence. */
static enum resp_verdict replay_atomic(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct qp_resp *s = &qp->resp;
	psn_t psn = psn_make(pk->psn);

	for (uint32_t i = 0; i < s->n_queue; i++) {
		if (s->queue[i].kind == RESP_ATOMIC && psn_eq(s->queue[i].psn, psn))
			return RESP_HANDLED;
	}
	/* The newest first: PSNs come round again, and results of the last round are still there.
	 */
	for (uint32_t i = 1; i <= QP_MAX_RD_ATOMIC; i++) {
		const struct resp_saved *r =
			&s->saved[(s->saved_at + QP_MAX_RD_ATOMIC - i) % QP_MAX_RD_ATOMIC];
		struct resp_item item = {
			.kind = RESP_ATOMIC,
			.syndrome = AETH_ACK_UNLIMITED,
			.opcode = resp_atomic_answer(r->opcode),
			.msn = r->msn,
			.psn = psn,
			.left = 1,
			.va = r->orig,
		};

		if (r->is_valid && psn_eq(r->psn, psn) && r->opcode == pk->opcode)
			return replay_insert(e, qp, &item);
	}
	return RESP_DROP_REPLAY;
}

enum resp_verdict resp_replay(struct engine *e, struct qp *qp, const struct packet *pk)
{
	const struct srq *srq = qp_is_xrc_recv(qp) ? xrc_find(e, qp, pk) : NULL;

	engine_count(e, CNT_DUPLICATE_REQUEST, 1);
	if (qp_is_xrc_recv(qp) && !srq)
		return RESP_DROP_REPLAY;
	/* Of an earlier message than we may be inside of now, so perhaps of another SRQ. */
	if ((pk->opcode & 0x1f) == BTH_READ_REQUEST)
		return replay_read(e, qp, pk, srq ? srq->pd : qp->pd);
	return replay_atomic(e, qp, pk);
}
