/* SPDX-License-Identifier: BSD-3-Clause */
/* The application of the simulation: draws work requests and receives and posts them. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "tests/support/ck_main.h"

#define NO_MSG UINT32_MAX

static uint32_t below(struct sim *s, uint32_t n)
{
	return ck_below(&s->rng, n);
}

/* A piece of an arena that was never used; a gap before it. UINT32_MAX: the arena is full. */
uint32_t sim_reserve(struct sim *s, struct sim_arena *a, uint32_t len, uint32_t align)
{
	uint32_t off = a->used + 1 + below(s, 7);

	off = (off + align - 1) / align * align;
	if (off > a->r->len || len > a->r->len - off || a->n == SIM_RANGES)
		return UINT32_MAX;
	a->used = off + len;
	return off;
}

static void own(struct sim_arena *a, uint32_t off, uint32_t len, uint32_t base, struct sim_wr *wr,
		struct sim_recv *recv)
{
	if (len)
		a->range[a->n++] = (struct sim_range) { off, len, base, wr, recv };
}

static uint32_t draw_len(struct sim *s, uint32_t most)
{
	uint32_t mtu = s->sc.mtu, len;

	switch (below(s, 12)) {
	case 0:
		return 0;
	case 1:
	case 2:
	case 3:
		len = 1 + below(s, 64);
		break;
	case 4:
	case 5:
	case 6:
		len = 1 + below(s, mtu);
		break;
	case 7:
	case 8:
	case 9:
		len = mtu * (1 + below(s, 4)) + below(s, 3) - 1;
		break;
	default:
		len = 1 + below(s, s->sc.max_len);
	}
	return len < most ? len : most;
}

/* Cuts len bytes into SGEs over pieces of an arena; false: no room. */
static bool draw_sges(struct sim *s, struct sim_arena *a, uint32_t len, struct uroce_sge *sge,
		      uint32_t *n_sge, struct sim_wr *wr, struct sim_recv *recv)
{
	uint32_t n = len ? 1 + below(s, s->sc.max_sge) : below(s, 2), base = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len - base : below(s, len - base + 1);
		uint32_t off = sim_reserve(s, a, part, 1);

		if (off == UINT32_MAX)
			return false;
		sge[i] = fake_sge(a->r, off, part);
		own(a, off, part, base, wr, recv);
		base += part;
	}
	*n_sge = n;
	return true;
}

static struct sim_wr *wr_new(struct sim_qp *q, uint8_t opcode, uint32_t len)
{
	struct sim *s = q->sim;
	struct sim_wr *wr = calloc(1, sizeof(*wr));

	if (s->n_all == s->cap_all) {
		s->cap_all = s->cap_all ? 2 * s->cap_all : 256;
		s->all = realloc(s->all, s->cap_all * sizeof(struct sim_wr *));
	}
	ck_assert(wr && s->all);
	s->all[s->n_all++] = wr;
	wr->bytes = malloc(len + 1);
	ck_assert_ptr_nonnull(wr->bytes);
	wr->qp = q;
	wr->opcode = opcode;
	wr->len = len;
	wr->msg = NO_MSG;
	wr->wr_id = ++s->next_wr_id * 0x100000001ull;
	return wr;
}

/* Fresh random bytes in the source, and a copy for the model. */
static bool draw_source(struct sim_qp *q, struct sim_wr *wr, struct fake_wr *out)
{
	struct sim *s = q->sim;
	struct sim_arena *a = &s->arena[q->side][SIM_SRC];
	uint32_t at = 0;

	for (uint32_t i = 0; i < wr->len; i++)
		wr->bytes[i] = (uint8_t)(wr->wr_id * 131 + i * 29 + (i >> 7));
	if (wr->len <= s->sc.max_inline && below(s, 2)) {
		out->flags |= UROCE_WQE_INLINE;
		out->inline_data = wr->bytes;
		out->inline_len = wr->len;
		return true;
	}
	if (!draw_sges(s, a, wr->len, out->sge, &out->n_sge, NULL, NULL))
		return false;
	for (uint32_t i = 0; i < out->n_sge; i++) {
		memcpy(a->r->mem + (out->sge[i].addr - a->r->iova), wr->bytes + at,
		       out->sge[i].length);
		at += out->sge[i].length;
	}
	return true;
}

static bool draw_write(struct sim_qp *q, struct sim_wr *wr, struct fake_wr *out)
{
	struct sim *s = q->sim;
	struct sim_arena *to = &s->arena[!q->side][SIM_DST];
	uint32_t off = sim_reserve(s, to, wr->len, 1);

	if (off == UINT32_MAX)
		return false;
	own(to, off, wr->len, 0, wr, NULL);
	out->remote_addr = to->r->iova + off;
	/* A zero-length access is not checked (IBA C9-88): any key will do. */
	out->rkey = wr->len || below(s, 2) ? to->r->key : (uint32_t)ck_rand(&s->rng);
	return true;
}

static bool draw_read(struct sim_qp *q, struct sim_wr *wr, struct fake_wr *out)
{
	struct sim *s = q->sim;
	struct sim_arena *from = &s->arena[!q->side][SIM_FIXED];
	uint32_t off = wr->len < from->r->len ? below(s, (uint32_t)from->r->len - wr->len) : 0;

	memcpy(wr->bytes, from->r->mem + off, wr->len);
	out->remote_addr = from->r->iova + off;
	out->rkey = wr->len || below(s, 2) ? from->r->key : (uint32_t)ck_rand(&s->rng);
	return draw_sges(s, &s->arena[q->side][SIM_IN], wr->len, out->sge, &out->n_sge, wr, NULL);
}

static bool draw_atomic(struct sim_qp *q, struct sim_wr *wr, struct fake_wr *out)
{
	struct sim *s = q->sim;
	struct sim_arena *words = &s->arena[!q->side][SIM_WORDS];
	struct sim_arena *in = &s->arena[q->side][SIM_IN];
	uint32_t word = 8 * below(s, 4), off = sim_reserve(s, in, 8, 1);
	uint64_t now;

	if (off == UINT32_MAX)
		return false;
	own(in, off, 8, 0, wr, NULL);
	out->n_sge = 1;
	out->sge[0] = fake_sge(in->r, off, 8);
	out->remote_addr = words->r->iova + word;
	out->rkey = words->r->key;
	wr->operand = ck_rand(&s->rng); /* unique: the model knows the WR by it */
	memcpy(&now, words->r->mem + word, 8);
	if (wr->opcode == UROCE_WR_CMP_SWAP) {
		out->compare_add = wr->compare = below(s, 4) ? now : ck_rand(&s->rng);
		out->swap = wr->operand;
	} else {
		out->compare_add = wr->operand;
	}
	return true;
}

/* A WRITE out of what the READ before it fetches: right only if the fence holds. */
static bool draw_fenced(struct sim_qp *q, struct sim_wr *wr, struct fake_wr *out)
{
	struct sim_wr *last = q->wr[q->n_wr - 1];

	out->flags |= UROCE_WQE_FENCE;
	memcpy(wr->bytes, last->bytes, wr->len);
	memcpy(out->sge, last->sge, sizeof(out->sge));
	out->n_sge = last->n_sge;
	return draw_write(q, wr, out);
}

static void spoil(struct sim_qp *q, struct sim_wr *wr, struct fake_wr *out)
{
	struct sim *s = q->sim;
	bool remote = wr->opcode != UROCE_WR_SEND && wr->opcode != UROCE_WR_SEND_IMM;
	enum sim_flaw flaw = SIM_BAD_LKEY + below(s, remote ? 3 : 1);

	if (!wr->len || !s->sc.has_flaws || below(s, 24))
		return;
	if (flaw == SIM_BAD_LKEY && (out->flags & UROCE_WQE_INLINE || !out->sge[0].length))
		return;
	wr->flaw = (uint8_t)flaw;
	if (flaw == SIM_BAD_LKEY)
		out->sge[0].lkey ^= 0x5500;
	else if (flaw == SIM_BAD_RKEY)
		out->rkey ^= 1;
	else
		out->remote_addr += 0x80000000u;
}

/* The RQE that message will take may be posted already: then it must fit. */
static uint32_t room_for_message(const struct sim_qp *q)
{
	return q->n_msg < q->peer->n_recv ? q->peer->recv[q->n_msg]->room : UINT32_MAX;
}

static uint8_t draw_opcode(struct sim *s)
{
	static const uint8_t op[] = { UROCE_WR_WRITE,    UROCE_WR_WRITE, UROCE_WR_WRITE_IMM,
				      UROCE_WR_SEND,     UROCE_WR_SEND,  UROCE_WR_SEND_IMM,
				      UROCE_WR_READ,     UROCE_WR_READ,  UROCE_WR_CMP_SWAP,
				      UROCE_WR_FETCH_ADD };

	return op[below(s, sizeof(op))];
}

static bool takes_rqe(uint8_t opcode)
{
	return opcode == UROCE_WR_SEND || opcode == UROCE_WR_SEND_IMM ||
	       opcode == UROCE_WR_WRITE_IMM;
}

static bool draw_body(struct sim_qp *q, struct sim_wr *wr, struct fake_wr *out)
{
	switch (wr->opcode) {
	case UROCE_WR_READ:
		return draw_read(q, wr, out);
	case UROCE_WR_CMP_SWAP:
	case UROCE_WR_FETCH_ADD:
		return draw_atomic(q, wr, out);
	case UROCE_WR_SEND:
	case UROCE_WR_SEND_IMM:
		return draw_source(q, wr, out);
	}
	return draw_source(q, wr, out) && draw_write(q, wr, out);
}

static struct sim_wr *draw_wr(struct sim_qp *q, struct fake_wr *out)
{
	struct sim *s = q->sim;
	struct sim_wr *last = q->n_wr ? q->wr[q->n_wr - 1] : NULL, *wr;
	bool fenced =
		last && last->opcode == UROCE_WR_READ && !last->flaw && last->len && !below(s, 2);
	uint8_t opcode = fenced ? UROCE_WR_WRITE : draw_opcode(s);
	bool sends = opcode == UROCE_WR_SEND || opcode == UROCE_WR_SEND_IMM;
	uint32_t len = draw_len(s, sends ? room_for_message(q) : UINT32_MAX);

	if (opcode == UROCE_WR_CMP_SWAP || opcode == UROCE_WR_FETCH_ADD)
		len = 8;
	wr = wr_new(q, opcode, fenced ? last->len : len);
	if (!(fenced ? draw_fenced(q, wr, out) : draw_body(q, wr, out))) {
		/* The arenas are full: one last WR, which needs none. */
		q->budget = 1;
		*out = (struct fake_wr) { .rkey = 1 };
		return wr_new(q, UROCE_WR_WRITE, 0);
	}
	memcpy(wr->sge, out->sge, sizeof(wr->sge));
	wr->n_sge = out->n_sge;
	spoil(q, wr, out);
	return wr;
}

bool sim_post_send(struct sim_qp *q)
{
	struct sim *s = q->sim;
	struct fake_wr out = { 0 };
	struct sim_wr *wr;

	if (!q->budget || !fake_sq_room(q->qp) || q->n_wr == SIM_WRS)
		return false;
	wr = draw_wr(q, &out);
	q->budget--;
	wr->is_signaled = s->sc.is_sig_all || q->unsignaled + 2 >= s->sc.sq_depth || !q->budget ||
			  below(s, 3);
	q->unsignaled = wr->is_signaled ? 0 : q->unsignaled + 1;
	if (wr->is_signaled && !(s->sc.is_sig_all && below(s, 2)))
		out.flags |= UROCE_WQE_SIGNALED;
	if (!below(s, 6))
		out.flags |= UROCE_WQE_FENCE;
	out.wr_id = wr->wr_id;
	out.opcode = wr->opcode;
	wr->fate = SIM_POSTED;
	out.imm = wr->imm = (uint32_t)ck_rand(&s->rng);
	wr->index = q->n_wr;
	if (takes_rqe(wr->opcode)) {
		wr->msg = q->n_msg;
		q->msg[q->n_msg++] = wr;
	}
	q->wr[q->n_wr++] = wr;
	if (!fake_post_send(q->qp, &out))
		sim_fail(s, "the send queue of 0x%x is full when the model has room", q->qp->qpn);
	return true;
}

static uint32_t draw_recv_room(struct sim_qp *q)
{
	struct sim *s = q->sim;
	const struct sim_qp *peer = q->peer;
	uint32_t len;

	if (q->n_recv >= peer->n_msg)
		return draw_len(s, 3 * s->sc.mtu) + below(s, 8);
	len = peer->msg[q->n_recv]->len;
	if (peer->msg[q->n_recv]->opcode == UROCE_WR_WRITE_IMM)
		return below(s, 32);
	if (s->sc.has_flaws && len && !peer->msg[q->n_recv]->flaw && !below(s, 30)) {
		peer->msg[q->n_recv]->flaw = SIM_SHORT_RECV;
		return below(s, len);
	}
	return len + (below(s, 2) ? below(s, 64) : 0);
}

bool sim_post_recv(struct sim_qp *q)
{
	struct sim *s = q->sim;
	struct uroce_sge sge[UROCE_MAX_SGE];
	struct sim_recv *r;
	uint32_t n_sge;

	if (!fake_rq_room(q->qp) || q->n_recv == SIM_WRS)
		return false;
	if (s->n_all_recv == s->cap_all_recv) {
		s->cap_all_recv = s->cap_all_recv ? 2 * s->cap_all_recv : 256;
		s->all_recv = realloc(s->all_recv, s->cap_all_recv * sizeof(struct sim_recv *));
	}
	r = calloc(1, sizeof(*r));
	ck_assert(r && s->all_recv);
	s->all_recv[s->n_all_recv++] = r;
	r->qp = q;
	r->index = q->n_recv;
	r->wr_id = ++s->next_wr_id * 0x100000001ull;
	r->room = draw_recv_room(q);
	if (!draw_sges(s, &s->arena[q->side][SIM_RECV], r->room, sge, &n_sge, NULL, r)) {
		s->is_full = true;
		return false;
	}
	r->fate = SIM_POSTED;
	q->recv[q->n_recv++] = r;
	if (!fake_post_recv(q->qp, r->wr_id, sge, n_sge))
		sim_fail(s, "the receive queue of 0x%x is full when the model has room",
			 q->qp->qpn);
	return true;
}
