/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <string.h>

#define LOOK_GAP_NS 1000000u /* how often an idle poller asks whether the daemon lives */

static struct uroce_cqe *cqe_at(const struct uroce_cq *cq, struct uroce_ring *ring, uint32_t i)
{
	return (struct uroce_cqe *)(ring + 1) + (i & (cq->depth - 1));
}

/* The record of the entry that completed; NULL for an index that is not outstanding. */
static const struct uroce_wr_record *wq_record(struct uroce_wq *wq, uint32_t index)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&wq->head, memory_order_acquire);

	if (index - tail >= head - tail)
		return NULL;
	return &wq->wr[index & (wq->depth - 1)];
}

/*
 * Free this entry and all before it: queues complete in order, and an unsignaled request is known
 * to be done when a later one is.
 */
static void wq_release(struct uroce_wq *wq, uint32_t index)
{
	atomic_store_explicit(&wq->tail, index + 1, memory_order_release);
}

static struct uroce_qp *qp_of(struct uroce_context *ctx, const struct uroce_cqe *cqe)
{
	struct uroce_qp *qp;

	if (cqe->qp_slot >= UROCE_CTX_QPS)
		return NULL;
	qp = __atomic_load_n(&ctx->qp_slot[cqe->qp_slot], __ATOMIC_ACQUIRE);
	return qp && qp->v.qp.qp_num == cqe->qpn ? qp : NULL;
}

/* False: nothing for the program (purged, or of no QP of ours). */
static bool resolve(struct uroce_cq *cq, struct uroce_cqe *cqe)
{
	const struct uroce_wr_record *rec;
	struct uroce_qp *qp;
	struct uroce_wq *wq;

	if (cqe->queue > UROCE_CQE_SRQ)
		return false;
	/* An XRC receive QP's: perhaps another process's. */
	if (cqe->qp_slot == UROCE_NO_SLOT)
		return cqe->queue == UROCE_CQE_SRQ;
	qp = qp_of(to_context(cq->v.cq.context), cqe);
	if (!qp)
		return false;
	/* A shared queue's entries are freed when they are taken, and known to the daemon only. */
	wq = cqe->queue == UROCE_CQE_SRQ ? NULL : cqe->queue == UROCE_CQE_SQ ? &qp->sq : &qp->rq;
	if (wq ? !wq->depth : !qp->v.qp.srq)
		return false;
	rec = wq ? wq_record(wq, cqe->wqe_index) : NULL;
	if (!rec)
		return true;
	cqe->wr_id = rec->wr_id;
	if (cqe->queue == UROCE_CQE_SQ)
		cqe->opcode = (uint8_t)rec->wc_opcode;
	wq_release(wq, cqe->wqe_index);
	return true;
}

static void fill_wc(struct ibv_wc *wc, const struct uroce_cqe *cqe)
{
	wc->wr_id = cqe->wr_id;
	wc->status = (enum ibv_wc_status)cqe->status;
	wc->opcode = (enum ibv_wc_opcode)cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qpn;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = cqe->flags;
	wc->pkey_index = cqe->pkey_index;
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
}

static bool take_from(struct uroce_cq *cq, uint32_t sub, struct uroce_cqe *cqe)
{
	struct uroce_ring *ring = uroce_cq_sub(cq, sub);
	uint32_t cons = cq->cons[sub];
	bool found = false;

	if (cons == cq->prod[sub]) {
		int64_t pending = uroce_ring_pending(ring, cons, cq->depth);

		if (pending <= 0)
			return false;
		cq->prod[sub] = cons + (uint32_t)pending;
	}
	while (!found && cons != cq->prod[sub]) {
		memcpy(cqe, cqe_at(cq, ring, cons++), sizeof(*cqe));
		/*
		 * Before the request's slot is free: another thread may post into it at once, and
		 * a CQ of just that many entries must have room for its completion.
		 */
		uroce_ring_consume(ring, cons);
		found = resolve(cq, cqe);
	}
	cq->cons[sub] = cons;
	return found;
}

bool uroce_cq_take(struct uroce_cq *cq, struct uroce_cqe *cqe)
{
	if (atomic_load_explicit(&cq->is_unlooked, memory_order_relaxed))
		atomic_store_explicit(&cq->is_unlooked, false, memory_order_relaxed);
	for (uint32_t i = 0; i < cq->n_subs; i++) {
		if (take_from(cq, cq->next_sub, cqe))
			return true;
		if (++cq->next_sub >= cq->n_subs)
			cq->next_sub = 0;
	}
	return false;
}

/* Each poll begins at another worker's sub-ring, so that none starves behind a busy one. */
void uroce_cq_rotate(struct uroce_cq *cq)
{
	if (++cq->next_sub >= cq->n_subs)
		cq->next_sub = 0;
}

/* As they lie in the ring: a completion of a QP that is no more counts as well. */
static bool sub_holds(const struct uroce_cq *cq, uint32_t sub, bool solicited_only)
{
	struct uroce_ring *ring = uroce_cq_sub(cq, sub);
	int64_t pending = uroce_ring_pending(ring, cq->cons[sub], cq->depth);

	for (int64_t i = 0; i < pending; i++) {
		if (!solicited_only || cqe_at(cq, ring, cq->cons[sub] + (uint32_t)i)->solicited)
			return true;
	}
	return false;
}

bool uroce_cq_holds(struct uroce_cq *cq, bool solicited_only)
{
	bool holds = false;

	uroce_lock(&cq->lock);
	for (uint32_t sub = 0; sub < cq->n_subs && !holds; sub++)
		holds = sub_holds(cq, sub, solicited_only);
	uroce_unlock(&cq->lock);
	return holds;
}

static bool flush_wq(struct uroce_qp *qp, struct uroce_wq *wq, struct uroce_cqe *cqe)
{
	uint32_t head = atomic_load_explicit(&wq->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	const struct uroce_wr_record *rec;

	if (tail == head)
		return false;
	rec = &wq->wr[tail & (wq->depth - 1)];
	*cqe = (struct uroce_cqe) { .wr_id = rec->wr_id,
				    .opcode = (uint8_t)rec->wc_opcode,
				    .qpn = qp->v.qp.qp_num,
				    .status = UROCE_WC_WR_FLUSH_ERR,
				    .timestamp = uroce_clock_ns() };
	if (wq == &qp->sq && !qp->is_told_dead) {
		cqe->status = UROCE_WC_FATAL_ERR;
		qp->is_told_dead = true;
	}
	wq_release(wq, tail);
	return true;
}

bool uroce_cq_take_flushed(struct uroce_context *ctx, struct uroce_cq *cq, struct uroce_cqe *cqe)
{
	for (struct uroce_qp *qp = ctx->qps; qp; qp = qp->next) {
		if (qp->v.qp.send_cq == &cq->v.cq && flush_wq(qp, &qp->sq, cqe))
			return true;
		if (qp->v.qp.recv_cq == &cq->v.cq && flush_wq(qp, &qp->rq, cqe))
			return true;
	}
	return false;
}

static int harvest(struct uroce_cq *cq, int n, struct ibv_wc *wc)
{
	struct uroce_cqe cqe;
	int got = 0;

	while (got < n && uroce_cq_take(cq, &cqe))
		fill_wc(&wc[got++], &cqe);
	uroce_cq_rotate(cq);
	return got;
}

static int poll_dead(struct uroce_context *ctx, struct uroce_cq *cq, int n, struct ibv_wc *wc)
{
	struct uroce_cqe cqe;
	int got;

	pthread_mutex_lock(&ctx->objects);
	uroce_lock(&cq->lock);
	got = harvest(cq, n, wc);
	while (got < n && uroce_cq_take_flushed(ctx, cq, &cqe))
		fill_wc(&wc[got++], &cqe);
	uroce_unlock(&cq->lock);
	pthread_mutex_unlock(&ctx->objects);
	return got ? got : -EIO;
}

/* Now and then see whether anything can still come. */
int uroce_cq_rest(struct uroce_context *ctx, struct uroce_cq *cq)
{
	uint64_t now;

	if (__atomic_load_n(&cq->page->overrun, __ATOMIC_RELAXED))
		return EIO;
	now = uroce_poll_empty(cq);
	if (now &&
	    now - atomic_load_explicit(&ctx->looked_at, memory_order_relaxed) > LOOK_GAP_NS) {
		atomic_store_explicit(&ctx->looked_at, now, memory_order_relaxed);
		uroce_context_is_dead(ctx);
	}
	return 0;
}

int uroce_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct uroce_context *ctx = to_context(ibcq->context);
	struct uroce_cq *cq = to_cq(ibcq);
	int got;

	if (n <= 0)
		return n < 0 ? -EINVAL : 0;
	uroce_lock(&cq->lock);
	got = harvest(cq, n, wc);
	uroce_unlock(&cq->lock);
	if (!got && atomic_load_explicit(&ctx->is_dead, memory_order_relaxed))
		return poll_dead(ctx, cq, n, wc);
	if (!got)
		return -uroce_cq_rest(ctx, cq);
	uroce_poll_found();
	return got;
}

void uroce_cq_purge(struct uroce_cq *cq, const struct uroce_qp *qp)
{
	for (uint32_t sub = 0; sub < cq->n_subs; sub++) {
		struct uroce_ring *ring = uroce_cq_sub(cq, sub);
		int64_t pending = uroce_ring_pending(ring, cq->cons[sub], cq->depth);

		for (int64_t i = 0; i < pending; i++) {
			struct uroce_cqe *cqe = cqe_at(cq, ring, cq->cons[sub] + (uint32_t)i);

			if (cqe->qp_slot == qp->slot && cqe->qpn == qp->v.qp.qp_num)
				cqe->queue = UROCE_CQE_DEAD;
		}
	}
}
