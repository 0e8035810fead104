/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulation's loop: the application, the engines, what happens to objects, and the end. */
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "tests/support/ck_main.h"

#define MOST_TURNS   3000000u
#define MOST_VIRTUAL 60000000000ull /* a minute of virtual time */

static uint32_t below(struct sim *s, uint32_t n)
{
	return ck_below(&s->rng, n);
}

static bool is_active(const struct sim_qp *q)
{
	return q->qp && !q->is_stopped && !q->sq_failed && !q->rq_failed;
}

static void app_qp(struct sim *s, struct sim_qp *q)
{
	bool slow = s->sc.is_slow_receiver && below(s, 4);

	for (uint32_t n = below(s, 8); n && !slow; n--)
		if (q->n_recv < q->peer->n_msg + 4 && !sim_post_recv(q))
			break;
	for (uint32_t n = below(s, 6); n; n--)
		if (!sim_post_send(q))
			break;
}

/* What the applications do at a moment: poll a little, post a little. */
static void app(struct sim *s)
{
	for (unsigned side = 0; side < 2; side++) {
		if (s->is_dead[side])
			continue;
		sim_poll(s, side, 1 + below(s, 16));
		for (unsigned i = 0; i < s->sc.n_qp; i++)
			if (is_active(&s->q[side][i]))
				app_qp(s, &s->q[side][i]);
	}
	s->next_app = s->p.clock.now + 1 + below(s, s->sc.is_slow_receiver ? 60000 : 6000);
}

static void stop(struct sim_qp *q)
{
	q->is_stopped = true;
	q->budget = 0;
}

static void destroy(struct sim *s, struct sim_qp *q)
{
	int err;

	sim_poll(s, q->side, UINT32_MAX);
	stop(q);
	err = fake_qp_del(q->qp);
	q->qp = NULL;
	if (err)
		sim_fail(s, "QP_DEL: %d", err);
}

/* A process dies: its memory first, then the daemon takes down what it owned. */
static void kill_step(struct sim *s)
{
	struct fake_dev *d = &s->p.dev[s->event_side];

	if (s->event_step++ == 0) {
		s->is_dead[s->event_side] = true;
		for (uint32_t i = 0; i < d->mem.n_regions; i++)
			d->mem.region[i].broken = true;
		for (unsigned i = 0; i < s->sc.n_qp; i++)
			stop(&s->q[s->event_side][i]);
		s->event_at = s->p.clock.now + below(s, 200000);
		return;
	}
	for (unsigned i = 0; i < s->sc.n_qp; i++) {
		if (fake_qp_del(s->q[s->event_side][i].qp))
			sim_fail(s, "QP_DEL of a dead process's QP");
		s->q[s->event_side][i].qp = NULL;
	}
	for (unsigned k = 0; k < SIM_N_KINDS; k++)
		if (fake_dereg(d, s->arena[s->event_side][k].r))
			sim_fail(s, "MR_DEL of a dead process's region");
	s->event_at = VCLOCK_NEVER;
}

static bool is_quiet(const struct sim *s)
{
	return !s->p.link.n[0] && !s->p.link.n[1];
}

/* One side resets its QP; later, when the other side's WRs have failed, both connect anew. */
static void reset_step(struct sim *s)
{
	struct sim_qp *q = &s->q[s->event_side][s->event_qp];

	if (s->event_step++ == 0) {
		sim_poll(s, q->side, UINT32_MAX);
		stop(q);
		if (fake_qp_to(q->qp, UROCE_QPS_RESET))
			sim_fail(s, "RESET");
		s->event_at = s->p.clock.now + 1000000;
		return;
	}
	s->event_at = s->p.clock.now + 1000000;
	if (!is_quiet(s) || q->peer->head != q->peer->n_wr)
		return;
	s->is_draining = true;
	fake_qp_to(q->peer->qp, UROCE_QPS_ERR);
	sim_poll(s, q->peer->side, UINT32_MAX);
	s->is_draining = false;
	if (q->peer->recv_head != q->peer->n_recv)
		sim_fail(s, "%u of %u receives flushed", q->peer->recv_head, q->peer->n_recv);
	if (fake_qp_to(q->peer->qp, UROCE_QPS_RESET))
		sim_fail(s, "RESET of the peer");
	sim_connect(s, s->event_qp);
	q->budget = s->sc.budget;
	q->peer->budget = below(s, s->sc.budget);
	s->event_at = VCLOCK_NEVER;
}

static void event(struct sim *s)
{
	if (!s->event_step) {
		s->event_side = below(s, 2);
		s->event_qp = below(s, s->sc.n_qp);
	}
	if (s->sc.has_kill) {
		kill_step(s);
	} else if (s->sc.has_reset) {
		reset_step(s);
	} else {
		destroy(s, &s->q[s->event_side][s->event_qp]);
		s->event_at = VCLOCK_NEVER;
	}
}

static bool is_done(struct sim_qp *q)
{
	if (!is_active(q))
		sim_settle(q);
	return q->is_stopped || (q->head == q->n_wr && !(q->budget && is_active(q)));
}

static bool is_over(struct sim *s)
{
	if (s->is_full)
		return true;
	if (s->event_step && s->event_at != VCLOCK_NEVER)
		return false;
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < s->sc.n_qp; i++)
			if (!is_done(&s->q[side][i]))
				return false;
	return true;
}

static void turn(struct sim *s)
{
	bool moved = pair_turn(&s->p);

	sim_check_turn(s);
	if (s->p.turns > MOST_TURNS || s->p.clock.now > MOST_VIRTUAL)
		sim_fail(s, "no end in sight");
	if (!moved)
		pair_advance(&s->p, vclock_sooner(s->next_app, s->event_at));
}

/* All QPs to ERR: whatever is left is flushed, and nothing moves any more. */
static void drain(struct sim *s)
{
	s->is_draining = true;
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < s->sc.n_qp; i++)
			if (!s->q[side][i].is_stopped &&
			    fake_qp_to(s->q[side][i].qp, UROCE_QPS_ERR))
				sim_fail(s, "ERR");
	for (unsigned side = 0; side < 2; side++)
		if (!s->is_dead[side])
			sim_poll(s, side, UINT32_MAX);
	while (pair_turn(&s->p) || pair_advance(&s->p, VCLOCK_NEVER)) {
		sim_check_turn(s);
		if (s->p.turns > MOST_TURNS)
			sim_fail(s, "QPs in ERR do not rest");
	}
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < s->sc.n_qp; i++)
			sim_settle(&s->q[side][i]);
	sim_check_end(s);
}

/* Nothing is left: every object can go, and the engine says so. */
static void take_down(struct sim *s)
{
	for (unsigned side = 0; side < 2; side++) {
		struct fake_dev *d = &s->p.dev[side];

		for (unsigned i = 0; i < s->sc.n_qp; i++)
			if (s->q[side][i].qp && fake_qp_del(s->q[side][i].qp))
				sim_fail(s, "QP_DEL at the end");
		for (unsigned i = 0; i < s->sc.n_cq; i++)
			if (fake_cq_del(s->cq[side][i]))
				sim_fail(s, "CQ_DEL at the end: somebody still uses it");
		for (unsigned k = 0; k < SIM_N_KINDS; k++)
			if (s->arena[side][k].r->live && fake_dereg(d, s->arena[side][k].r))
				sim_fail(s, "MR_DEL at the end");
		if (engine_deadline(d->engine) != VCLOCK_NEVER || engine_tx_pending(d->engine))
			sim_fail(s, "an engine without QPs has something to do");
	}
}

static void add_stats(struct sim_stats *sum, const struct sim_stats *one)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)one;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

void sim_run(uint64_t seed, struct sim_stats *total)
{
	static struct sim sim; /* large; Check's fork gives each test its own */
	struct sim *s = &sim;
	uint64_t began;

	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->rng = seed;
	sim_draw(s);
	sim_setup(s);
	began = s->p.clock.now;
	s->next_app = began;
	while (!is_over(s)) {
		if (s->p.clock.now >= s->next_app)
			app(s);
		if (s->p.clock.now >= s->event_at)
			event(s);
		turn(s);
	}
	s->event_at = VCLOCK_NEVER;
	sim_check_calm(s);
	drain(s);
	s->stats.virtual_ns = s->p.clock.now - began;
	s->stats.frames = s->p.link.n_sent[0] + s->p.link.n_sent[1];
	s->stats.turns = s->p.turns;
	take_down(s);
	add_stats(total, &s->stats);
	sim_release(s);
}
