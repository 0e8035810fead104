/* SPDX-License-Identifier: BSD-3-Clause */
/* The model's eyes: every byte placed, every atomic and every READ request, when it happens. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/sim.h"

/* The range that holds [off, off + len), or NULL. */
static struct sim_range *find_range(struct sim_arena *a, uint64_t off, uint64_t len)
{
	uint32_t lo = 0, hi = a->n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (a->range[mid].off + a->range[mid].len <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == a->n || a->range[lo].off > off || off + len > a->range[lo].off + a->range[lo].len)
		return NULL;
	return &a->range[lo];
}

static struct sim_arena *arena_of(struct sim *s, unsigned side, const struct fake_region *r)
{
	for (unsigned k = 0; k < SIM_N_KINDS; k++)
		if (s->arena[side][k].r == r)
			return &s->arena[side][k];
	sim_fail(s, "a write to region %u, which no WR names", r->index);
}

/* Requests are executed in order: never one before an executed one (IBA 9.7.5.1). */
static void executed(struct sim *s, const struct sim_wr *wr)
{
	struct sim_qp *at = wr->qp->peer;

	if (wr->fate != SIM_POSTED && wr->fate != SIM_FAILED)
		sim_fail(s, "WR %u of 0x%x has effects when it is over", wr->index, wr->qp->side);
	if (wr->index < at->exec)
		sim_fail(s, "WR %u executed after WR %u", wr->index, at->exec);
	if (wr->flaw && wr->flaw != SIM_SHORT_RECV)
		sim_fail(s, "flawed WR %u (flaw %u) has effects", wr->index, wr->flaw);
	at->exec = wr->index;
}

static void same_bytes(struct sim *s, const struct sim_wr *wr, uint32_t rel, const uint8_t *bytes,
		       uint64_t len)
{
	if (rel + len > wr->len || memcmp(wr->bytes + rel, bytes, len))
		sim_fail(s, "WR %u (op %u, len %u): wrong bytes at %u + %" PRIu64, wr->index,
			 wr->opcode, wr->len, rel, len);
}

/* Data comes before the completion that tells of it: none for that index may be in the CQ yet. */
static void not_told_yet(struct sim *s, const struct fake_qp *qp, const struct fake_cq *cq,
			 uint8_t queue, uint32_t index)
{
	for (uint32_t i = cq->cons; i != cq->ring->prod; i++) {
		const struct uroce_cqe *c = &cq->cqes[i & (cq->depth - 1)];

		if (c->qpn == qp->qpn && c->queue == queue && c->wqe_index == index)
			sim_fail(s, "the completion of %u in queue %u comes before its data", index,
				 queue);
	}
}

static void placed_write(struct sim *s, struct sim_wr *wr, uint32_t rel, const uint8_t *bytes,
			 uint64_t len)
{
	executed(s, wr);
	if (rel != wr->placed)
		sim_fail(s, "WRITE %u: bytes at %u placed when %u are due", wr->index, rel,
			 wr->placed);
	same_bytes(s, wr, rel, bytes, len);
	wr->placed += (uint32_t)len;
}

static void placed_result(struct sim *s, struct sim_wr *wr, uint32_t rel, const uint8_t *bytes,
			  uint64_t len)
{
	if (wr->fate != SIM_POSTED)
		sim_fail(s, "WR %u: a result arrives when it is over", wr->index);
	if (wr->opcode == UROCE_WR_READ) {
		same_bytes(s, wr, rel, bytes, len);
	} else if (rel || len != 8 || !wr->n_executed || memcmp(bytes, &wr->old, 8)) {
		sim_fail(s, "atomic %u: a result that was not there", wr->index);
	}
	if (rel + len > wr->placed)
		wr->placed = rel + (uint32_t)len;
	not_told_yet(s, wr->qp->qp, wr->qp->qp->conf.send_cq, UROCE_CQE_SQ, wr->index);
}

static void placed_message(struct sim *s, struct sim_recv *r, uint32_t rel, const uint8_t *bytes,
			   uint64_t len)
{
	struct sim_qp *peer = r->qp->peer;
	struct sim_wr *wr = r->index < peer->n_msg ? peer->msg[r->index] : NULL;

	if (r->fate != SIM_POSTED)
		sim_fail(s, "receive %u is written when it is over", r->index);
	if (!wr || wr->opcode == UROCE_WR_WRITE_IMM)
		sim_fail(s, "receive %u is written when no SEND is for it", r->index);
	executed(s, wr);
	if (rel != r->placed)
		sim_fail(s, "receive %u: bytes at %u placed when %u are due", r->index, rel,
			 r->placed);
	same_bytes(s, wr, rel, bytes, len);
	not_told_yet(s, r->qp->qp, r->qp->qp->conf.recv_cq, UROCE_CQE_RQ, r->index);
	r->placed += (uint32_t)len;
}

static void on_write(void *ctx, const struct fake_region *region, uint64_t off,
		     const uint8_t *bytes, uint64_t len)
{
	struct sim_watch *w = ctx;
	struct sim *s = w->sim;
	struct sim_arena *a = arena_of(s, w->side, region);
	struct sim_range *g = find_range(a, off, len);
	uint32_t rel;

	if (!g)
		sim_fail(s, "%c: [%" PRIu64 ", +%" PRIu64 ") of arena %u is nobody's",
			 'A' + w->side, off, len, (unsigned)(a - s->arena[w->side]));
	rel = g->base + (uint32_t)(off - g->off);
	if (g->recv)
		placed_message(s, g->recv, rel, bytes, len);
	else if (a == &s->arena[w->side][SIM_DST])
		placed_write(s, g->wr, rel, bytes, len);
	else
		placed_result(s, g->wr, rel, bytes, len);
}

static void on_atomic(void *ctx, const struct fake_region *region, uint64_t off,
		      enum mem_atomic_op op, uint64_t operand, uint64_t compare, uint64_t old)
{
	struct sim_watch *w = ctx;
	struct sim *s = w->sim;
	struct sim_wr *wr = NULL;

	(void)off;
	if (arena_of(s, w->side, region) != &s->arena[w->side][SIM_WORDS])
		sim_fail(s, "an atomic on a region without words");
	for (uint32_t i = s->n_all; i-- && !wr;)
		if (s->all[i]->operand == operand && s->all[i]->len == 8)
			wr = s->all[i];
	if (!wr || wr->opcode != (op == MEM_CMP_SWAP ? UROCE_WR_CMP_SWAP : UROCE_WR_FETCH_ADD) ||
	    (op == MEM_CMP_SWAP && compare != wr->compare))
		sim_fail(s, "an atomic that nobody asked for");
	executed(s, wr);
	if (wr->n_executed++)
		sim_fail(s, "atomic %u executed twice", wr->index);
	wr->old = old;
}

/*
 * READs and atomics on the wire, by first PSN and the one after the last: at most max_rd_atomic
 * (IBA C9-50). What lies within one is a part of it, asked for again.
 */
static void watch_ord(struct sim *s, struct sim_qp *q, const struct packet *pk)
{
	uint32_t n = 1, end, kept = 0;
	struct engine_qp_info info;
	bool known = false;

	if (engine_qp_info(s->p.dev[q->side].engine, q->qp->qpn, &info))
		return;
	if ((pk->opcode & 0x1f) == BTH_READ_REQUEST && pk->dma_len)
		n = (pk->dma_len + s->sc.mtu - 1) / s->sc.mtu;
	end = (pk->psn + n) & 0xffffff;
	for (uint32_t i = 0; i < q->n_rd; i++) {
		uint32_t left = (q->rd_end[i] - info.una_psn) & 0xffffff;

		if (!left || left >= 0x800000)
			continue;
		known |= ((pk->psn - q->rd_psn[i]) & 0xffffff) < 0x800000 &&
			 ((q->rd_end[i] - end) & 0xffffff) < 0x800000;
		q->rd_psn[kept] = q->rd_psn[i];
		q->rd_end[kept++] = q->rd_end[i];
	}
	q->n_rd = kept;
	if (!known) {
		q->rd_psn[q->n_rd] = pk->psn;
		q->rd_end[q->n_rd++] = end;
	}
	if (q->n_rd > s->sc.rc.rd_atomic)
		sim_fail(s, "%u READs and atomics outstanding, %u allowed", q->n_rd,
			 s->sc.rc.rd_atomic);
}

static enum link_sim_act watch_frame(void *ctx, unsigned from, const struct packet *pk)
{
	struct sim *s = ctx;
	uint8_t op = pk->opcode & 0x1f;

	if (op != BTH_READ_REQUEST && op != BTH_CMP_SWAP && op != BTH_FETCH_ADD)
		return LINK_SIM_PASS;
	for (unsigned i = 0; i < s->sc.n_qp; i++) {
		struct sim_qp *q = &s->q[from][i];

		if (q->qp && q->peer->qp && q->peer->qp->qpn == pk->dest_qpn)
			watch_ord(s, q, pk);
	}
	return LINK_SIM_PASS;
}

void sim_watch(struct sim *s)
{
	for (unsigned side = 0; side < 2; side++) {
		s->watch[side] = (struct sim_watch) { s, side };
		s->p.dev[side].mem.watch_ctx = &s->watch[side];
		s->p.dev[side].mem.on_write = on_write;
		s->p.dev[side].mem.on_atomic = on_atomic;
	}
	s->p.link.filter = watch_frame;
	s->p.link.filter_ctx = s;
}
