/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/hold.h"

#include "tests/support/ck_main.h"

static struct hold h;
static struct frame frames[HOLD_MAX + 1];

START_TEST(frames_come_out_by_time_and_then_by_entry)
{
	uint64_t seed = ck_seed(), last_due = 0, due[HOLD_MAX];
	struct frame *f, *last = NULL;

	for (unsigned i = 0; i < HOLD_MAX; i++) {
		due[i] = ck_below(&seed, 40);
		ck_assert(hold_push(&h, due[i], &frames[i]));
	}
	for (unsigned n = 0; n < HOLD_MAX; n++) {
		uint64_t next = hold_due(&h);

		f = hold_pop(&h, 100);
		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(due[f - frames], next);
		ck_assert_uint_ge(next, last_due);
		if (last && next == last_due)
			ck_assert(f > last);
		last = f;
		last_due = next;
	}
	ck_assert_ptr_null(hold_pop(&h, UINT64_MAX));
}
END_TEST

START_TEST(nothing_comes_out_before_its_time)
{
	ck_assert_uint_eq(hold_due(&h), UINT64_MAX);
	ck_assert(hold_push(&h, 10, &frames[0]));
	ck_assert_ptr_null(hold_pop(&h, 9));
	ck_assert_uint_eq(hold_due(&h), 10);
	ck_assert_ptr_eq(hold_pop(&h, 10), &frames[0]);
	ck_assert_uint_eq(hold_due(&h), UINT64_MAX);
}
END_TEST

START_TEST(a_full_queue_takes_no_more)
{
	for (unsigned i = 0; i < HOLD_MAX; i++)
		ck_assert(hold_push(&h, i, &frames[i]));
	ck_assert(!hold_push(&h, 0, &frames[HOLD_MAX]));
	ck_assert_ptr_eq(hold_pop(&h, 0), &frames[0]);
	ck_assert(hold_push(&h, 0, &frames[HOLD_MAX]));
}
END_TEST

/* Pushes and pops mixed, against a plain search. */
START_TEST(it_agrees_with_a_list)
{
	uint64_t seed = ck_seed(), due[HOLD_MAX];
	bool in[HOLD_MAX] = { 0 };
	unsigned next = 0;

	while (next < HOLD_MAX) {
		uint64_t now = ck_below(&seed, 50);
		unsigned best = HOLD_MAX;

		if (ck_below(&seed, 3)) {
			due[next] = ck_below(&seed, 50);
			in[next] = hold_push(&h, due[next], &frames[next]);
			next++;
			continue;
		}
		for (unsigned i = 0; i < next; i++) {
			if (in[i] && due[i] <= now && (best == HOLD_MAX || due[i] < due[best]))
				best = i;
		}
		if (best == HOLD_MAX) {
			ck_assert_ptr_null(hold_pop(&h, now));
		} else {
			ck_assert_ptr_eq(hold_pop(&h, now), &frames[best]);
			in[best] = false;
		}
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("hold");
	TCase *tc = tcase_create("hold");

	tcase_add_test(tc, frames_come_out_by_time_and_then_by_entry);
	tcase_add_test(tc, nothing_comes_out_before_its_time);
	tcase_add_test(tc, a_full_queue_takes_no_more);
	tcase_add_test(tc, it_agrees_with_a_list);
	suite_add_tcase(s, tc);
	return s;
}
