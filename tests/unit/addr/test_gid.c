/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/gid.h"

#include <errno.h>
#include <string.h>

#include "tests/support/ck_main.h"

static const uint8_t mac[6] = { 0x02, 0x55, 0x52, 0x4f, 0x00, 0x01 };

START_TEST(a_link_local_gid_holds_the_eui64_of_the_mac)
{
	uint8_t gid[GID_LEN], back[6];

	gid_from_mac(gid, mac);
	ck_assert_mem_eq(gid, "\xfe\x80\0\0\0\0\0\0\x00\x55\x52\xff\xfe\x4f\x00\x01", 16);
	ck_assert(gid_mac(gid, back));
	ck_assert_mem_eq(back, mac, 6);
}
END_TEST

START_TEST(only_an_eui64_link_local_gid_has_a_mac)
{
	static const char *const without[] = { "::", "fe80::1", "fec0::55:52ff:fe4f:1",
					       "fe80:0:0:1:55:52ff:fe4f:1", "::ffff:1.2.3.4" };
	uint8_t gid[GID_LEN], out[6];

	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(gid_parse(without[i], gid), 0);
		ck_assert_msg(!gid_mac(gid, out), "%s", without[i]);
	}
}
END_TEST

static const struct {
	const char *text;
	bool is_zero, is_ipv4, is_multicast;
} kinds[] = {
	{ "::", true, false, false },
	{ "::1", false, false, false },
	{ "fe80::1", false, false, false },
	{ "ff02::1", false, false, true },
	{ "198.18.0.1", false, true, false },
	{ "223.255.255.255", false, true, false },
	{ "224.0.0.1", false, true, true },
	{ "239.255.255.255", false, true, true },
	{ "240.0.0.0", false, true, false },
	{ "0.0.0.0", false, true, false },
	{ "::fffe:1.2.3.4", false, false, false },
	{ "1::ffff:1.2.3.4", false, false, false },
};

START_TEST(kinds_are_told_apart)
{
	uint8_t gid[GID_LEN];

	ck_assert_int_eq(gid_parse(kinds[_i].text, gid), 0);
	ck_assert_int_eq(gid_is_zero(gid), kinds[_i].is_zero);
	ck_assert_int_eq(gid_is_ipv4(gid), kinds[_i].is_ipv4);
	ck_assert_int_eq(gid_is_multicast(gid), kinds[_i].is_multicast);
}
END_TEST

static void make(uint8_t gid[GID_LEN], uint8_t last)
{
	memset(gid, 0, GID_LEN);
	gid[0] = 0xfd;
	gid[15] = last;
}

START_TEST(entries_keep_their_index_when_others_go)
{
	struct gid_table t;
	uint8_t gid[GID_LEN];

	gid_table_init(&t, mac);
	ck_assert_mem_eq(t.mac, mac, 6);
	for (uint8_t i = 0; i < GID_TABLE_LEN; i++) {
		make(gid, i);
		ck_assert_int_eq(gid_table_add(&t, gid), i);
	}
	make(gid, 99);
	ck_assert_int_eq(gid_table_add(&t, gid), -ENOSPC);
	ck_assert_int_eq(gid_table_del(&t, 3), 0);
	ck_assert_ptr_null(gid_table_get(&t, 3));
	make(gid, 7);
	ck_assert_int_eq(gid_table_find(&t, gid), 7);
	ck_assert_mem_eq(gid_table_get(&t, 7), gid, GID_LEN);
	make(gid, 3);
	ck_assert_int_eq(gid_table_find(&t, gid), -ENOENT);
	make(gid, 99);
	ck_assert_int_eq(gid_table_add(&t, gid), 3);
}
END_TEST

START_TEST(what_is_no_address_of_a_port_is_refused)
{
	struct gid_table t;
	uint8_t gid[GID_LEN];

	gid_table_init(&t, mac);
	memset(gid, 0, GID_LEN);
	ck_assert_int_eq(gid_table_add(&t, gid), -EINVAL);
	ck_assert_int_eq(gid_table_find(&t, gid), -ENOENT); /* empty entries are not found */
	ck_assert_int_eq(gid_parse("ff02::1", gid), 0);
	ck_assert_int_eq(gid_table_add(&t, gid), -EINVAL);
	ck_assert_int_eq(gid_parse("224.0.0.1", gid), 0);
	ck_assert_int_eq(gid_table_add(&t, gid), -EINVAL);
	make(gid, 1);
	ck_assert_int_eq(gid_table_add(&t, gid), 0);
	ck_assert_int_eq(gid_table_add(&t, gid), -EEXIST);
	ck_assert_int_eq(gid_table_del(&t, 1), -ENOENT);
	ck_assert_int_eq(gid_table_del(&t, GID_TABLE_LEN), -ENOENT);
	ck_assert_int_eq(gid_table_del(&t, UINT32_MAX), -ENOENT);
	ck_assert_ptr_null(gid_table_get(&t, GID_TABLE_LEN));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("gid");
	TCase *tc = tcase_create("gid");

	tcase_add_test(tc, a_link_local_gid_holds_the_eui64_of_the_mac);
	tcase_add_test(tc, only_an_eui64_link_local_gid_has_a_mac);
	tcase_add_loop_test(tc, kinds_are_told_apart, 0, sizeof(kinds) / sizeof(kinds[0]));
	tcase_add_test(tc, entries_keep_their_index_when_others_go);
	tcase_add_test(tc, what_is_no_address_of_a_port_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
