/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/abi/backoff.h"

#include "tests/support/ck_main.h"

START_TEST(the_first_empty_poll_asks_for_the_clock)
{
	struct uroce_backoff b;

	uroce_backoff_init(&b);
	ck_assert(uroce_backoff_due(&b));
	ck_assert_int_eq(uroce_backoff_next(&b, 1000), UROCE_BACKOFF_PAUSE);
	ck_assert_uint_eq(b.idle_since, 1000);
}
END_TEST

START_TEST(idle_since_never_reads_as_not_idle_at_time_zero)
{
	struct uroce_backoff b;

	uroce_backoff_init(&b);
	ck_assert(uroce_backoff_due(&b));
	uroce_backoff_next(&b, 0);
	ck_assert_uint_ne(b.idle_since, 0);
}
END_TEST

START_TEST(after_limit_empty_polls_it_yields)
{
	struct uroce_backoff b;
	unsigned polls = 1;

	uroce_backoff_init(&b);
	ck_assert(uroce_backoff_due(&b));
	uroce_backoff_next(&b, 10);
	while (!uroce_backoff_due(&b))
		polls++;
	ck_assert_uint_eq(polls + 1, UROCE_BACKOFF_START);
	ck_assert_int_eq(uroce_backoff_next(&b, 20), UROCE_BACKOFF_YIELD);
}
END_TEST

START_TEST(it_sleeps_exactly_after_the_idle_time)
{
	struct uroce_backoff b;

	uroce_backoff_init(&b);
	uroce_backoff_due(&b);
	uroce_backoff_next(&b, 1000);
	ck_assert_int_ne(uroce_backoff_next(&b, 1000 + UROCE_BACKOFF_SLEEP_NS - 1),
			 UROCE_BACKOFF_SLEEP);
	ck_assert_int_eq(uroce_backoff_next(&b, 1000 + UROCE_BACKOFF_SLEEP_NS),
			 UROCE_BACKOFF_SLEEP);
}
END_TEST

START_TEST(work_restarts_the_idle_time)
{
	struct uroce_backoff b;

	uroce_backoff_init(&b);
	uroce_backoff_due(&b);
	uroce_backoff_next(&b, 1000);
	uroce_backoff_busy(&b);
	ck_assert(uroce_backoff_due(&b));
	ck_assert_int_eq(uroce_backoff_next(&b, 900000), UROCE_BACKOFF_PAUSE);
	ck_assert_int_ne(uroce_backoff_next(&b, 900000 + UROCE_BACKOFF_SLEEP_NS - 1),
			 UROCE_BACKOFF_SLEEP);
}
END_TEST

START_TEST(a_quick_yield_doubles_the_limit_up_to_its_maximum)
{
	struct uroce_backoff b;
	uint32_t want = UROCE_BACKOFF_START;

	uroce_backoff_init(&b);
	for (int i = 0; i < 10; i++) {
		uroce_backoff_yielded(&b, UROCE_BACKOFF_SHARED_NS);
		want = want * 2 > UROCE_BACKOFF_MAX ? UROCE_BACKOFF_MAX : want * 2;
		ck_assert_uint_eq(b.limit, want);
		ck_assert_uint_eq(b.shared, 0);
		ck_assert_uint_eq(b.empty, 0);
	}
}
END_TEST

START_TEST(a_long_yield_halves_the_limit_down_to_one)
{
	struct uroce_backoff b;
	uint32_t want = UROCE_BACKOFF_START;

	uroce_backoff_init(&b);
	for (int i = 0; i < 10; i++) {
		uroce_backoff_yielded(&b, UROCE_BACKOFF_SHARED_NS + 1);
		want = want > 1 ? want / 2 : 1;
		ck_assert_uint_eq(b.limit, want);
		ck_assert_uint_eq(b.shared, 1);
	}
	uroce_backoff_next(&b, 5);
	ck_assert_msg(uroce_backoff_due(&b), "limit 1: every empty poll is due");
}
END_TEST

/* A yield that cost a time slice is not repeated soon: sleepers are put ahead of compute threads.
 */
START_TEST(a_lost_time_slice_makes_the_next_waits_sleeps)
{
	struct uroce_backoff b;

	uroce_backoff_init(&b);
	uroce_backoff_yielded(&b, UROCE_BACKOFF_SLICE_NS);
	ck_assert_uint_eq(b.sleeps, 0);
	uroce_backoff_yielded(&b, UROCE_BACKOFF_SLICE_NS + 1);
	for (uint32_t i = 0; i < UROCE_BACKOFF_SLEEPS; i++) {
		uroce_backoff_busy(&b);
		ck_assert_int_eq(uroce_backoff_next(&b, 5), UROCE_BACKOFF_PAUSE);
		b.empty = b.limit;
		ck_assert_int_eq(uroce_backoff_next(&b, 5), UROCE_BACKOFF_SLEEP);
	}
	ck_assert_int_eq(uroce_backoff_next(&b, 5), UROCE_BACKOFF_YIELD);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("abi/backoff");
	TCase *c = tcase_create("backoff");

	tcase_add_test(c, the_first_empty_poll_asks_for_the_clock);
	tcase_add_test(c, idle_since_never_reads_as_not_idle_at_time_zero);
	tcase_add_test(c, after_limit_empty_polls_it_yields);
	tcase_add_test(c, it_sleeps_exactly_after_the_idle_time);
	tcase_add_test(c, work_restarts_the_idle_time);
	tcase_add_test(c, a_quick_yield_doubles_the_limit_up_to_its_maximum);
	tcase_add_test(c, a_long_yield_halves_the_limit_down_to_one);
	tcase_add_test(c, a_lost_time_slice_makes_the_next_waits_sleeps);
	suite_add_tcase(s, c);
	return s;
}
