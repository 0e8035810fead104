/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/ah.h"

#include <errno.h>
#include <string.h>

#include "tests/support/ck_main.h"

static const uint8_t own_mac[6] = { 2, 0x55, 0x52, 0x4f, 0, 1 };
static const uint8_t peer_mac[6] = { 2, 0x55, 0x52, 0x4f, 0, 2 };
static struct gid_table gids;
static unsigned asked;

/* Knows 198.18.0.2 and fd00::2. */
static bool lookup(void *ctx, const uint8_t dgid[GID_LEN], uint8_t dmac[6])
{
	uint8_t v4[GID_LEN], v6[GID_LEN];

	ck_assert_ptr_eq(ctx, &asked);
	asked++;
	gid_parse("198.18.0.2", v4);
	gid_parse("fd00::2", v6);
	if (memcmp(dgid, v4, GID_LEN) != 0 && memcmp(dgid, v6, GID_LEN) != 0)
		return false;
	memcpy(dmac, peer_mac, 6);
	return true;
}

static void setup(void)
{
	uint8_t gid[GID_LEN];

	gid_table_init(&gids, own_mac);
	gid_from_mac(gid, own_mac);
	ck_assert_int_eq(gid_table_add(&gids, gid), 0);
	gid_parse("198.18.0.1", gid);
	ck_assert_int_eq(gid_table_add(&gids, gid), 1);
	asked = 0;
}

static const struct {
	const char *dgid;
	uint32_t sgid_index;
	int rc;
	uint8_t dmac[6];
	bool is_ipv4;
} cases[] = {
	{ "198.18.0.2", 1, 0, { 2, 0x55, 0x52, 0x4f, 0, 2 }, true },
	{ "198.18.0.3", 1, -EHOSTUNREACH, { 0 }, true },
	{ "198.18.0.2", 0, -EINVAL, { 0 }, false },        /* families differ */
	{ "fd00::2", 1, -EINVAL, { 0 }, false },
	{ "fd00::2", 0, 0, { 2, 0x55, 0x52, 0x4f, 0, 2 }, false },
	{ "fd00::3", 0, -EHOSTUNREACH, { 0 }, false },
	{ "fd00::2", 2, -EINVAL, { 0 }, false },           /* empty source entry */
	{ "fd00::2", 16, -EINVAL, { 0 }, false },
	{ "::", 0, -EINVAL, { 0 }, false },
	{ "fe80::55:52ff:fe4f:9", 0, 0, { 2, 0x55, 0x52, 0x4f, 0, 9 }, false },
	{ "fe80::9", 0, -EHOSTUNREACH, { 0 }, false },
	{ "239.129.2.3", 1, 0, { 1, 0, 0x5e, 1, 2, 3 }, true },
	{ "ff0e::1:2233", 0, 0, { 0x33, 0x33, 0, 1, 0x22, 0x33 }, false },
};

START_TEST(each_destination_gets_its_mac_or_its_error)
{
	struct ah_attr attr = { .sgid_index = cases[_i].sgid_index,
				.tclass = 0x68,
				.hop_limit = 17,
				.flow_label = 0xfff12345 };
	struct net_path path;

	ck_assert_int_eq(gid_parse(cases[_i].dgid, attr.dgid), 0);
	ck_assert_int_eq(ah_resolve(&path, &attr, &gids, lookup, &asked), cases[_i].rc);
	if (cases[_i].rc != 0)
		return;
	ck_assert_mem_eq(path.dmac, cases[_i].dmac, 6);
	ck_assert_mem_eq(path.smac, own_mac, 6);
	ck_assert_mem_eq(path.dgid, attr.dgid, GID_LEN);
	ck_assert_mem_eq(path.sgid, gids.gid[attr.sgid_index], GID_LEN);
	ck_assert_uint_eq(path.is_ipv4, cases[_i].is_ipv4);
	ck_assert_uint_eq(path.vlan, NET_NO_VLAN);
	ck_assert_uint_eq(path.tclass, 0x68);
	ck_assert_uint_eq(path.hop_limit, 17);
	ck_assert_uint_eq(path.flow_label, cases[_i].is_ipv4 ? 0 : 0x12345);
	ck_assert_uint_eq(path.udp_sport, 0);
}
END_TEST

START_TEST(hop_limits_that_programs_leave_out_become_64)
{
	struct ah_attr attr = { .sgid_index = 1, .hop_limit = (uint8_t)_i };
	struct net_path path;

	gid_parse("198.18.0.2", attr.dgid);
	ck_assert_int_eq(ah_resolve(&path, &attr, &gids, lookup, &asked), 0);
	ck_assert_uint_eq(path.hop_limit, _i < 2 ? 64 : _i);
}
END_TEST

START_TEST(a_group_asks_no_neighbour)
{
	struct ah_attr attr = { .sgid_index = 1 };
	struct net_path path;

	gid_parse("224.0.0.1", attr.dgid);
	ck_assert_int_eq(ah_resolve(&path, &attr, &gids, lookup, &asked), 0);
	ck_assert_uint_eq(asked, 0);
}
END_TEST

START_TEST(without_a_lookup_only_link_local_is_reached)
{
	struct ah_attr attr = { .sgid_index = 0 };
	struct net_path path;

	gid_from_mac(attr.dgid, peer_mac);
	ck_assert_int_eq(ah_resolve(&path, &attr, &gids, NULL, NULL), 0);
	ck_assert_mem_eq(path.dmac, peer_mac, 6);
	gid_parse("fd00::2", attr.dgid);
	ck_assert_int_eq(ah_resolve(&path, &attr, &gids, NULL, NULL), -EHOSTUNREACH);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("ah");
	TCase *tc = tcase_create("resolve");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, each_destination_gets_its_mac_or_its_error, 0,
			    sizeof(cases) / sizeof(cases[0]));
	tcase_add_loop_test(tc, hop_limits_that_programs_leave_out_become_64, 0, 4);
	tcase_add_test(tc, a_group_asks_no_neighbour);
	tcase_add_test(tc, without_a_lookup_only_link_local_is_reached);
	suite_add_tcase(s, tc);
	return s;
}
