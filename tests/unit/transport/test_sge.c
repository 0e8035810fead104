/* SPDX-License-Identifier: BSD-3-Clause */
/* A piece of a scatter/gather list as memory: against the plainest way to compute it. */
#include "dataplane/transport/core.h"
#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

static struct raw r;
static struct uroce_sge sge[UROCE_MAX_SGE];

static void setup(void)
{
	raw_init(&r, NULL);
}

static void teardown(void)
{
	raw_free(&r);
}

static int map(unsigned n, uint64_t off, uint64_t len, struct mem_vec *out)
{
	return sge_map(r.dev.engine, 1, sge, n, UROCE_ACCESS_LOCAL_WRITE, off, len, out);
}

/* Byte by byte: the address of byte `at` of the list. */
static uint64_t address(unsigned n, uint64_t at)
{
	for (unsigned i = 0; i < n; at -= sge[i++].length)
		if (at < sge[i].length)
			return sge[i].addr + at - r.mem->iova + r.mem->addr;
	ck_abort_msg("past the list");
	return 0;
}

START_TEST(every_piece_of_a_random_list_is_where_it_should_be)
{
	uint64_t rng = ck_seed() + (uint64_t)_i;

	for (int round = 0; round < 300; round++) {
		unsigned n = 1 + ck_below(&rng, UROCE_MAX_SGE);
		struct mem_vec out[UROCE_MAX_SGE];
		uint64_t total, off, len, at;
		int got;

		for (unsigned i = 0; i < n; i++) /* some are empty */
			sge[i] = fake_sge(r.mem, ck_below(&rng, 60000),
					  ck_below(&rng, 3) ? ck_below(&rng, 500) : 0);
		total = sge_total(sge, n);
		off = total ? ck_below(&rng, (uint32_t)total + 1) : 0;
		len = ck_below(&rng, (uint32_t)(total - off) + 1);
		at = off;
		got = map(n, off, len, out);
		ck_assert_int_ge(got, 0);
		for (int i = 0; i < got; at += out[i++].len) {
			ck_assert_uint_gt(out[i].len, 0);
			ck_assert_uint_eq(out[i].addr, address(n, at));
			ck_assert_uint_eq(out[i].addr + out[i].len - 1,
					  address(n, at + out[i].len - 1));
		}
		ck_assert_uint_eq(at, off + len);
	}
}
END_TEST

START_TEST(a_list_that_is_too_short_has_changed)
{
	struct mem_vec out[2];

	sge[0] = fake_sge(r.mem, 0, 100);
	ck_assert_int_eq(map(1, 0, 101, out), -(int)UROCE_VERR_WQE_CHANGED);
	ck_assert_int_eq(map(1, 100, 1, out), -(int)UROCE_VERR_WQE_CHANGED);
	ck_assert_int_eq(map(1, 1000, 0, out), 0);
}
END_TEST

START_TEST(only_what_is_used_is_judged)
{
	struct mem_vec out[3];

	sge[0] = fake_sge(r.mem, 0, 100);
	sge[1] = fake_sge(r.mem, 65536, 100);     /* past the end */
	sge[2] = (struct uroce_sge) { 5, 0, 99 }; /* empty, and no such key */
	ck_assert_int_eq(map(3, 0, 100, out), 1);
	ck_assert_int_eq(map(3, 0, 101, out), -(int)UROCE_VERR_LKEY_BOUNDS);
	sge[1].lkey ^= 1;
	ck_assert_int_eq(map(3, 50, 100, out), -(int)UROCE_VERR_LKEY);
}
END_TEST

START_TEST(lengths_are_summed_without_overflow)
{
	for (unsigned i = 0; i < UROCE_MAX_SGE; i++)
		sge[i].length = UINT32_MAX;
	ck_assert_uint_eq(sge_total(sge, UROCE_MAX_SGE), (uint64_t)UROCE_MAX_SGE * UINT32_MAX);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/sge");
	TCase *c = tcase_create("sge");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, every_piece_of_a_random_list_is_where_it_should_be, 0, 8);
	tcase_add_test(c, a_list_that_is_too_short_has_changed);
	tcase_add_test(c, only_what_is_used_is_judged);
	tcase_add_test(c, lengths_are_summed_without_overflow);
	suite_add_tcase(s, c);
	return s;
}
