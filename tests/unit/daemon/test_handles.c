/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/handles.h"

#include <errno.h>
#include <stdbool.h>

#include "tests/support/ck_main.h"

static int thing[4];

START_TEST(a_handle_finds_its_object_until_it_is_given_back)
{
	struct handles h;
	uint32_t a, b;

	handles_init(&h, 10);
	ck_assert_int_eq(handles_add(&h, &thing[0], &a), 0);
	ck_assert_int_eq(handles_add(&h, &thing[1], &b), 0);
	ck_assert_uint_ne(a, 0);
	ck_assert_uint_ne(a, b);
	ck_assert_ptr_eq(handles_get(&h, a), &thing[0]);
	ck_assert_ptr_eq(handles_del(&h, a), &thing[0]);
	ck_assert_ptr_null(handles_get(&h, a));
	ck_assert_ptr_null(handles_del(&h, a));
	ck_assert_ptr_eq(handles_get(&h, b), &thing[1]);
	ck_assert_uint_eq(h.count, 1);
	handles_free(&h);
}
END_TEST

START_TEST(an_old_handle_does_not_find_the_next_object)
{
	struct handles h;
	uint32_t old, now = 0;

	handles_init(&h, 1);
	ck_assert_int_eq(handles_add(&h, &thing[0], &old), 0);
	handles_del(&h, old);
	for (unsigned i = 1; i < 4095; i++) {
		ck_assert_int_eq(handles_add(&h, &thing[1], &now), 0);
		ck_assert_ptr_null(handles_get(&h, old));
		ck_assert_ptr_eq(handles_del(&h, now), &thing[1]);
	}
	ck_assert_ptr_null(handles_get(&h, 0));
	handles_free(&h);
}
END_TEST

START_TEST(nonsense_handles_find_nothing)
{
	struct handles h;
	uint64_t seed = ck_seed();
	uint32_t a;

	handles_init(&h, 100);
	ck_assert_int_eq(handles_add(&h, &thing[0], &a), 0);
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t v = (uint32_t)ck_rand(&seed);

		if (v != a)
			ck_assert_ptr_null(handles_get(&h, v));
	}
	ck_assert_ptr_null(handles_get(&h, UINT32_MAX));
	handles_free(&h);
}
END_TEST

START_TEST(max_objects_is_the_limit)
{
	struct handles h;
	uint32_t v, last = 0;

	handles_init(&h, 50);
	for (unsigned i = 0; i < 50; i++)
		ck_assert_int_eq(handles_add(&h, &thing[0], &last), 0);
	ck_assert_int_eq(handles_add(&h, &thing[0], &v), -ENOSPC);
	handles_del(&h, last);
	ck_assert_int_eq(handles_add(&h, &thing[0], &v), 0);
	handles_free(&h);
}
END_TEST

START_TEST(walking_sees_each_object_once)
{
	struct handles h;
	uint32_t v[4], pos = 0;
	unsigned seen = 0;

	handles_init(&h, 10);
	for (unsigned i = 0; i < 4; i++)
		handles_add(&h, &thing[i], &v[i]);
	handles_del(&h, v[1]);
	for (int *t; (t = handles_next(&h, &pos));)
		seen |= 1u << (t - thing);
	ck_assert_uint_eq(seen, 13);
	handles_free(&h);
}
END_TEST

START_TEST(numbers_come_back_as_late_as_can_be)
{
	struct numbers p;
	uint32_t v;
	uint8_t gen;

	ck_assert_int_eq(numbers_init(&p, 2, 5), 0);
	ck_assert_int_eq(numbers_take(&p, &v, &gen), 0);
	ck_assert_uint_eq(v, 2);
	ck_assert_uint_eq(gen, 0);
	numbers_give(&p, 2);
	for (unsigned i = 3; i <= 6; i++) {
		ck_assert_int_eq(numbers_take(&p, &v, &gen), 0);
		ck_assert_uint_eq(v, i);
	}
	ck_assert_int_eq(numbers_take(&p, &v, &gen), 0);
	ck_assert_uint_eq(v, 2);
	ck_assert_uint_eq(gen, 1);
	ck_assert_int_eq(numbers_take(&p, &v, &gen), -ENOSPC);
	numbers_free(&p);
}
END_TEST

START_TEST(random_takes_and_gives_never_repeat_a_number)
{
	struct numbers p;
	bool used[64] = { 0 };
	uint64_t seed = ck_seed();
	uint32_t v;
	uint8_t gen;

	ck_assert_int_eq(numbers_init(&p, 0, 64), 0);
	for (unsigned i = 0; i < 100000; i++) {
		if (ck_below(&seed, 2)) {
			if (numbers_take(&p, &v, &gen)) {
				ck_assert_uint_eq(p.used, 64);
				continue;
			}
			ck_assert(!used[v]);
			used[v] = true;
		} else {
			v = ck_below(&seed, 64);
			if (used[v])
				numbers_give(&p, v);
			used[v] = false;
		}
	}
	numbers_free(&p);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("handles");
	TCase *tc = tcase_create("handles");

	tcase_add_test(tc, a_handle_finds_its_object_until_it_is_given_back);
	tcase_add_test(tc, an_old_handle_does_not_find_the_next_object);
	tcase_add_test(tc, nonsense_handles_find_nothing);
	tcase_add_test(tc, max_objects_is_the_limit);
	tcase_add_test(tc, walking_sees_each_object_once);
	tcase_add_test(tc, numbers_come_back_as_late_as_can_be);
	tcase_add_test(tc, random_takes_and_gives_never_repeat_a_number);
	suite_add_tcase(s, tc);
	return s;
}
