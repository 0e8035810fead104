/* SPDX-License-Identifier: BSD-3-Clause */
/* The model: judges every completion, and the end, against what the verbs promise. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/transport/counters.h"
#include "tests/sim/sim.h"
#include "tests/support/ck_main.h"

#define NO_MSG UINT32_MAX

static void print_qps(struct sim *s)
{
	for (unsigned side = 0; side < 2; side++) {
		for (unsigned i = 0; i < s->sc.n_qp; i++) {
			const struct sim_qp *q = &s->q[side][i];
			struct engine_qp_info f = { 0 };

			if (!q->qp || engine_qp_info(s->p.dev[side].engine, q->qp->qpn, &f))
				continue;
			printf("# %c%u qpn 0x%x state %u una %06x nxt %06x epsn %06x "
			       "pending %u; sends %u/%u "
			       "receives %u/%u budget %u%s\n",
			       'A' + side, i, q->qp->qpn, f.state, f.una_psn, f.nxt_psn, f.epsn,
			       f.sq_pending, q->head, q->n_wr, q->recv_head, q->n_recv, q->budget,
			       q->is_stopped ? " stopped" : "");
		}
	}
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	const struct sim_scenario *sc = &s->sc;
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf("# ---- seed %" PRIu64 ": %s\n# replay: UROCE_SIM_SEED=%" PRIu64 "\n", s->seed, text,
	       s->seed);
	printf("# mtu %u qps %u sq %u rq %u sge %u inline %u ord %u ird %u timeout %u window %u "
	       "drop %u dup %u reorder %u corrupt %u delay %" PRIu64 " flaws %d\n",
	       sc->mtu, sc->n_qp, sc->sq_depth, sc->rq_depth, sc->max_sge, sc->max_inline,
	       sc->rc.rd_atomic, sc->rc.dest_rd_atomic, sc->rc.timeout, sc->window, sc->link.drop,
	       sc->link.dup, sc->link.reorder, sc->link.corrupt, sc->link.delay_ns, sc->has_flaws);
	link_sim_dump(&s->p.link, stdout);
	print_qps(s);
	printf("# ---- at %" PRIu64 " ns, turn %" PRIu64 ", seed %" PRIu64 ": %s\n", s->p.clock.now,
	       s->p.turns, s->seed, text);
	fflush(stdout);
	ck_abort_msg("seed %" PRIu64 ": %s", s->seed, text);
	abort();
}

static const uint8_t *local(struct sim *s, unsigned side, const struct uroce_sge *sge)
{
	for (unsigned k = 0; k < SIM_N_KINDS; k++) {
		struct fake_region *r = s->arena[side][k].r;

		if (r->key == sge->lkey)
			return r->mem + (sge->addr - r->iova);
	}
	sim_fail(s, "no region for lkey 0x%x", sge->lkey);
}

/* The result of a READ or atomic is in the WR's own buffers now. */
static void check_result(struct sim *s, const struct sim_wr *wr)
{
	const uint8_t *want = wr->opcode == UROCE_WR_READ ? wr->bytes : (const uint8_t *)&wr->old;

	for (uint32_t i = 0; i < wr->n_sge; i++) {
		if (memcmp(local(s, wr->qp->side, &wr->sge[i]), want, wr->sge[i].length))
			sim_fail(s, "WR %u completed, its result is not there", wr->index);
		want += wr->sge[i].length;
	}
}

/* The buffers of a completed WR are the application's again: it writes over them at once. */
static void scribble(struct sim *s, const struct sim_wr *wr)
{
	const struct fake_region *src = s->arena[wr->qp->side][SIM_SRC].r;

	for (uint32_t i = 0; i < wr->n_sge; i++)
		if (wr->sge[i].lkey == src->key)
			memset(src->mem + (wr->sge[i].addr - src->iova), 0xee, wr->sge[i].length);
}

static void done_ok(struct sim *s, struct sim_wr *wr)
{
	struct sim_qp *peer = wr->qp->peer;

	if (wr->flaw)
		sim_fail(s, "flawed WR %u (flaw %u) succeeded", wr->index, wr->flaw);
	switch (wr->opcode) {
	case UROCE_WR_READ:
	case UROCE_WR_CMP_SWAP:
	case UROCE_WR_FETCH_ADD:
		if (wr->opcode != UROCE_WR_READ && wr->n_executed != 1)
			sim_fail(s, "atomic %u completed, never executed", wr->index);
		check_result(s, wr);
		break;
	case UROCE_WR_SEND:
	case UROCE_WR_SEND_IMM:
		if (!peer->is_stopped &&
		    (wr->msg >= peer->n_recv || peer->recv[wr->msg]->placed != wr->len))
			sim_fail(s, "SEND %u completed, not received", wr->index);
		break;
	default:
		if (wr->placed != wr->len)
			sim_fail(s, "WRITE %u completed, %u of %u bytes placed", wr->index,
				 wr->placed, wr->len);
	}
	wr->fate = SIM_OK;
	scribble(s, wr);
	s->stats.ok++;
}

static bool is_heavy(const struct link_sim_conf *l)
{
	return l->drop + l->corrupt + l->reorder >= 2500; /* about 4 % */
}

static bool peer_may_be_gone(struct sim *s, const struct sim_qp *q)
{
	const struct sim_qp *peer = q->peer;

	return peer->is_stopped || s->is_dead[peer->side] || !peer->qp ||
	       fake_qp_state(peer->qp) != UROCE_QPS_RTS;
}

/* May this WR be the first of its QP to fail, and fail so? */
static bool status_is_due(struct sim *s, const struct sim_wr *wr, uint8_t status)
{
	bool gone = peer_may_be_gone(s, wr->qp);

	switch (status) {
	case UROCE_WC_LOC_PROT_ERR:
		return wr->flaw == SIM_BAD_LKEY;
	case UROCE_WC_REM_ACCESS_ERR:
		return wr->flaw == SIM_BAD_RKEY || wr->flaw == SIM_BAD_BOUNDS ||
		       s->is_dead[!wr->qp->side];
	case UROCE_WC_REM_INV_REQ_ERR:
		return wr->flaw == SIM_SHORT_RECV;
	case UROCE_WC_REM_OP_ERR:
		return s->is_dead[!wr->qp->side];
	case UROCE_WC_RETRY_EXC_ERR:
		return gone || is_heavy(&s->sc.link);
	case UROCE_WC_RNR_RETRY_EXC_ERR:
		return s->sc.has_finite_rnr && wr->msg != NO_MSG;
	case UROCE_WC_WR_FLUSH_ERR:
		return fake_qp_state(wr->qp->qp) == UROCE_QPS_ERR &&
		       (s->is_draining || gone || s->sc.has_flaws || s->sc.has_finite_rnr);
	}
	return false;
}

static uint8_t wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case UROCE_WR_READ:
		return UROCE_WC_RDMA_READ;
	case UROCE_WR_CMP_SWAP:
		return UROCE_WC_COMP_SWAP;
	case UROCE_WR_FETCH_ADD:
		return UROCE_WC_FETCH_ADD;
	case UROCE_WR_SEND:
	case UROCE_WR_SEND_IMM:
		return UROCE_WC_SEND;
	}
	return UROCE_WC_RDMA_WRITE;
}

static void sent_ok(struct sim *s, struct sim_wr *wr, const struct uroce_cqe *c)
{
	if (wr->qp->sq_failed || !wr->is_signaled)
		sim_fail(s, "WR %u completes though %s", wr->index,
			 wr->is_signaled ? "an earlier one failed" : "it is not signaled");
	if (c->opcode != wc_opcode(wr->opcode))
		sim_fail(s, "WR %u: opcode %u in the completion", wr->index, c->opcode);
	if (wr->n_sge && wc_opcode(wr->opcode) >= UROCE_WC_RDMA_READ && c->byte_len != wr->len)
		sim_fail(s, "WR %u: %u bytes in the completion, not %u", wr->index, c->byte_len,
			 wr->len);
	done_ok(s, wr);
}

static void sent_failed(struct sim *s, struct sim_wr *wr, const struct uroce_cqe *c)
{
	struct sim_qp *q = wr->qp;
	bool flushed = c->status == UROCE_WC_WR_FLUSH_ERR;

	if (q->sq_failed ? !flushed : !status_is_due(s, wr, c->status))
		sim_fail(s, "WR %u (op %u flaw %u) of %c fails with status %u verr %u", wr->index,
			 wr->opcode, wr->flaw, 'A' + q->side, c->status, c->vendor_err);
	q->sq_failed = true;
	wr->fate = SIM_FAILED;
	s->stats.flushed += flushed;
	s->stats.failed += !flushed;
}

static void check_sent(struct sim *s, struct sim_qp *q, const struct uroce_cqe *c)
{
	struct sim_wr *wr = c->wqe_index < q->n_wr ? q->wr[c->wqe_index] : NULL;

	if (!wr || wr->wr_id != c->wr_id || wr->fate != SIM_POSTED)
		sim_fail(s, "a send completion for index %u, wr_id %" PRIx64 ": not one that waits",
			 c->wqe_index, c->wr_id);
	for (; q->head < wr->index; q->head++) {
		if (q->sq_failed || q->wr[q->head]->is_signaled)
			sim_fail(s, "WR %u has no completion, WR %u has", q->head, wr->index);
		done_ok(s, q->wr[q->head]);
	}
	q->head++;
	if (c->status == UROCE_WC_SUCCESS)
		sent_ok(s, wr, c);
	else
		sent_failed(s, wr, c);
}

static void received_ok(struct sim *s, struct sim_recv *r, const struct uroce_cqe *c)
{
	struct sim_qp *peer = r->qp->peer;
	struct sim_wr *wr = r->index < peer->n_msg ? peer->msg[r->index] : NULL;
	bool write, imm;

	if (!wr || r->qp->rq_failed || wr->flaw)
		sim_fail(s, "receive %u completes, nothing for it was sent", r->index);
	write = wr->opcode == UROCE_WR_WRITE_IMM;
	imm = write || wr->opcode == UROCE_WR_SEND_IMM;
	if (c->opcode != (write ? UROCE_WC_RECV_IMM : UROCE_WC_RECV) || c->byte_len != wr->len ||
	    !(c->flags & UROCE_WC_WITH_IMM) != !imm || (imm && c->imm != wr->imm))
		sim_fail(s, "receive %u: op %u, %u bytes, flags %u, imm %x; sent %u, %u bytes, %x",
			 r->index, c->opcode, c->byte_len, c->flags, c->imm, wr->opcode, wr->len,
			 wr->imm);
	if (write ? wr->placed != wr->len : r->placed != wr->len)
		sim_fail(s, "receive %u completes before its bytes", r->index);
	r->qp->exec = wr->index > r->qp->exec ? wr->index : r->qp->exec;
	r->fate = SIM_OK;
	s->stats.received++;
}

static bool recv_status_is_due(const struct sim_recv *r, uint8_t status)
{
	const struct sim_qp *peer = r->qp->peer;
	const struct sim_wr *wr = r->index < peer->n_msg ? peer->msg[r->index] : NULL;

	if (status == UROCE_WC_LOC_LEN_ERR)
		return wr && wr->flaw == SIM_SHORT_RECV && !r->qp->rq_failed;
	return status == UROCE_WC_WR_FLUSH_ERR && fake_qp_state(r->qp->qp) == UROCE_QPS_ERR;
}

static void check_received(struct sim *s, struct sim_qp *q, const struct uroce_cqe *c)
{
	struct sim_recv *r = q->recv_head < q->n_recv ? q->recv[q->recv_head] : NULL;

	if (!r || r->wr_id != c->wr_id || c->wqe_index != r->index)
		sim_fail(s, "a receive completion for index %u when %u is due", c->wqe_index,
			 q->recv_head);
	q->recv_head++;
	if (c->status == UROCE_WC_SUCCESS) {
		received_ok(s, r, c);
		return;
	}
	if (!recv_status_is_due(r, c->status))
		sim_fail(s, "receive %u fails with status %u", r->index, c->status);
	q->rq_failed = true;
	r->fate = SIM_FAILED;
}

static void check_cqe(struct sim *s, unsigned side, const struct uroce_cqe *c)
{
	struct sim_qp *q = NULL;

	for (unsigned i = 0; i < s->sc.n_qp; i++)
		if (s->q[side][i].qp && s->q[side][i].qp->qpn == c->qpn)
			q = &s->q[side][i];
	if (!q || q->is_stopped || c->qp_slot != q->qp->slot)
		sim_fail(s, "a completion for QP 0x%x slot %u", c->qpn, c->qp_slot);
	if (c->timestamp > s->p.clock.now)
		sim_fail(s, "a completion from the future");
	s->stats.by_status[c->status & 31]++;
	if (c->queue == UROCE_CQE_SQ)
		check_sent(s, q, c);
	else if (c->queue == UROCE_CQE_RQ)
		check_received(s, q, c);
	else
		sim_fail(s, "a completion of queue %u", c->queue);
}

void sim_poll(struct sim *s, unsigned side, unsigned most)
{
	struct uroce_cqe c;

	for (unsigned i = 0; i < s->sc.n_cq; i++) {
		for (unsigned k = 0; k < most; k++) {
			int n = fake_poll(s->cq[side][i], &c, 1);

			if (n < 0)
				sim_fail(s, "a CQ's index is impossible");
			if (!n)
				break;
			check_cqe(s, side, &c);
		}
	}
}

void sim_check_turn(struct sim *s)
{
	if (s->p.link.malformed)
		sim_fail(s, "an engine sent a malformed frame");
	for (unsigned side = 0; side < 2; side++) {
		const struct fake_mem *m = &s->p.dev[side].mem;

		if (m->violations)
			sim_fail(s, "%c: %s", 'A' + side, m->violation);
		for (unsigned i = 0; i < s->sc.n_qp; i++) {
			struct sim_qp *q = &s->q[side][i];
			struct engine_qp_info info;

			if (!q->qp || engine_qp_info(s->p.dev[side].engine, q->qp->qpn, &info))
				continue;
			if (((info.nxt_psn - info.una_psn) & 0xffffff) >= 0x800000)
				sim_fail(s, "nxt_psn %06x is before una_psn %06x", info.nxt_psn,
					 info.una_psn);
		}
	}
}

/*
 * In ERR the last WRs may have no completion of their own: unsignaled ones that succeeded before.
 * Then their effects must be there.
 */
void sim_settle(struct sim_qp *q)
{
	struct sim *s = q->sim;
	struct engine_qp_info info;

	if (!q->qp || q->is_stopped ||
	    engine_qp_info(s->p.dev[q->side].engine, q->qp->qpn, &info) ||
	    info.state != UROCE_QPS_ERR)
		return;
	sim_poll(s, q->side, UINT32_MAX);
	for (; q->head != q->n_wr; q->head++) {
		if (q->wr[q->head]->is_signaled || q->sq_failed)
			sim_fail(s, "%c: WR %u has no completion", 'A' + q->side, q->head);
		done_ok(s, q->wr[q->head]);
	}
}

/* All is over: every WR has its end, and the memory is what the completed WRs made it. */
void sim_check_end(struct sim *s)
{
	for (unsigned side = 0; side < 2; side++) {
		const struct sim_arena *a = &s->arena[side][SIM_DST];

		if (!fake_mem_guards_hold(&s->p.dev[side].mem))
			sim_fail(s, "%c: guard bytes are gone", 'A' + side);
		for (uint32_t i = 0; i < a->n; i++) {
			const struct sim_wr *wr = a->range[i].wr;

			if (wr->fate == SIM_OK &&
			    memcmp(a->r->mem + a->range[i].off, wr->bytes, wr->len))
				sim_fail(s, "WRITE %u: its bytes are gone", wr->index);
		}
		for (unsigned i = 0; i < s->sc.n_qp; i++) {
			const struct sim_qp *q = &s->q[side][i];

			if (!q->is_stopped && (q->head != q->n_wr || q->recv_head != q->n_recv))
				sim_fail(s,
					 "%c: QP %u: %u of %u sends, %u of %u receives completed",
					 'A' + side, i, q->head, q->n_wr, q->recv_head, q->n_recv);
		}
	}
}

static uint64_t counted(struct sim *s, unsigned side, enum counter c)
{
	return engine_counters(s->p.dev[side].engine)[c];
}

/*
 * Where nothing is lost, late or refused nothing is asked for or sent twice; but after an RNR NAK
 * what was behind it goes again.
 */
void sim_check_calm(struct sim *s)
{
	static const enum counter never[] = { CNT_OUT_OF_SEQUENCE,     CNT_PACKET_SEQ_ERR,
					      CNT_IMPLIED_NAK_SEQ_ERR, CNT_LOCAL_ACK_TIMEOUT_ERR,
					      CNT_DUPLICATE_REQUEST,   CNT_DROP_RESP_SEQ,
					      CNT_DROP_GHOST,          CNT_RETRANSMITTED };

	if (s->sc.is_lossy || s->sc.has_flaws || s->sc.has_finite_rnr || s->sc.has_kill ||
	    s->sc.has_reset || s->sc.has_destroy)
		return;
	for (unsigned side = 0; side < 2; side++) {
		if (counted(s, side, CNT_RNR_NAK_RETRY_ERR) ||
		    counted(s, !side, CNT_RNR_NAK_RETRY_ERR))
			continue;
		for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++)
			if (counted(s, side, never[i]))
				sim_fail(s, "%c: %" PRIu64 " %s on a wire that loses nothing",
					 'A' + side, counted(s, side, never[i]),
					 engine_counter_name(never[i]));
	}
	s->stats.calm++;
}
