/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/device_net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/daemon/log.h"
#include "tests/support/ck_main.h"
#include "tests/support/netns.h"

static bool has_netns;

static void enter(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	if (!freopen("/dev/null", "w", stderr)) /* refusals are logged */
		abort();
	has_netns =
		netns_enter() &&
		!system("ip link add u0 mtu 4200 address 02:00:00:00:00:aa type veth peer u1 && "
			"ip link set u0 up && ip link set u1 up && "
			"ip addr add 192.0.2.1/24 dev u0 && ip addr add 192.0.2.2/24 dev u0 && "
			"ip -6 addr add fd91::1/64 dev u0 nodad && "
			"ip -6 addr flush dev u0 scope link && "
			"ip -6 addr add fe80::ff:fe00:aa/64 dev u0 nodad");
}

static int make(struct device_net *n, const char *text)
{
	struct config_device c;
	struct config_error e;

	ck_assert_int_eq(config_device_parse(&c, text, &e), 0);
	ck_assert_int_eq(config_device_check(&c, 0, &e), 0);
	return device_net_make(n, &c, 5);
}

static void assert_gid(const struct device_net *n, unsigned i, const char *text, bool in_kernel)
{
	uint8_t gid[GID_LEN];

	ck_assert_int_eq(gid_parse(text, gid), 0);
	ck_assert_ptr_nonnull(gid_table_get(&n->gids, i));
	ck_assert_mem_eq(gid_table_get(&n->gids, i), gid, GID_LEN);
	ck_assert_int_eq(n->kernel_gids >> i & 1, in_kernel);
}

START_TEST(a_device_on_the_switch_needs_no_kernel)
{
	struct device_net n;

	ck_assert_int_eq(make(&n, "link=switch"), 0);
	assert_gid(&n, 0, "fe80::55:52ff:fe4f:6", false);
	assert_gid(&n, 1, "198.18.0.6", false);
	ck_assert_ptr_null(gid_table_get(&n.gids, 2));
	ck_assert_uint_eq(n.path_mtu, 4096);
	ck_assert(n.is_up);
	ck_assert_str_eq(n.dev.name, "");
	ck_assert_int_eq(make(&n, "link=switch,mtu=1500"), 0);
	ck_assert_uint_eq(n.path_mtu, 1024);
}
END_TEST

START_TEST(a_device_on_an_interface_has_its_addresses_ipv4_first)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0xaa };
	struct device_net n;

	if (!has_netns)
		return;
	ck_assert_int_eq(make(&n, "link=udp,interface=u0"), 0);
	ck_assert_mem_eq(n.mac, mac, 6);
	assert_gid(&n, 0, "fe80::ff:fe00:aa", true);
	assert_gid(&n, 1, "192.0.2.1", true);
	assert_gid(&n, 2, "192.0.2.2", true);
	assert_gid(&n, 3, "fd91::1", true);
	ck_assert_ptr_null(gid_table_get(&n.gids, 4));
	ck_assert_str_eq(n.dev.name, "u0");
	ck_assert_uint_eq(n.ip_mtu, 4200);
	ck_assert_uint_eq(n.path_mtu, 4096);
	ck_assert(n.is_up);
}
END_TEST

START_TEST(a_device_on_one_address_has_that_one_and_a_mac_of_its_own)
{
	struct device_net a, b;

	if (!has_netns)
		return;
	ck_assert_int_eq(make(&a, "link=udp,addr=192.0.2.2"), 0);
	assert_gid(&a, 0, "fe80::55:c0ff:fe00:202", false);
	assert_gid(&a, 1, "192.0.2.2", true);
	ck_assert_ptr_null(gid_table_get(&a.gids, 2));
	ck_assert_str_eq(a.dev.name, "u0");
	ck_assert_int_eq(make(&b, "link=udp,addr=192.0.2.1"), 0);
	ck_assert_mem_ne(a.mac, b.mac, 6);
}
END_TEST

START_TEST(every_address_of_127_is_on_lo)
{
	struct device_net n;

	if (!has_netns)
		return;
	ck_assert_int_eq(make(&n, "link=udp,addr=127.9.8.7"), 0);
	ck_assert_str_eq(n.dev.name, "lo");
	ck_assert_uint_eq(n.path_mtu, 4096);
}
END_TEST

START_TEST(what_the_kernel_does_not_have_is_refused)
{
	struct device_net n;

	if (!has_netns)
		return;
	ck_assert_int_eq(make(&n, "link=udp,addr=192.0.2.9"), -EADDRNOTAVAIL);
	ck_assert_int_eq(make(&n, "link=udp,interface=u7"), -ENODEV);
	ck_assert(!system("ip link set u1 down")); /* takes the link-local address away */
	ck_assert_int_eq(make(&n, "link=udp,interface=u1"), -EADDRNOTAVAIL);
}
END_TEST

START_TEST(an_interface_that_is_down_makes_a_port_that_is_down)
{
	struct device_net n;

	if (!has_netns)
		return;
	ck_assert(!system("ip link set u1 down"));
	ck_assert_int_eq(make(&n, "link=udp,addr=192.0.2.1"), 0);
	ck_assert(!n.is_up);
}
END_TEST

static void give(struct netdev *n, unsigned index, const char *const *text)
{
	memset(n, 0, sizeof(*n));
	n->index = index;
	n->is_up = true;
	while (*text)
		ck_assert_int_eq(gid_parse(*text++, n->addr[n->n_addrs++]), 0);
}

START_TEST(gids_follow_the_addresses_and_keep_their_index)
{
	struct netdev now;
	struct device_net n;

	ck_assert_int_eq(make(&n, "link=switch"), 0); /* GID 1 is none of the kernel's */
	give(&now, 3,
	     (const char *const[]) { "192.0.2.1", "fd91::1", "fe80::55:52ff:fe4f:6", NULL });
	ck_assert(device_net_take(&n, &now));
	assert_gid(&n, 0, "fe80::55:52ff:fe4f:6", true);
	assert_gid(&n, 1, "198.18.0.6", false);
	assert_gid(&n, 2, "192.0.2.1", true);
	assert_gid(&n, 3, "fd91::1", true);
	ck_assert(!device_net_take(&n, &now));

	give(&now, 3, (const char *const[]) { "192.0.2.9", "fd91::1", NULL });
	now.is_up = false;
	ck_assert(device_net_take(&n, &now));
	ck_assert(!n.is_up);
	assert_gid(&n, 0, "fe80::55:52ff:fe4f:6", false);
	assert_gid(&n, 2, "192.0.2.9", true);
	assert_gid(&n, 3, "fd91::1", true);

	memset(&now, 0, sizeof(now)); /* the interface is gone */
	ck_assert(device_net_take(&n, &now));
	assert_gid(&n, 0, "fe80::55:52ff:fe4f:6", false);
	ck_assert_ptr_null(gid_table_get(&n.gids, 2));
	ck_assert_ptr_null(gid_table_get(&n.gids, 3));
	ck_assert_uint_eq(n.kernel_gids, 0);
}
END_TEST

START_TEST(the_mtu_follows_but_never_below_what_roce_needs)
{
	struct config_device c = { .mtu = 3000 };
	struct netdev now = { .mtu = 1500 };
	struct device_net n;

	ck_assert_int_eq(make(&n, "link=switch"), 0);
	ck_assert(device_net_take_mtu(&n, &c, &now));
	ck_assert_uint_eq(n.path_mtu, 1024);
	ck_assert(!device_net_take_mtu(&n, &c, &now));
	now.mtu = 9000;
	ck_assert(device_net_take_mtu(&n, &c, &now));
	ck_assert_uint_eq(n.ip_mtu, 3000);
	ck_assert_uint_eq(n.path_mtu, 2048);
	now.mtu = 100;
	ck_assert(!device_net_take_mtu(&n, &c, &now));
	ck_assert_uint_eq(n.path_mtu, 2048);
}
END_TEST

START_TEST(an_interface_made_anew_has_all_its_addresses_anew)
{
	struct netdev before, now;
	struct netdev_diff diff;

	give(&before, 3, (const char *const[]) { "192.0.2.1", "192.0.2.2", NULL });
	give(&now, 4, (const char *const[]) { "192.0.2.2", NULL });
	netdev_compare(&diff, &before, &now);
	ck_assert_uint_eq(diff.n_gone, 2);
	ck_assert_uint_eq(diff.n_new, 1);
	now.index = 3;
	netdev_compare(&diff, &before, &now);
	ck_assert_uint_eq(diff.n_gone, 1);
	ck_assert_mem_eq(diff.gone[0], before.addr[0], GID_LEN);
	ck_assert_uint_eq(diff.n_new, 0);
	netdev_drop_addr(&now, before.addr[1]);
	ck_assert_uint_eq(now.n_addrs, 0);
}
END_TEST

#define MEMIF "link=dpdk,addr=198.18.7.1,devargs=net_memif0,socket=/m"

START_TEST(a_packet_device_takes_the_mac_of_an_interface_made_anew)
{
	struct netdev now;
	struct device_net n;
	struct config_device c = { .link = LINK_PACKET, .interface = "u0" };

	if (!has_netns)
		return;
	ck_assert_int_eq(make(&n, "link=packet,interface=u0"), 0);
	assert_gid(&n, 0, "fe80::ff:fe00:aa", true);
	ck_assert_int_eq(device_net_look(&now, &c), 0);
	ck_assert(!device_net_take_mac(&n, &now));
	ck_assert_int_eq(system("ip link del u0 && "
				"ip link add u0 address 02:00:00:00:00:bb type veth peer u1 && "
				"ip link set u0 up && ip addr add 192.0.2.1/24 dev u0"),
			 0);
	ck_assert_int_eq(device_net_look(&now, &c), 0);
	ck_assert_uint_ne(now.index, n.dev.index);
	ck_assert(device_net_take_mac(&n, &now));
	ck_assert_mem_eq(n.mac, "\2\0\0\0\0\xbb", 6);
	assert_gid(&n, 0, "fe80::ff:fe00:bb", false);
	device_net_take(&n, &now);
	assert_gid(&n, 1, "192.0.2.1", true);
	/* On the switch the others know it by its MAC. */
	ck_assert_int_eq(make(&n, "uplink=packet,interface=u0"), 0);
	now.mac[5] = 0xcc;
	ck_assert(!device_net_take_mac(&n, &now));
	ck_assert_mem_eq(n.mac, "\2\0\0\0\0\xbb", 6);
}
END_TEST

START_TEST(memif_gets_a_buffer_for_a_whole_packet)
{
	struct device_net n;

	ck_assert_int_eq(make(&n, MEMIF), 0);
	ck_assert_str_eq(n.devargs, "net_memif0,socket=/m,bsize=4608");
	ck_assert_int_eq(make(&n, MEMIF ",bsize=9000,role=server,socket-abstract=no"), 0);
	ck_assert_str_eq(n.devargs,
			 "net_memif0,socket=/m,bsize=9000,role=server,socket-abstract=no");
}
END_TEST

START_TEST(what_a_memif_peer_could_do_harm_with_is_refused)
{
	struct device_net n;

	ck_assert_int_eq(make(&n, MEMIF ",zero-copy=yes"), -EOPNOTSUPP);
	ck_assert_int_eq(make(&n, MEMIF ",zero-copy=no"), 0);
	ck_assert_int_eq(make(&n, MEMIF ",role=server"), -EOPNOTSUPP);
	ck_assert_int_eq(make(&n, MEMIF ",role=server,socket-abstract=yes"), -EOPNOTSUPP);
	ck_assert_int_eq(make(&n, MEMIF ",role=client"), 0);
}
END_TEST

START_TEST(a_link_limits_the_mtu_for_good)
{
	struct config_device c = { .link = LINK_DPDK };
	struct netdev now = { .mtu = 9000 };
	struct device_net n;

	ck_assert_int_eq(make(&n, MEMIF), 0);
	ck_assert_uint_eq(n.path_mtu, 4096);
	ck_assert_int_eq(device_net_limit(&n, 4500), 0);
	ck_assert_uint_eq(n.path_mtu, 4096);
	ck_assert_int_eq(device_net_limit(&n, 3500), 0);
	ck_assert_uint_eq(n.ip_mtu, 3500);
	ck_assert_uint_eq(n.path_mtu, 2048);
	ck_assert(!device_net_take_mtu(&n, &c, &now));
	now.mtu = 1500;
	ck_assert(device_net_take_mtu(&n, &c, &now));
	ck_assert_uint_eq(n.path_mtu, 1024);
	now.mtu = 9000;
	ck_assert(device_net_take_mtu(&n, &c, &now));
	ck_assert_uint_eq(n.path_mtu, 2048);
	ck_assert_int_eq(device_net_limit(&n, 300), -EMSGSIZE);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("device_net");
	TCase *tc = tcase_create("device_net");

	tcase_add_checked_fixture(tc, enter, NULL); /* each case in a process, and a namespace */
	tcase_add_test(tc, a_device_on_the_switch_needs_no_kernel);
	tcase_add_test(tc, a_device_on_an_interface_has_its_addresses_ipv4_first);
	tcase_add_test(tc, a_device_on_one_address_has_that_one_and_a_mac_of_its_own);
	tcase_add_test(tc, every_address_of_127_is_on_lo);
	tcase_add_test(tc, what_the_kernel_does_not_have_is_refused);
	tcase_add_test(tc, an_interface_that_is_down_makes_a_port_that_is_down);
	tcase_add_test(tc, gids_follow_the_addresses_and_keep_their_index);
	tcase_add_test(tc, the_mtu_follows_but_never_below_what_roce_needs);
	tcase_add_test(tc, an_interface_made_anew_has_all_its_addresses_anew);
	tcase_add_test(tc, a_packet_device_takes_the_mac_of_an_interface_made_anew);
	tcase_add_test(tc, memif_gets_a_buffer_for_a_whole_packet);
	tcase_add_test(tc, what_a_memif_peer_could_do_harm_with_is_refused);
	tcase_add_test(tc, a_link_limits_the_mtu_for_good);
	suite_add_tcase(s, tc);
	return s;
}
