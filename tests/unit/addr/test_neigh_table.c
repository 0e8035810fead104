/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/neigh_table.h"

#include <string.h>

#include "tests/support/ck_main.h"

static struct neigh_table t;
static const uint8_t mac_a[6] = { 2, 0xff, 0x80, 1, 0, 0xaa }, mac_b[6] = { 0xfe, 2, 3, 4, 5, 6 };

static void setup(void)
{
	memset(&t, 0, sizeof(t));
}

static const uint8_t *gid(uint32_t n)
{
	static uint8_t g[GID_LEN];
	const uint8_t ip[4] = { 10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n };

	gid_from_ipv4(g, ip);
	return g;
}

START_TEST(an_address_is_missing_then_pending_then_known_then_pending)
{
	uint8_t mac[6];
	unsigned s;
	bool is_new;

	ck_assert_int_eq(neigh_lookup(&t, gid(1), mac), NEIGH_MISSING);
	s = neigh_add(&t, gid(1), &is_new);
	ck_assert(is_new);
	ck_assert_int_eq(neigh_lookup(&t, gid(1), mac), NEIGH_PENDING);
	ck_assert(neigh_set(&t, s, mac_a));
	ck_assert_int_eq(neigh_lookup(&t, gid(1), mac), NEIGH_KNOWN);
	ck_assert_mem_eq(mac, mac_a, 6);
	ck_assert(neigh_set(&t, s, mac_b));
	ck_assert_int_eq(neigh_lookup(&t, gid(1), mac), NEIGH_KNOWN);
	ck_assert_mem_eq(mac, mac_b, 6);
	ck_assert(neigh_set(&t, s, NULL));
	ck_assert_int_eq(neigh_lookup(&t, gid(1), mac), NEIGH_PENDING);
	ck_assert_int_eq(neigh_lookup(&t, gid(2), mac), NEIGH_MISSING);
}
END_TEST

START_TEST(only_news_counts_as_a_change)
{
	unsigned s = neigh_add(&t, gid(1), NULL);
	uint32_t before = t.changes;

	ck_assert(neigh_set(&t, s, mac_a));
	ck_assert(!neigh_set(&t, s, mac_a));
	ck_assert_uint_eq(t.changes, before + 1);
	ck_assert(neigh_set(&t, s, NULL));
	ck_assert(!neigh_set(&t, s, NULL));
	ck_assert_uint_eq(t.changes, before + 2);
}
END_TEST

START_TEST(an_address_keeps_its_slot)
{
	bool is_new = true;
	unsigned s = neigh_add(&t, gid(7), NULL);

	ck_assert_int_eq(neigh_find(&t, gid(8)), -1);
	ck_assert_uint_eq(neigh_add(&t, gid(7), &is_new), s);
	ck_assert(!is_new);
	ck_assert_int_eq(neigh_find(&t, gid(7)), (int)s);
}
END_TEST

/* An enemy that asks for ever more addresses takes nobody's who is in use. */
START_TEST(what_is_used_stays_while_others_come_and_go)
{
	uint8_t mac[6];

	neigh_set(&t, neigh_add(&t, gid(0), NULL), mac_a);
	for (uint32_t n = 1; n < 100000; n++) {
		neigh_set(&t, neigh_add(&t, gid(n), NULL), mac_b);
		ck_assert_int_eq(neigh_lookup(&t, gid(0), mac), NEIGH_KNOWN);
		ck_assert_mem_eq(mac, mac_a, 6);
		neigh_take_used(&t, (unsigned)neigh_find(&t, gid(0)));
	}
	ck_assert_int_eq(neigh_lookup(&t, gid(99999), mac), NEIGH_KNOWN);
	ck_assert_mem_eq(mac, mac_b, 6);
}
END_TEST

START_TEST(a_slot_that_changed_hands_is_pending_again)
{
	uint8_t mac[6], got[GID_LEN];
	bool is_known;
	unsigned n_pending = 0;

	for (uint32_t n = 0; n < 5 * NEIGH_SLOTS; n++)
		neigh_set(&t, neigh_add(&t, gid(n), NULL), mac_a);
	for (uint32_t n = 0; n < NEIGH_SETS; n++)
		neigh_add(&t, gid(1000000 + n), NULL);
	for (uint32_t n = 0; n < NEIGH_SETS; n++)
		n_pending += neigh_lookup(&t, gid(1000000 + n), mac) == NEIGH_PENDING;
	ck_assert_uint_gt(n_pending, NEIGH_SETS / 2);
	for (unsigned i = 0; i < NEIGH_SLOTS; i++)
		ck_assert(neigh_get(&t, i, got, &is_known));
}
END_TEST

START_TEST(a_lookup_marks_as_used_once)
{
	uint8_t mac[6];
	unsigned s = neigh_add(&t, gid(1), NULL);

	ck_assert(!neigh_take_used(&t, s));
	neigh_lookup(&t, gid(1), mac);
	neigh_lookup(&t, gid(1), mac);
	ck_assert(neigh_take_used(&t, s));
	ck_assert(!neigh_take_used(&t, s));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("neigh_table");
	TCase *tc = tcase_create("table");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, an_address_is_missing_then_pending_then_known_then_pending);
	tcase_add_test(tc, only_news_counts_as_a_change);
	tcase_add_test(tc, an_address_keeps_its_slot);
	tcase_add_test(tc, what_is_used_stays_while_others_come_and_go);
	tcase_add_test(tc, a_slot_that_changed_hands_is_pending_again);
	tcase_add_test(tc, a_lookup_marks_as_used_once);
	suite_add_tcase(s, tc);
	return s;
}
