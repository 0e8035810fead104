/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/timer.h"

#include <string.h>

#include "tests/support/ck_main.h"

#define N 64u

static struct timer_heap heap;
static struct timer *slots[N];
static struct timer t[N];

static void setup(void)
{
	memset(t, 0, sizeof(t));
	for (unsigned i = 0; i < N; i++)
		t[i].at = TIMER_NEVER;
	timer_heap_init(&heap, slots, N);
}

START_TEST(an_empty_heap_is_never_due)
{
	ck_assert_uint_eq(timer_next(&heap), TIMER_NEVER);
	ck_assert_ptr_null(timer_pop(&heap, TIMER_NEVER - 1));
}
END_TEST

START_TEST(a_timer_fires_at_its_time_not_before_and_once)
{
	timer_set(&heap, &t[0], 100);
	ck_assert_uint_eq(timer_next(&heap), 100);
	ck_assert_ptr_null(timer_pop(&heap, 99));
	ck_assert_ptr_eq(timer_pop(&heap, 100), &t[0]);
	ck_assert_ptr_null(timer_pop(&heap, 1000));
	ck_assert_uint_eq(timer_next(&heap), TIMER_NEVER);
}
END_TEST

START_TEST(timers_fire_in_the_order_of_their_times)
{
	static const uint64_t at[] = { 50, 10, 40, 20, 30 };

	for (unsigned i = 0; i < 5; i++)
		timer_set(&heap, &t[i], at[i]);
	for (uint64_t want = 10; want <= 50; want += 10) {
		struct timer *f = timer_pop(&heap, 50);

		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(at[f - t], want);
	}
}
END_TEST

START_TEST(a_later_time_replaces_an_earlier_one)
{
	timer_set(&heap, &t[0], 100);
	timer_set(&heap, &t[0], 200);
	ck_assert_ptr_null(timer_pop(&heap, 199));
	ck_assert_ptr_eq(timer_pop(&heap, 200), &t[0]);
}
END_TEST

START_TEST(an_earlier_time_replaces_a_later_one)
{
	timer_set(&heap, &t[0], 200);
	timer_set(&heap, &t[0], 100);
	ck_assert_uint_le(timer_next(&heap), 100);
	ck_assert_ptr_eq(timer_pop(&heap, 100), &t[0]);
	ck_assert_ptr_null(timer_pop(&heap, 200));
}
END_TEST

START_TEST(a_stopped_timer_does_not_fire_and_can_be_set_again)
{
	timer_set(&heap, &t[0], 100);
	timer_stop(&heap, &t[0]);
	ck_assert_ptr_null(timer_pop(&heap, 1000));
	timer_set(&heap, &t[0], 1100);
	ck_assert_ptr_eq(timer_pop(&heap, 1100), &t[0]);
}
END_TEST

START_TEST(a_removed_timer_is_forgotten)
{
	for (unsigned i = 0; i < N; i++)
		timer_set(&heap, &t[i], 100 + i);
	timer_remove(&heap, &t[0]);
	timer_remove(&heap, &t[31]);
	timer_remove(&heap, &t[N - 1]);
	memset(&t[31], 0xff, sizeof(t[31]));
	for (unsigned i = 0; i < N - 3; i++) {
		struct timer *f = timer_pop(&heap, 1000);

		ck_assert_ptr_nonnull(f);
		ck_assert(f != &t[0] && f != &t[31] && f != &t[N - 1]);
	}
	ck_assert_ptr_null(timer_pop(&heap, 1000));
}
END_TEST

/* Random sets, stops, removes and pops against the plainest of models. */
START_TEST(it_behaves_as_an_array_that_is_searched)
{
	uint64_t rng = ck_seed() + (uint64_t)_i, model[N], now = 0;

	for (unsigned i = 0; i < N; i++)
		model[i] = TIMER_NEVER;
	for (int step = 0; step < 20000; step++) {
		unsigned k = ck_below(&rng, N);
		uint64_t due = TIMER_NEVER;
		struct timer *f;

		switch (ck_below(&rng, 5)) {
		case 0:
			timer_stop(&heap, &t[k]);
			model[k] = TIMER_NEVER;
			break;
		case 1:
			timer_remove(&heap, &t[k]);
			model[k] = TIMER_NEVER;
			break;
		default:
			model[k] = now + 1 + ck_below(&rng, 1000);
			timer_set(&heap, &t[k], model[k]);
		}
		for (unsigned i = 0; i < N; i++)
			due = model[i] < due ? model[i] : due;
		ck_assert_uint_le(timer_next(&heap), due);
		if (ck_below(&rng, 3))
			continue;
		now += ck_below(&rng, 400);
		while ((f = timer_pop(&heap, now))) {
			ck_assert_uint_le(model[f - t], now);
			model[f - t] = TIMER_NEVER;
		}
		for (unsigned i = 0; i < N; i++)
			ck_assert_uint_gt(model[i], now);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/timer");
	TCase *c = tcase_create("timer");

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_test(c, an_empty_heap_is_never_due);
	tcase_add_test(c, a_timer_fires_at_its_time_not_before_and_once);
	tcase_add_test(c, timers_fire_in_the_order_of_their_times);
	tcase_add_test(c, a_later_time_replaces_an_earlier_one);
	tcase_add_test(c, an_earlier_time_replaces_a_later_one);
	tcase_add_test(c, a_stopped_timer_does_not_fire_and_can_be_set_again);
	tcase_add_test(c, a_removed_timer_is_forgotten);
	tcase_add_loop_test(c, it_behaves_as_an_array_that_is_searched, 0, 8);
	suite_add_tcase(s, c);
	return s;
}
