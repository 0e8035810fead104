/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows of a device of two engines: bound in one, used, revoked and deleted in both. */
#include "dataplane/transport/mw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/transport/core.h"
#include "tests/support/ck_main.h"

#define N     64u
#define PD    7u
#define MR    (3u << 8 | 1)
#define MW    (9u << 8 | 1)
#define BASE  0x10000u
#define BIND  (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_MW_BIND)
#define WRITE UROCE_ACCESS_REMOTE_WRITE

static struct engine *e[2];
static void *shared;
static struct qp *qp;

static struct cmd_mr_add region(void)
{
	return (struct cmd_mr_add) {
		.key = MR, .pd = PD, .access = BIND, .iova = BASE, .length = 4096, .addr = BASE
	};
}

static void setup(void)
{
	struct engine_conf conf = { .max_qp = 2, .max_cq = 2, .max_mr = N, .n_workers = 2 };
	const struct ports none = { 0 };
	struct cmd_mr_add mr = region();
	struct cmd_mw_add mw = { .key = MW, .pd = PD, .type = 1 };

	shared = conf.shared = calloc(1, engine_shared_size(&conf));
	for (unsigned i = 0; i < 2; i++) {
		void *arena = aligned_alloc(64, engine_size(&conf));

		conf.worker = i;
		e[i] = engine_create(&conf, &none, memset(arena, 0, engine_size(&conf)));
		ck_assert_int_eq(mr_add(&e[i]->mr, &mr), 0);
		ck_assert_int_eq(mw_add(&e[i]->mr, &mw), 0);
	}
	qp = calloc(1, sizeof(*qp));
	qp->pd = PD;
	qp->qpn = 5;
}

static void teardown(void)
{
	free(e[0]);
	free(e[1]);
	free(shared);
	free(qp);
}

static bool bind(unsigned engine, uint32_t key, uint64_t off, uint64_t len, bool *is_revoked)
{
	struct send_rec rec = { .imm = MW,
				.rkey = key,
				.va = BASE + off,
				.compare = len,
				.swap_add = (uint64_t)WRITE << 32 | MR };

	return mw_bind(e[engine], qp, &rec, is_revoked);
}

static enum mr_verdict use(unsigned engine, uint32_t key, uint64_t off)
{
	struct mem_vec vec;

	return mr_remote_access(&e[engine]->mr, qp, PD, key, WRITE, BASE + off, 8, &vec);
}

START_TEST(what_one_engine_binds_all_see)
{
	bool is_revoked = true;

	ck_assert_int_eq(use(1, MW + 1, 64), MR_NO_KEY);
	ck_assert(bind(0, MW + 1, 64, 64, &is_revoked));
	ck_assert(!is_revoked);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(use(i, MW + 1, 64), MR_OK);
		ck_assert_int_eq(use(i, MW + 1, 60), MR_BOUNDS);
		ck_assert_int_eq(use(i, MW, 64), MR_NO_KEY);
	}
	ck_assert(bind(1, MW + 2, 0, 64, &is_revoked));
	ck_assert(is_revoked);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(use(i, MW + 1, 64), MR_NO_KEY);
		ck_assert_int_eq(use(i, MW + 2, 0), MR_OK);
	}
}
END_TEST

START_TEST(a_region_stays_while_any_engine_has_a_window_on_it)
{
	struct cmd_mr_add again = region();
	bool is_revoked;

	ck_assert(bind(1, MW + 1, 0, 64, &is_revoked));
	ck_assert_int_eq(mr_del(&e[0]->mr, MR, false), -EBUSY);
	ck_assert_int_eq(use(0, MW + 1, 0), MR_OK);
	ck_assert(bind(0, MW + 2, 0, 0, &is_revoked)); /* unbound */
	ck_assert_int_eq(mr_del(&e[0]->mr, MR, false), 0);
	/* It is on its way out: no engine binds to it any more, also one that still has it. */
	ck_assert(!bind(1, MW + 3, 0, 64, &is_revoked));
	ck_assert_int_eq(mr_del(&e[1]->mr, MR, false), 0);
	again.no_windows = true; /* as a region that changes comes back */
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(mr_add(&e[i]->mr, &again), 0);
	ck_assert(!bind(0, MW + 4, 0, 64, &is_revoked));
	mw_region_open(&e[0]->mr, MR, false);
	ck_assert(bind(1, MW + 4, 0, 64, &is_revoked));
}
END_TEST

START_TEST(a_window_whose_region_was_killed_shows_nothing)
{
	struct cmd_mr_add again = region();
	bool is_revoked;

	ck_assert(bind(0, MW + 1, 0, 64, &is_revoked));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(mr_del(&e[i]->mr, MR, true), 0);
		ck_assert_int_eq(use(i, MW + 1, 0), MR_NO_KEY);
	}
	again.key = MR + 1; /* another region in its place */
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(mr_add(&e[i]->mr, &again), 0);
		ck_assert_int_eq(use(i, MW + 1, 0), MR_NO_KEY);
	}
	/* What the window gives back it had not taken from this one. */
	ck_assert_int_eq(mw_del(&e[0]->mr, MW), 0);
	ck_assert_int_eq(mr_del(&e[0]->mr, MR + 1, false), 0);
}
END_TEST

START_TEST(a_window_that_one_engine_has_deleted_is_bound_by_none)
{
	bool is_revoked;

	ck_assert(bind(0, MW + 1, 0, 64, &is_revoked));
	ck_assert_int_eq(mw_del(&e[0]->mr, MW), 0);
	ck_assert_int_eq(use(1, MW + 1, 0), MR_NO_KEY);
	ck_assert(!bind(1, MW + 2, 0, 64, &is_revoked));
	ck_assert_int_eq(mw_del(&e[1]->mr, MW), 0);
	ck_assert_int_eq(mr_del(&e[0]->mr, MR, false), 0);
}
END_TEST

START_TEST(a_revocation_waits_for_who_is_inside)
{
	mw_enter(e[0]);
	mw_grace_begin(e[0], qp);
	ck_assert(mw_grace_is_over(e[0], qp)); /* the other is outside */
	mw_enter(e[1]);
	mw_grace_begin(e[0], qp);
	ck_assert(!mw_grace_is_over(e[0], qp));
	mw_leave(e[1]);
	mw_enter(e[1]); /* in again, but after it */
	ck_assert(mw_grace_is_over(e[0], qp));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("mw");
	TCase *tc = tcase_create("two engines");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_one_engine_binds_all_see);
	tcase_add_test(tc, a_region_stays_while_any_engine_has_a_window_on_it);
	tcase_add_test(tc, a_window_whose_region_was_killed_shows_nothing);
	tcase_add_test(tc, a_window_that_one_engine_has_deleted_is_bound_by_none);
	tcase_add_test(tc, a_revocation_waits_for_who_is_inside);
	suite_add_tcase(s, tc);
	return s;
}
