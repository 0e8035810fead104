/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every row of "What each misuse shows" in docs/TRANSPORT.md (UROCE_TRANSPORT_MD says where
 * that is). A row without a scenario fails, and so does a scenario without a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/truth.h"

#define MAX_SEEN 64u

static struct truth t;
static struct truth_table table;

static const struct truth_list *const lists[] = { &truth_remote, &truth_local, &truth_other };
#define N_LISTS (sizeof(lists) / sizeof(lists[0]))

/* Completions of one queue, in order. */
struct seen {
	uint32_t n;
	struct uroce_cqe cqe[MAX_SEEN];
};

struct fake_wr truth_wr(struct truth *tr, uint8_t opcode, uint32_t len)
{
	const struct fake_region *l = tr->s.mem[0], *r = tr->s.mem[1];

	return (struct fake_wr) { .opcode = opcode, .flags = UROCE_WQE_SIGNALED, .n_sge = 1,
				  .sge = { fake_sge(l, 0, len) }, .remote_addr = r->iova,
				  .rkey = r->key, .compare_add = 1 };
}

void truth_post(struct truth *tr, struct fake_wr wr)
{
	ck_assert_uint_lt(tr->n_sends, sizeof(tr->is_signaled));
	wr.wr_id = tr->n_sends;
	tr->is_signaled[tr->n_sends++] = wr.flags & UROCE_WQE_SIGNALED;
	ck_assert(fake_post_send(tr->s.qp[0], &wr));
}

void truth_recv_list(struct truth *tr, unsigned side, const struct uroce_sge *sge, uint32_t n)
{
	uint64_t wr_id = tr->n_recvs[side]++;

	if (side == 1 && tr->srq)
		ck_assert(fake_srq_post(tr->srq, wr_id, sge, n));
	else
		ck_assert(fake_post_recv(tr->s.qp[side], wr_id, sge, n));
}

void truth_recv(struct truth *tr, unsigned side, struct uroce_sge sge)
{
	truth_recv_list(tr, side, &sge, 1);
}

void truth_new_qp(struct truth *tr, unsigned side, const struct fake_qp_conf *conf)
{
	ck_assert_int_eq(fake_qp_del(tr->s.qp[side]), 0);
	tr->s.qp[side] = fake_qp_new(&tr->s.p.dev[side], conf);
	ck_assert_ptr_nonnull(tr->s.qp[side]);
}

/* Good work for which nothing at R stands in the way. */
static void post_good(uint8_t opcode, uint8_t flags)
{
	struct fake_wr wr = truth_wr(&t, opcode, 64);

	wr.sge[0] = fake_sge(t.s.mem[0], TRUTH_AT, 64);
	wr.remote_addr = t.s.mem[1]->iova + TRUTH_AT;
	wr.flags = flags;
	truth_post(&t, wr);
}

static void stage(const struct truth_case *c)
{
	memset(&t, 0, sizeof(t));
	scene_init(&t.s, &c->conf);
	t.send_cq = t.s.cq[0];
	if (c->set_up)
		c->set_up(&t);
	for (unsigned i = 0; i < 4; i++)
		if (i % 2 == 0 || !(c->flags & TRUTH_NO_RECV))
			truth_recv(&t, i % 2, fake_sge(t.s.mem[i % 2], 4096 * i, 4096));
}

static void act(const struct truth_case *c)
{
	if (!(c->flags & TRUTH_ALONE))
		post_good(UROCE_WR_WRITE, UROCE_WQE_SIGNALED);
	c->run(&t);
	if (c->flags & TRUTH_LAST)
		return;
	post_good(UROCE_WR_WRITE, UROCE_WQE_SIGNALED);
	post_good(UROCE_WR_WRITE, 0);
	if (t.s.qp[0]->conf.type == UROCE_QPT_RC)
		post_good(UROCE_WR_READ, UROCE_WQE_SIGNALED);
}

/* All that completes until nothing is due any more; each CQE into the list of its queue. */
static void collect(struct fake_cq *cq, struct seen *sq, struct seen *rq)
{
	struct uroce_cqe c;

	while (fake_poll(cq, &c, 1) > 0) {
		struct seen *to = c.queue == UROCE_CQE_SQ ? sq : rq;

		ck_assert_uint_lt(to->n, MAX_SEEN);
		to->cqe[to->n++] = c;
	}
}

static void run_and_collect(struct seen sq[2], struct seen rq[2])
{
	scene_run_ms(&t.s, 60000);
	for (unsigned i = 0; i < 2; i++) {
		sq[i].n = rq[i].n = 0;
		collect(t.s.cq[i], &sq[i], &rq[i]);
	}
	if (t.send_cq != t.s.cq[0])
		collect(t.send_cq, &sq[0], &rq[0]);
}

static void expect_cqe(const struct seen *seen, uint32_t at, uint64_t wr_id, uint8_t status,
		       const char *where)
{
	const struct uroce_cqe *c = &seen->cqe[at];

	ck_assert_msg(at < seen->n, "%s: completion %u is missing", where, at);
	ck_assert_msg(c->wr_id == wr_id && c->status == status,
		      "%s: completion %u is of WR %u with status %u, not of %u with %u (verr %u)",
		      where, at, (unsigned)c->wr_id, c->status, (unsigned)wr_id, status,
		      c->vendor_err);
}

/* What is posted behind the misuse: flushed, waiting, lost, or done. */
static void check_sends(const struct truth_row *row, const struct truth_case *c,
			const struct seen *seen)
{
	const struct truth_side *side = &row->side[0];
	uint32_t at = 0, id = 0;
	bool is_silent = row->remark[0] && strstr(row->remark, "the rest");

	if (!(c->flags & TRUTH_ALONE))
		expect_cqe(seen, at++, id++, UROCE_WC_SUCCESS, "L's send queue");
	for (uint32_t i = 0; i < side->n_status; i++)
		expect_cqe(seen, at++, id++, side->status[i], "L's send queue");
	for (; id < t.n_sends && !is_silent; id++) {
		if (side->is_flushed)
			expect_cqe(seen, at++, id, UROCE_WC_WR_FLUSH_ERR, "L's send queue");
		else if (t.is_signaled[id])
			expect_cqe(seen, at++, id, UROCE_WC_SUCCESS, "L's send queue");
	}
	ck_assert_uint_eq(seen->n, at);
}

/* A QP in ERR has flushed all its receives that nothing else has happened to. */
static void check_recvs(const struct truth_row *row, unsigned i, const struct seen *seen)
{
	const struct truth_side *side = &row->side[i];
	uint32_t at = 0;

	if (i == 1)
		for (; at < side->n_status; at++)
			expect_cqe(seen, at, at, side->status[at], "R's receive queue");
	if (side->state == UROCE_QPS_ERR && !(i == 1 && t.srq))
		for (; at < t.n_recvs[i]; at++)
			expect_cqe(seen, at, at, UROCE_WC_WR_FLUSH_ERR,
				   i ? "R's receive queue" : "L's receive queue");
	ck_assert_msg(seen->n == at, "%u completions of %c's receives, not %u", seen->n, "LR"[i],
		      at);
}

static void check_state(const struct truth_side *side, unsigned i)
{
	const struct fake_qp *qp = t.s.qp[i];

	if (side->state == TRUTH_GONE)
		ck_assert_ptr_null(qp);
	else
		ck_assert_msg(qp && (int)fake_qp_state(qp) == side->state,
			      "the QP of %c is not in the state the row says", "LR"[i]);
}

static void check_events(const struct truth_side *side, unsigned i)
{
	const struct fake_dev *d = &t.s.p.dev[i];

	for (uint32_t k = 0; k < side->n_events && k < d->n_events; k++)
		ck_assert_msg(d->event[k].type == side->event[k],
			      "event %u at %c is %u, not %u", k, "LR"[i], d->event[k].type,
			      side->event[k]);
	ck_assert_msg(d->n_events == side->n_events, "%u events at %c, not %u", d->n_events,
		      "LR"[i], side->n_events);
}

static void check_nothing_written(void)
{
	uint32_t word;

	for (uint32_t k = 0; k < TRUTH_AT; k += 4) {
		memcpy(&word, t.s.mem[1]->mem + k, 4);
		ck_assert_uint_eq(word, k * 2654435761u + 1);
	}
}

static uint32_t rnr_naks(void)
{
	uint32_t n = 0;

	for (unsigned code = 0; code < 32; code++)
		n += t.s.naks[1][0x20 | code];
	return n;
}

/* What the row says of L beyond statuses; a remark that nobody checks is a fault of the row. */
static void check_remark(const struct truth_row *row, const struct truth_case *c)
{
	struct seen sq[2], rq[2];

	if (!strcmp(row->remark, "nothing sent")) {
		ck_assert_uint_eq(t.s.n_tx[0], c->flags & TRUTH_ALONE ? 0 : 1);
	} else if (!strcmp(row->remark, "nothing written")) {
		check_nothing_written();
	} else if (!strcmp(row->remark, "3 waits")) {
		ck_assert_uint_eq(rnr_naks(), 4);
	} else if (!strcmp(row->remark, "the rest waits")) {
		ck_assert_int_eq(fake_qp_to(t.s.qp[0], UROCE_QPS_RTS), 0);
		run_and_collect(sq, rq);
		ck_assert_uint_eq(sq[0].n, 2); /* of three, one is not signaled */
		expect_cqe(&sq[0], 0, t.n_sends - 3, UROCE_WC_SUCCESS, "L's send queue");
		expect_cqe(&sq[0], 1, t.n_sends - 1, UROCE_WC_SUCCESS, "L's send queue");
	} else {
		ck_assert_msg(!row->remark[0] || !strcmp(row->remark, "the rest is lost"),
			      "nothing checks the remark \"%s\"", row->remark);
	}
}

/* What is posted to a QP in ERR is flushed; in SQE so are sends, and receives stay. */
static void check_posted_now(const struct truth_side *side, unsigned i)
{
	struct fake_wr wr = { .wr_id = 1000, .opcode = UROCE_WR_SEND };
	bool is_err = side->state == UROCE_QPS_ERR;
	struct seen sq[2], rq[2];

	if (!is_err && side->state != UROCE_QPS_SQE)
		return;
	ck_assert(fake_post_send(t.s.qp[i], &wr));
	ck_assert(fake_post_recv(t.s.qp[i], 1000, NULL, 0));
	run_and_collect(sq, rq);
	if (!(i == 0 && t.send_cq != t.s.cq[0])) {
		ck_assert_uint_eq(sq[i].n, 1);
		expect_cqe(&sq[i], 0, 1000, UROCE_WC_WR_FLUSH_ERR, "a send posted afterwards");
	}
	if (is_err && !(i == 1 && t.srq)) {
		ck_assert_uint_eq(rq[i].n, 1);
		expect_cqe(&rq[i], 0, 1000, UROCE_WC_WR_FLUSH_ERR, "a receive posted afterwards");
	} else {
		ck_assert_uint_eq(rq[i].n, 0);
	}
}

static const struct truth_case *case_of(const char *misuse)
{
	for (unsigned k = 0; k < N_LISTS; k++)
		for (unsigned i = 0; i < lists[k]->n; i++)
			if (!strcmp(lists[k]->cases[i].misuse, misuse))
				return &lists[k]->cases[i];
	return NULL;
}

static const char *path(void)
{
	const char *p = getenv("UROCE_TRANSPORT_MD");

	return p ? p : "docs/TRANSPORT.md";
}

static void leave(void)
{
	if (t.srq && t.s.qp[1]) {
		ck_assert_int_eq(fake_qp_del(t.s.qp[1]), 0);
		ck_assert_int_eq(fake_srq_del(t.srq), 0);
	}
	scene_free(&t.s);
}

START_TEST(both_sides_show_what_the_row_says)
{
	struct seen sq[2], rq[2];
	const struct truth_row *row;
	const struct truth_case *c;

	truth_read(&table, path());
	ck_assert_uint_lt(_i, table.n);
	row = &table.row[_i];
	printf("# %s\n", row->misuse);
	fflush(stdout);
	c = case_of(row->misuse);
	ck_assert_msg(c != NULL, "no scenario shows \"%s\"", row->misuse);
	stage(c);
	act(c);
	run_and_collect(sq, rq);
	check_sends(row, c, &sq[0]);
	ck_assert_uint_eq(sq[1].n, 0);
	for (unsigned i = 0; i < 2; i++) {
		check_recvs(row, i, &rq[i]);
		check_state(&row->side[i], i);
		check_events(&row->side[i], i);
	}
	check_remark(row, c);
	for (unsigned i = 0; i < 2; i++)
		check_posted_now(&row->side[i], i);
	leave();
}
END_TEST

START_TEST(every_scenario_has_its_row_once)
{
	truth_read(&table, path());
	for (unsigned k = 0; k < N_LISTS; k++) {
		for (unsigned i = 0; i < lists[k]->n; i++) {
			const char *misuse = lists[k]->cases[i].misuse;
			unsigned n = 0;

			for (uint32_t r = 0; r < table.n; r++)
				n += !strcmp(table.row[r].misuse, misuse);
			ck_assert_msg(n == 1, "\"%s\" has %u rows", misuse, n);
		}
	}
}
END_TEST

START_TEST(every_row_has_its_scenario)
{
	truth_read(&table, path());
	ck_assert_uint_gt(table.n, 0);
	for (uint32_t r = 0; r < table.n; r++)
		ck_assert_msg(case_of(table.row[r].misuse) != NULL, "no scenario shows \"%s\"",
			      table.row[r].misuse);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/truth");
	TCase *c = tcase_create("truth");

	tcase_add_loop_test(c, both_sides_show_what_the_row_says, 0,
			    (int)truth_count(path()));
	tcase_add_test(c, every_scenario_has_its_row_once);
	tcase_add_test(c, every_row_has_its_scenario);
	suite_add_tcase(suite, c);
	return suite;
}
