/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/psn.h"

#include "tests/support/ck_main.h"

static const struct {
	uint32_t a, b;
	int sign;
} order[] = {
	{ 0, 0, 0 },
	{ 1, 0, 1 },
	{ 0, 1, -1 },
	{ 0, 0xffffff, 1 }, /* over the wrap */
	{ 0xffffff, 0, -1 },
	{ 5, 0xfffffb, 1 },
	{ 0x7fffff, 0, 1 }, /* the farthest that is still after */
	{ 0x800001, 0, -1 },
	{ 0x123456, 0x123456, 0 },
	{ 0x400000, 0xc00001, 1 },
	{ 0xc00001, 0x400000, -1 },
};

START_TEST(diff_is_ordered_across_the_wrap)
{
	int32_t d = psn_diff(psn_make(order[_i].a), psn_make(order[_i].b));

	ck_assert_int_eq((d > 0) - (d < 0), order[_i].sign);
}
END_TEST

START_TEST(half_the_circle_away_is_before)
{
	ck_assert_int_lt(psn_diff(psn_make(0x800000), psn_make(0)), 0);
	ck_assert_int_lt(psn_diff(psn_make(0), psn_make(0x800000)), 0);
}
END_TEST

START_TEST(make_and_add_stay_below_2_to_24)
{
	ck_assert_uint_eq(psn_make(0x1000000).v, 0);
	ck_assert_uint_eq(psn_make(0xffffffff).v, 0xffffff);
	ck_assert_uint_eq(psn_add(psn_make(0xffffff), 1).v, 0);
	ck_assert_uint_eq(psn_add(psn_make(0xfffff0), 0x20).v, 0x10);
	ck_assert_uint_eq(psn_add(psn_make(3), 0xffffff).v, 2);
}
END_TEST

START_TEST(diff_inverts_add_for_every_distance_below_half)
{
	uint64_t rng = ck_seed();

	for (int i = 0; i < 100000; i++) {
		psn_t a = psn_make((uint32_t)ck_rand(&rng));
		uint32_t n = ck_below(&rng, 0x800000);

		ck_assert_int_eq(psn_diff(psn_add(a, n), a), (int32_t)n);
		ck_assert_int_eq(psn_diff(a, psn_add(a, n)), -(int32_t)n);
		ck_assert_uint_eq(psn_dist(a, psn_add(a, n)), n);
	}
}
END_TEST

START_TEST(within_is_the_half_open_range)
{
	psn_t from = psn_make(0xfffffe);

	ck_assert(psn_within(psn_make(0xfffffe), from, 4));
	ck_assert(psn_within(psn_make(0), from, 4));
	ck_assert(psn_within(psn_make(1), from, 4));
	ck_assert(!psn_within(psn_make(2), from, 4));
	ck_assert(!psn_within(psn_make(0xfffffd), from, 4));
	ck_assert(!psn_within(from, from, 0));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/psn");
	TCase *c = tcase_create("psn");

	tcase_add_loop_test(c, diff_is_ordered_across_the_wrap, 0,
			    (int)(sizeof(order) / sizeof(order[0])));
	tcase_add_test(c, half_the_circle_away_is_before);
	tcase_add_test(c, make_and_add_stay_below_2_to_24);
	tcase_add_test(c, diff_inverts_add_for_every_distance_below_half);
	tcase_add_test(c, within_is_the_half_open_range);
	suite_add_tcase(s, c);
	return s;
}
