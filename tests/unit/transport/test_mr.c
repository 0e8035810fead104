/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/mr.h"

#include <errno.h>
#include <string.h>

#include "tests/support/ck_main.h"

#define SLOTS 16u
#define KEY   0x305u
#define IOVA  0x100000ull
#define ADDR  0x7f0000001000ull
#define LEN   4096u
#define ALL   0xfu

static struct mr slots[SLOTS];
static struct mr_table table = { .slot = slots, .n = SLOTS };

static const struct cmd_mr_add good = {
	.key = KEY, .pd = 3, .access = ALL, .iova = IOVA, .length = LEN, .addr = ADDR, .region = 99
};

static void setup(void)
{
	memset(slots, 0, sizeof(slots));
	ck_assert_int_eq(mr_add(&table, &good), 0);
}

static const struct {
	const char *what;
	uint32_t key, pd, access;
	uint64_t va, len;
	enum mr_verdict v;
} accesses[] = {
	{ "all of it", KEY, 3, ALL, IOVA, LEN, MR_OK },
	{ "the first byte", KEY, 3, 0, IOVA, 1, MR_OK },
	{ "the last byte", KEY, 3, 0, IOVA + LEN - 1, 1, MR_OK },
	{ "one byte past the end", KEY, 3, 0, IOVA + LEN, 1, MR_BOUNDS },
	{ "one byte too long", KEY, 3, 0, IOVA, LEN + 1, MR_BOUNDS },
	{ "over the end", KEY, 3, 0, IOVA + LEN - 1, 2, MR_BOUNDS },
	{ "before the start", KEY, 3, 0, IOVA - 1, 1, MR_BOUNDS },
	{ "over the start", KEY, 3, 0, IOVA - 1, 10, MR_BOUNDS },
	{ "a length that wraps", KEY, 3, 0, IOVA + 1, UINT64_MAX, MR_BOUNDS },
	{ "an address that wraps", KEY, 3, 0, UINT64_MAX, 2, MR_BOUNDS },
	{ "address 0", KEY, 3, 0, 0, 1, MR_BOUNDS },
	{ "another PD", KEY, 4, 0, IOVA, 1, MR_WRONG_PD },
	{ "an older generation", KEY - 1, 3, 0, IOVA, 1, MR_NO_KEY },
	{ "a later generation", KEY + 1, 3, 0, IOVA, 1, MR_NO_KEY },
	{ "an empty slot", 0x405, 3, 0, IOVA, 1, MR_NO_KEY },
	{ "a slot past the table", SLOTS << 8 | 5, 3, 0, IOVA, 1, MR_NO_KEY },
	{ "the largest key", UINT32_MAX, 3, 0, IOVA, 1, MR_NO_KEY },
	{ "key 0", 0, 3, 0, IOVA, 1, MR_NO_KEY },
};

START_TEST(an_access_is_judged)
{
	struct mem_vec out = { 0 };
	enum mr_verdict v = mr_access(&table, accesses[_i].key, accesses[_i].pd,
				      accesses[_i].access, accesses[_i].va, accesses[_i].len, &out);

	ck_assert_msg(v == accesses[_i].v, "%s: verdict %d", accesses[_i].what, v);
	if (v != MR_OK)
		return;
	ck_assert_uint_eq(out.addr, ADDR + (accesses[_i].va - IOVA));
	ck_assert_uint_eq(out.len, accesses[_i].len);
	ck_assert_uint_eq(out.region, 99);
}
END_TEST

/* Every set of rights against every wish. */
START_TEST(all_rights_that_are_wished_must_be_there)
{
	struct cmd_mr_add c = good;
	struct mem_vec out;

	c.key = 0x505;
	c.access = (uint32_t)_i;
	if (mr_add(&table, &c))
		return; /* rights that make no sense */
	for (uint32_t wish = 0; wish < 16; wish++) {
		enum mr_verdict v = mr_access(&table, 0x505, 3, wish, IOVA, 8, &out);

		ck_assert_int_eq(v, (c.access & wish) == wish ? MR_OK : MR_NO_ACCESS);
	}
}
END_TEST

START_TEST(remote_writers_need_local_write)
{
	struct cmd_mr_add c = good;

	c.key = 0x505;
	c.access = UROCE_ACCESS_REMOTE_WRITE;
	ck_assert_int_eq(mr_add(&table, &c), -EINVAL);
	c.access = UROCE_ACCESS_REMOTE_ATOMIC;
	ck_assert_int_eq(mr_add(&table, &c), -EINVAL);
	c.access = UROCE_ACCESS_REMOTE_READ;
	ck_assert_int_eq(mr_add(&table, &c), 0);
}
END_TEST

START_TEST(a_deleted_region_is_gone)
{
	struct mem_vec out;

	ck_assert_int_eq(mr_del(&table, KEY, false), 0);
	ck_assert_int_eq(mr_access(&table, KEY, 3, 0, IOVA, 1, &out), MR_NO_KEY);
	ck_assert_int_eq(mr_del(&table, KEY, false), -ENOENT);
	ck_assert_int_eq(mr_del(&table, UINT32_MAX, false), -ENOENT);
}
END_TEST

START_TEST(a_slot_in_use_is_not_given_twice)
{
	struct cmd_mr_add c = good;

	c.key = KEY + 1;
	ck_assert_int_eq(mr_add(&table, &c), -EEXIST);
	c.key = SLOTS << 8;
	ck_assert_int_lt(mr_add(&table, &c), 0);
}
END_TEST

START_TEST(a_range_that_wraps_is_refused)
{
	struct cmd_mr_add c = good;

	c.key = 0x505;
	c.iova = UINT64_MAX - 100;
	ck_assert_int_eq(mr_add(&table, &c), -EINVAL);
	c = good;
	c.key = 0x505;
	c.addr = UINT64_MAX - 100;
	ck_assert_int_eq(mr_add(&table, &c), -EINVAL);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/mr");
	TCase *c = tcase_create("mr");

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_loop_test(c, an_access_is_judged, 0,
			    (int)(sizeof(accesses) / sizeof(accesses[0])));
	tcase_add_loop_test(c, all_rights_that_are_wished_must_be_there, 0, 16);
	tcase_add_test(c, remote_writers_need_local_write);
	tcase_add_test(c, a_deleted_region_is_gone);
	tcase_add_test(c, a_slot_in_use_is_not_given_twice);
	tcase_add_test(c, a_range_that_wraps_is_refused);
	suite_add_tcase(s, c);
	return s;
}
