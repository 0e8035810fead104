/* SPDX-License-Identifier: BSD-3-Clause */
/* The reaction point alone: cuts, recovery, and the pace that comes of the rate. */
#include "dataplane/transport/dcqcn.h"

#include "tests/support/ck_main.h"

#define MTU 4096u
#define US  1000u

START_TEST(a_cnp_halves_the_rate_and_alpha_makes_the_next_milder)
{
	struct dcqcn d = { 0 };

	dcqcn_cnp(&d, 1000, MTU);
	ck_assert(d.is_limiting);
	ck_assert_uint_eq(d.rc, DCQCN_LINE_MBPS / 2);
	ck_assert_uint_eq(d.rt, DCQCN_LINE_MBPS);
	ck_assert_uint_eq(d.alpha, DCQCN_ONE);
	dcqcn_cnp(&d, 1000 + 50 * US, MTU);
	ck_assert_uint_eq(d.rc, DCQCN_LINE_MBPS / 4);
	ck_assert_uint_eq(d.rt, DCQCN_LINE_MBPS / 2);
	/* 20 ms later alpha has decayed: the cut is small. */
	dcqcn_run(&d, 20000 * US, MTU);
	ck_assert_uint_lt(d.alpha, DCQCN_ONE / 3);
}
END_TEST

START_TEST(fast_recovery_halves_the_distance_five_times)
{
	struct dcqcn d = { 0 };
	uint32_t rc;

	dcqcn_cnp(&d, 0, MTU);
	dcqcn_cnp(&d, 0, MTU);
	rc = d.rc;
	for (unsigned i = 1; i <= DCQCN_F; i++) {
		dcqcn_run(&d, i * (uint64_t)DCQCN_T_NS, MTU);
		rc = (rc + DCQCN_LINE_MBPS / 2 + 1) / 2;
		ck_assert_uint_eq(d.rc, rc);
		ck_assert_uint_eq(d.rt, DCQCN_LINE_MBPS / 2);
	}
	dcqcn_run(&d, 6 * (uint64_t)DCQCN_T_NS, MTU);
	ck_assert_uint_eq(d.rt, DCQCN_LINE_MBPS / 2 + DCQCN_RAI_MBPS);
}
END_TEST

START_TEST(bytes_and_time_together_make_it_hyper)
{
	struct dcqcn d = { 0 };
	uint32_t rt;

	dcqcn_cnp(&d, 0, MTU);
	dcqcn_cnp(&d, 0, MTU);
	dcqcn_run(&d, 6 * (uint64_t)DCQCN_T_NS, MTU);
	for (unsigned i = 0; i < 5; i++)
		dcqcn_sent(&d, 6 * (uint64_t)DCQCN_T_NS, DCQCN_B_BYTES, MTU);
	rt = d.rt;
	dcqcn_sent(&d, 6 * (uint64_t)DCQCN_T_NS, DCQCN_B_BYTES, MTU);
	ck_assert_uint_eq(d.rt, rt + DCQCN_RHAI_MBPS);
}
END_TEST

START_TEST(quiet_for_long_is_back_at_line_rate)
{
	struct dcqcn d = { 0 };

	for (unsigned i = 0; i < 100; i++)
		dcqcn_cnp(&d, 1000, MTU);
	ck_assert_uint_eq(d.rc, DCQCN_MIN_MBPS);
	dcqcn_run(&d, 1000000000, MTU);
	ck_assert(!d.is_limiting);
}
END_TEST

START_TEST(it_comes_back_by_itself)
{
	struct dcqcn d = { 0 };
	uint64_t t;

	dcqcn_cnp(&d, 1000, MTU);
	for (t = 1000; d.is_limiting && t < 1000000000; t += DCQCN_T_NS)
		dcqcn_run(&d, t, MTU);
	ck_assert(!d.is_limiting);
	ck_assert_uint_lt(t, 10000000);
}
END_TEST

START_TEST(the_pace_is_the_rate)
{
	struct dcqcn d = { 0 };
	uint64_t now = 5000;

	dcqcn_cnp(&d, now, MTU);
	dcqcn_cnp(&d, now, MTU); /* 10 Gbit/s */
	for (unsigned i = 0; i < 10; i++)
		dcqcn_sent(&d, now, 1250, MTU);
	ck_assert_uint_ge(d.next_at - now, 9900);
	ck_assert_uint_le(d.next_at - now, 10000);
	ck_assert_uint_ge(d.burst, 1);
	/* What was not used is not saved up. */
	now += 1000000;
	dcqcn_sent(&d, now, 1250, MTU);
	ck_assert_uint_le(d.next_at - now, 1000);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("dcqcn");
	TCase *c = tcase_create("dcqcn");

	tcase_add_test(c, a_cnp_halves_the_rate_and_alpha_makes_the_next_milder);
	tcase_add_test(c, fast_recovery_halves_the_distance_five_times);
	tcase_add_test(c, bytes_and_time_together_make_it_hyper);
	tcase_add_test(c, quiet_for_long_is_back_at_line_rate);
	tcase_add_test(c, it_comes_back_by_itself);
	tcase_add_test(c, the_pace_is_the_rate);
	suite_add_tcase(s, c);
	return s;
}
