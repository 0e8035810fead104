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
 * Free this entry and all before it: queues complete in order, and an unsignaled request is known to
 * be done when a later one is.
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
	qp = ctx->qp_slot[cqe->qp_slot];
	return qp && qp->v.qp.qp_num == cqe->qpn ? qp : NULL;
}

/* False: nothing for the program (purged, or of no QP of ours). */
static bool translate(struct uroce_cq *cq, const struct uroce_cqe *cqe, struct ibv_wc *wc)
{
	const struct uroce_wr_record *rec;
	struct uroce_qp *qp;
	struct uroce_wq *wq;

	if (cqe->queue != UROCE_CQE_SQ && cqe->queue != UROCE_CQE_RQ)
		return false;
	qp = qp_of(to_context(cq->v.cq.context), cqe);
	if (!qp)
		return false;
	wq = cqe->queue == UROCE_CQE_SQ ? &qp->sq : &qp->rq;
	if (!wq->depth)
		return false;
	rec = wq_record(wq, cqe->wqe_index);
	wc->wr_id = rec ? rec->wr_id : cqe->wr_id;
	wc->opcode = (enum ibv_wc_opcode)(rec && cqe->queue == UROCE_CQE_SQ ? rec->wc_opcode :
									      cqe->opcode);
	if (rec)
		wq_release(wq, cqe->wqe_index);
	wc->status = (enum ibv_wc_status)cqe->status;
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
	return true;
}

static int harvest_sub(struct uroce_cq *cq, uint32_t sub, int n, struct ibv_wc *wc)
{
	struct uroce_ring *ring = uroce_cq_sub(cq, sub);
	uint32_t cons = cq->cons[sub];
	int64_t pending = uroce_ring_pending(ring, cons, cq->depth);
	int got = 0;

	if (pending <= 0)
		return 0;
	for (; pending && got < n; pending--, cons++) {
		struct uroce_cqe cqe;

		memcpy(&cqe, cqe_at(cq, ring, cons), sizeof(cqe));
		got += translate(cq, &cqe, &wc[got]);
	}
	cq->cons[sub] = cons;
	uroce_ring_consume(ring, cons);
	return got;
}

/* Each call begins at another worker's sub-ring, so that none starves behind a busy one. */
static int harvest(struct uroce_cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t sub = cq->next_sub;
	int got = 0;

	for (uint32_t i = 0; i < cq->n_subs && got < n; i++) {
		got += harvest_sub(cq, sub, n - got, wc + got);
		if (++sub == cq->n_subs)
			sub = 0;
	}
	if (++cq->next_sub >= cq->n_subs)
		cq->next_sub = 0;
	return got;
}

bool uroce_cq_has_entries(struct uroce_cq *cq)
{
	bool has = false;

	pthread_mutex_lock(&cq->lock);
	for (uint32_t i = 0; i < cq->n_subs && !has; i++)
		has = uroce_ring_pending(uroce_cq_sub(cq, i), cq->cons[i], cq->depth) > 0;
	pthread_mutex_unlock(&cq->lock);
	return has;
}

/* The daemon is gone: complete what a queue still holds, in order. */
static int flush_wq(struct uroce_qp *qp, struct uroce_wq *wq, int n, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&wq->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	int got = 0;

	for (; tail != head && got < n; tail++, got++) {
		const struct uroce_wr_record *rec = &wq->wr[tail & (wq->depth - 1)];

		memset(&wc[got], 0, sizeof(wc[got]));
		wc[got].wr_id = rec->wr_id;
		wc[got].opcode = (enum ibv_wc_opcode)rec->wc_opcode;
		wc[got].qp_num = qp->v.qp.qp_num;
		wc[got].status = IBV_WC_WR_FLUSH_ERR;
		if (wq == &qp->sq && !qp->is_told_dead) {
			wc[got].status = IBV_WC_FATAL_ERR;
			qp->is_told_dead = true;
		}
	}
	atomic_store_explicit(&wq->tail, tail, memory_order_release);
	return got;
}

static int poll_dead(struct uroce_context *ctx, struct uroce_cq *cq, int n, struct ibv_wc *wc)
{
	int got;

	pthread_mutex_lock(&ctx->objects);
	pthread_mutex_lock(&cq->lock);
	got = harvest(cq, n, wc);
	for (struct uroce_qp *qp = ctx->qps; qp && got < n; qp = qp->next) {
		if (qp->v.qp.send_cq == &cq->v.cq)
			got += flush_wq(qp, &qp->sq, n - got, wc + got);
		if (qp->v.qp.recv_cq == &cq->v.cq)
			got += flush_wq(qp, &qp->rq, n - got, wc + got);
	}
	pthread_mutex_unlock(&cq->lock);
	pthread_mutex_unlock(&ctx->objects);
	return got ? got : -EIO;
}

/* Nothing came: let others work, and now and then see whether anything can still come. */
static int poll_idle(struct uroce_context *ctx, struct uroce_cq *cq, int n, struct ibv_wc *wc)
{
	uint64_t now;

	if (atomic_load_explicit(&ctx->is_dead, memory_order_relaxed))
		return poll_dead(ctx, cq, n, wc);
	if (__atomic_load_n(&cq->page->overrun, __ATOMIC_RELAXED))
		return -EIO;
	now = uroce_poll_empty(cq);
	if (now && now - atomic_load_explicit(&ctx->looked_at, memory_order_relaxed) > LOOK_GAP_NS) {
		atomic_store_explicit(&ctx->looked_at, now, memory_order_relaxed);
		uroce_context_is_dead(ctx);
	}
	return 0;
}

int uroce_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct uroce_cq *cq = to_cq(ibcq);
	int got;

	if (n <= 0)
		return n < 0 ? -EINVAL : 0;
	pthread_mutex_lock(&cq->lock);
	got = harvest(cq, n, wc);
	pthread_mutex_unlock(&cq->lock);
	if (!got)
		return poll_idle(to_context(ibcq->context), cq, n, wc);
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
