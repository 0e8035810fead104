/* SPDX-License-Identifier: BSD-3-Clause */
/* A seed → a scenario → two devices with regions, CQs and connected QPs. */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "tests/support/ck_main.h"

static uint32_t below(struct sim *s, uint32_t n)
{
	return ck_below(&s->rng, n);
}

static uint32_t power(struct sim *s, uint32_t lo, uint32_t hi)
{
	return 1u << (lo + below(s, hi - lo + 1));
}

/* In units of 1/65536. */
static void draw_faults(struct sim *s, struct link_sim_conf *l)
{
	static const uint32_t heavy[] = { 66, 655, 3277, 6554 }; /* 0.1, 1, 5, 10 % */
	uint32_t rate = heavy[below(s, 4)];

	switch (below(s, 8)) {
	case 0:
		break; /* a good wire */
	case 1:
		l->drop = rate;
		break;
	case 2:
		l->dup = rate;
		break;
	case 3:
		l->reorder = rate;
		break;
	case 4:
		l->corrupt = rate;
		break;
	default:
		l->drop = below(s, rate);
		l->dup = below(s, rate);
		l->reorder = below(s, rate);
		l->corrupt = below(s, rate);
	}
}

static void draw_link(struct sim *s, struct link_sim_conf *l)
{
	l->seed = ck_rand(&s->rng);
	l->delay_ns = below(s, 2) ? 500 + below(s, 5000) : below(s, 40000);
	l->jitter_ns = 1 + below(s, 60000);
	l->ns_per_kib = below(s, 3) ? below(s, 800) : 0;
	l->tx_burst = 1 + below(s, 64);
	l->rx_burst = 1 + below(s, 64);
	l->split = below(s, 2);
	draw_faults(s, l);
	s->sc.is_lossy = l->drop || l->dup || l->reorder || l->corrupt;
}

static void draw_connection(struct sim *s, struct pair_rc *rc)
{
	rc->mtu = IBV_MTU_256 + below(s, 5);
	s->sc.mtu = 128u << rc->mtu;
	rc->rd_atomic = (uint8_t)(1 + below(s, 16));
	rc->dest_rd_atomic = (uint8_t)(rc->rd_atomic + below(s, 17 - rc->rd_atomic));
	rc->timeout = (uint8_t)(8 + below(s, 4)); /* 1 to 8 ms: above any queueing here */
	rc->retry_cnt = 7;
	rc->rnr_retry = 7;
	rc->min_rnr_timer = (uint8_t)(1 + below(s, 12));
	if (s->sc.has_finite_rnr)
		rc->rnr_retry = below(s, 3) ? (uint8_t)(1 + below(s, 3)) : 0xff;
}

/* One seed in four has something happen to the objects, one in six has bad WRs. */
static void draw_events(struct sim *s)
{
	struct sim_scenario *sc = &s->sc;

	sc->is_slow_receiver = below(s, 2);
	sc->has_flaws = !below(s, 6);
	sc->has_finite_rnr = !below(s, 10);
	sc->event_at = 10000 + below(s, 3000000);
	switch (below(s, 12)) {
	case 0:
		sc->has_kill = true;
		break;
	case 1:
		sc->has_reset = true;
		break;
	case 2:
		sc->has_destroy = true;
		break;
	}
}

void sim_draw(struct sim *s)
{
	struct sim_scenario *sc = &s->sc;

	draw_events(s);
	draw_link(s, &sc->link);
	draw_connection(s, &sc->rc);
	sc->n_qp = 1 + below(s, below(s, 3) ? 2 : SIM_QPS);
	sc->n_cq = 1 + below(s, SIM_CQS);
	sc->sq_depth = power(s, 1, 6);
	sc->rq_depth = power(s, 0, 6);
	sc->max_sge = 1 + below(s, below(s, 2) ? 3 : UROCE_MAX_SGE);
	sc->max_inline = below(s, 2) ? below(s, UROCE_MAX_INLINE + 1) : 0;
	sc->is_sig_all = !below(s, 6);
	sc->budget = 5 + below(s, 40);
	sc->max_len = below(s, 12) ? 6 * sc->mtu : 60 * sc->mtu;
	sc->arena_bytes = 8192 + sc->max_len * 8 + sc->budget * sc->n_qp * sc->mtu;
	sc->window = below(s, 3) ? 0 : 1 + below(s, 32);
	sc->tx_burst = 1 + below(s, 64);
}

static void make_arenas(struct sim *s, unsigned side)
{
	static const uint32_t access[SIM_N_KINDS] = {
		[SIM_SRC] = 0,
		[SIM_DST] = UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE,
		[SIM_FIXED] = UROCE_ACCESS_REMOTE_READ,
		[SIM_IN] = UROCE_ACCESS_LOCAL_WRITE,
		[SIM_RECV] = UROCE_ACCESS_LOCAL_WRITE,
		[SIM_WORDS] = UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_ATOMIC,
	};

	for (unsigned k = 0; k < SIM_N_KINDS; k++) {
		struct sim_arena *a = &s->arena[side][k];

		uint32_t len = k == SIM_WORDS ? 128 : s->sc.arena_bytes * (k == SIM_RECV ? 4 : 1);

		a->r = fake_reg(&s->p.dev[side], len, access[k]);
		a->range = calloc(SIM_RANGES, sizeof(*a->range));
		ck_assert_ptr_nonnull(a->range);
	}
}

static uint32_t round_up(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static void make_qps(struct sim *s, unsigned side)
{
	const struct sim_scenario *sc = &s->sc;
	struct fake_qp_conf conf = { .sq_depth = sc->sq_depth,
				     .rq_depth = sc->rq_depth,
				     .max_sge = sc->max_sge,
				     .max_inline = sc->max_inline,
				     .sq_sig_all = sc->is_sig_all };

	for (unsigned i = 0; i < sc->n_cq; i++)
		s->cq[side][i] = fake_cq_new(&s->p.dev[side],
					     round_up(sc->n_qp * (sc->sq_depth + sc->rq_depth)));
	for (unsigned i = 0; i < sc->n_qp; i++) {
		struct sim_qp *q = &s->q[side][i];

		conf.send_cq = s->cq[side][below(s, sc->n_cq)];
		conf.recv_cq = s->cq[side][below(s, sc->n_cq)];
		*q = (struct sim_qp) { .sim = s, .side = side, .peer = &s->q[!side][i] };
		q->qp = fake_qp_new(&s->p.dev[side], &conf);
		ck_assert_ptr_nonnull(q->qp);
		q->wr = calloc(SIM_WRS, sizeof(*q->wr));
		q->msg = calloc(SIM_WRS, sizeof(*q->msg));
		q->recv = calloc(SIM_WRS, sizeof(*q->recv));
		ck_assert(q->wr && q->msg && q->recv);
		q->budget = below(s, 4) ? sc->budget : 0;
	}
}

void sim_restart(struct sim_qp *q)
{
	for (uint32_t i = q->head; i < q->n_wr; i++)
		q->wr[i]->fate = SIM_GONE;
	for (uint32_t i = q->recv_head; i < q->n_recv; i++)
		q->recv[i]->fate = SIM_GONE;
	q->n_wr = q->head = q->n_recv = q->recv_head = q->n_msg = 0;
	q->unsignaled = q->exec = q->n_rd = 0;
	q->sq_failed = q->rq_failed = q->is_stopped = false;
}

/* One connection in three starts just before the wrap of the PSN. */
static uint32_t draw_psn(struct sim *s)
{
	return below(s, 3) ? (uint32_t)ck_rand(&s->rng) & 0xffffff : 0xffffff - below(s, 40);
}

void sim_connect(struct sim *s, unsigned i)
{
	struct pair_rc rc = s->sc.rc;
	int err;

	rc.psn[0] = draw_psn(s);
	rc.psn[1] = draw_psn(s);
	err = pair_connect(&s->p, s->q[0][i].qp, s->q[1][i].qp, &rc);
	if (err)
		sim_fail(s, "connect: %d", err);
	sim_restart(&s->q[0][i]);
	sim_restart(&s->q[1][i]);
}

void sim_setup(struct sim *s)
{
	struct pair_conf conf = { .link = s->sc.link,
				  .engine = { .seed = s->seed, .window = s->sc.window } };

	pair_init(&s->p, &conf);
	s->p.tx_burst = s->sc.tx_burst;
	for (unsigned side = 0; side < 2; side++) {
		make_arenas(s, side);
		make_qps(s, side);
	}
	for (unsigned i = 0; i < s->sc.n_qp; i++)
		sim_connect(s, i);
	s->event_at = s->sc.has_kill || s->sc.has_reset || s->sc.has_destroy
			      ? s->p.clock.now + s->sc.event_at
			      : VCLOCK_NEVER;
	sim_watch(s);
}

void sim_release(struct sim *s)
{
	pair_free(&s->p);
	for (unsigned side = 0; side < 2; side++) {
		for (unsigned k = 0; k < SIM_N_KINDS; k++)
			free(s->arena[side][k].range);
		for (unsigned i = 0; i < s->sc.n_qp; i++) {
			free(s->q[side][i].wr);
			free(s->q[side][i].msg);
			free(s->q[side][i].recv);
		}
	}
	for (uint32_t i = 0; i < s->n_all; i++) {
		free(s->all[i]->bytes);
		free(s->all[i]);
	}
	for (uint32_t i = 0; i < s->n_all_recv; i++)
		free(s->all_recv[i]);
	free(s->all);
	free(s->all_recv);
}
