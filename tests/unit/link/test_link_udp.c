/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_udp.h"

#include <errno.h>

#include "tests/unit/link/udp_rig.h"

START_TEST(a_frame_arrives_as_it_was_sent)
{
	bool v6 = _i & 1;
	struct net_path path = path_between(v6, A, B);
	static const uint32_t lengths[] = { 0, 1, 3, 4, 1024, 4095, 4096 };
	struct frame *f;
	struct packet pk;

	NEED_NETNS();
	path.tclass = 0x6a; /* with ECN bits */
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		f = make_on(port[A][0], &path, BTH_SEND_ONLY, 2, i, lengths[i]);
		port[A][0]->ops->tx(port[A][0], 0, &f, 1);
		receive(port[B][0], &f, 1);
		assert_is(f, i, lengths[i]);
		packet_parse(&pk, f, true);
		ck_assert_mem_eq(pk.net.sgid, path.sgid, 16);
		ck_assert_mem_eq(pk.net.dgid, path.dgid, 16);
		ck_assert_mem_eq(pk.net.dmac, mac[B], 6);
		ck_assert_uint_eq(pk.net.tclass, 0x6a);
		ck_assert_uint_eq(pk.net.hop_limit, 64);
		ck_assert_uint_eq((uintptr_t)(pk.n_segs ? pk.seg[0].base : f->buf) % 64, 0);
		port[B][0]->ops->free(port[B][0], &f, 1);
	}
}
END_TEST

/* The first longer (a RETH), the last shorter, as in a WRITE; and all alike; and falling lengths.
 */
static uint32_t length_in_burst(int shape, unsigned i, unsigned n)
{
	if (shape == 0)
		return i + 1 == n ? 77 : 1024;
	return shape == 1 ? 1024 : 3000 - i * 16;
}

START_TEST(a_burst_arrives_whole_and_in_order_with_right_icrcs)
{
	struct frame *f[48], *in[48];
	struct link_port *a = port[A][0], *b = port[B][0];
	bool v6 = _i & 1;
	int shape = _i >> 1;
	struct net_path path = path_between(v6, A, B);

	NEED_NETNS();
	for (unsigned i = 0; i < 48; i++)
		f[i] = make_on(a, &path, i ? BTH_WRITE_MIDDLE : BTH_WRITE_FIRST, 2, i,
			       length_in_burst(shape, i, 48));
	a->ops->tx(a, 0, f, 48);
	receive(b, in, 48);
	for (unsigned i = 0; i < 48; i++)
		assert_is(in[i], i, length_in_burst(shape, i, 48));
	b->ops->free(b, in, 48);
	ck_assert_uint_eq(a->ops->deadline(a), UINT64_MAX);
	assert_nothing_comes(b);
}
END_TEST

START_TEST(the_qpn_index_chooses_the_worker_whose_socket_gets_it)
{
	uint32_t qpn = (uint32_t)_i | 0x7f0000;
	struct frame *f = NULL;

	NEED_NETNS();
	f = make(false, qpn, 1, 8);
	port[A][0]->ops->tx(port[A][0], 0, &f, 1);
	wait_readable(port[B][_i % WORKERS]);
	assert_nothing_comes(port[B][(_i + 1) % WORKERS]);
	ck_assert_uint_eq(woken[0] + woken[1], 0);
	receive(port[B][_i % WORKERS], &f, 1);
	port[B][_i % WORKERS]->ops->free(port[B][_i % WORKERS], &f, 1);
}
END_TEST

/* One super-datagram for both workers: whoever reads it hands the others' part on, and wakes. */
START_TEST(a_coalesced_datagram_is_shared_out_between_the_workers)
{
	struct frame *f[32], *in[32];
	struct link_port *a = port[A][0];
	unsigned got = 0;

	NEED_NETNS();
	for (unsigned i = 0; i < 32; i++)
		f[i] = make(false, 2 + i % 2, i, 512);
	a->ops->tx(a, 0, f, 32);
	while (got < 16)
		got += port[B][0]->ops->rx(port[B][0], 0, in + got, 32 - got);
	ck_assert_uint_eq(got, 16);
	for (unsigned i = 0; i < 16; i++)
		assert_is(in[i], 2 * i, 512);
	ck_assert_uint_ge(woken[1], 1);
	ck_assert_uint_eq(woken[0], 0);
	port[B][0]->ops->free(port[B][0], in, 16);
	ck_assert_uint_eq(port[B][1]->ops->rx(port[B][1], 0, in, 32), 16);
	for (unsigned i = 0; i < 16; i++)
		assert_is(in[i], 2 * i + 1, 512);
	port[B][1]->ops->free(port[B][1], in, 16);
}
END_TEST

START_TEST(packets_over_the_path_mtu_are_dropped_and_the_others_go)
{
	struct frame *f[6], *in[4];
	struct link_port *a = port[A][0];
	unsigned n = 0;

	NEED_NETNS();
	netns_up("lo", 1500);
	for (unsigned i = 0; i < 6; i++)
		f[i] = make(_i & 1, 2, i, i == 2 || i == 3 ? 1460 : 1000);
	a->ops->tx(a, 0, f, 6);
	receive(port[B][0], in, 4);
	for (unsigned i = 0; i < 6; i++)
		if (i != 2 && i != 3)
			assert_is(in[n++], i, 1000);
	port[B][0]->ops->free(port[B][0], in, 4);
	ck_assert_uint_eq(drops(a, LINK_DROP_TOO_LONG), 2);
}
END_TEST

START_TEST(a_destination_without_route_is_dropped_by_name)
{
	struct net_path path = path_between(false, A, B);
	struct link_port *a = port[A][0];
	struct frame *f[3];

	NEED_NETNS();
	gid_parse("192.0.2.1", path.dgid);
	for (unsigned i = 0; i < 3; i++)
		f[i] = make_on(a, &path, BTH_SEND_ONLY, 2, i, 100);
	a->ops->tx(a, 0, f, 3);
	ck_assert_uint_eq(drops(a, LINK_DROP_NO_ROUTE), 3);
	ck_assert_uint_eq(a->ops->tx_room(a), 64);
}
END_TEST

START_TEST(a_source_that_is_not_ours_is_dropped_by_name)
{
	struct net_path path = path_between(false, B, A);
	struct link_port *a = port[A][0];
	struct frame *f;

	NEED_NETNS();
	f = make_on(a, &path, BTH_SEND_ONLY, 2, 1, 100);
	a->ops->tx(a, 0, &f, 1);
	ck_assert_uint_eq(drops(a, LINK_DROP_NO_ROUTE), 1);
}
END_TEST

START_TEST(another_source_port_in_the_header_does_not_harm_the_icrc)
{
	struct net_path path = path_between(false, A, B);
	struct link_port *a = port[A][0];
	struct packet pk;
	struct frame *f;

	NEED_NETNS();
	path.udp_sport = 0xc123;
	f = make_on(a, &path, BTH_SEND_ONLY, 2, 9, 100);
	a->ops->tx(a, 0, &f, 1);
	receive(port[B][0], &f, 1);
	assert_is(f, 9, 100);
	packet_parse(&pk, f, true);
	ck_assert_uint_eq(pk.net.udp_sport, ROCE_UDP_PORT);
	port[B][0]->ops->free(port[B][0], &f, 1);
}
END_TEST

START_TEST(a_dry_pool_loses_nothing_and_asks_to_be_called_again)
{
	struct frame *f[20], *hoard[POOL], *in[20];
	struct link_port *a = port[A][0], *b = port[B][0];
	unsigned n;

	NEED_NETNS();
	for (unsigned i = 0; i < 20; i++)
		f[i] = make(false, 2, i, 1000);
	a->ops->tx(a, 0, f, 20);
	wait_readable(b);
	n = b->ops->alloc(b, hoard, POOL);
	ck_assert_uint_eq(b->ops->rx(b, 0, in, 20), 0);
	ck_assert_uint_eq(b->ops->deadline(b), 0);
	b->ops->free(b, hoard, n);
	receive(b, in, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_is(in[i], i, 1000);
	b->ops->free(b, in, 20);
	ck_assert_uint_eq(b->ops->deadline(b), UINT64_MAX);
}
END_TEST

START_TEST(an_address_that_is_taken_or_not_ours_is_refused)
{
	struct link_udp_addr addr = parse(address[0][A]);
	struct link_udp_conf conf = { .n_workers = 1,
				      .pool = pool,
				      .pool_size = POOL,
				      .mtu = 4200,
				      .addr = &addr,
				      .n_addrs = 1 };
	struct link_port *p[1];
	struct link_udp *l;

	NEED_NETNS();
	ck_assert_int_eq(link_udp_create(&l, &conf, p), -EADDRINUSE);
	addr = parse("192.0.2.1");
	ck_assert_int_eq(link_udp_create(&l, &conf, p), -EADDRNOTAVAIL);
	conf.n_addrs = 0;
	ck_assert_int_eq(link_udp_create(&l, &conf, p), -EINVAL);
}
END_TEST

START_TEST(both_ends_count_packets_and_bytes)
{
	struct link_counters tx, rx;
	struct frame *f[4];

	NEED_NETNS();
	for (unsigned i = 0; i < 4; i++)
		f[i] = make(false, 2, i, 100);
	port[A][0]->ops->tx(port[A][0], 0, f, 4);
	receive(port[B][0], f, 4);
	port[B][0]->ops->free(port[B][0], f, 4);
	port[A][0]->ops->counters(port[A][0], &tx);
	port[B][0]->ops->counters(port[B][0], &rx);
	ck_assert_uint_eq(tx.tx_packets, 4);
	ck_assert_uint_eq(tx.tx_bytes, 4 * (14 + 20 + 8 + 12 + 100 + 4));
	ck_assert_uint_eq(rx.rx_packets, 4);
	ck_assert_uint_eq(rx.rx_bytes, tx.tx_bytes);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("link_udp");
	TCase *tc = tcase_create("udp");

	tcase_add_unchecked_fixture(tc, netns_once, NULL);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_frame_arrives_as_it_was_sent, 0, 2);
	tcase_add_loop_test(tc, a_burst_arrives_whole_and_in_order_with_right_icrcs, 0, 6);
	tcase_add_loop_test(tc, the_qpn_index_chooses_the_worker_whose_socket_gets_it, 2, 6);
	tcase_add_test(tc, a_coalesced_datagram_is_shared_out_between_the_workers);
	tcase_add_loop_test(tc, packets_over_the_path_mtu_are_dropped_and_the_others_go, 0, 2);
	tcase_add_test(tc, a_destination_without_route_is_dropped_by_name);
	tcase_add_test(tc, a_source_that_is_not_ours_is_dropped_by_name);
	tcase_add_test(tc, another_source_port_in_the_header_does_not_harm_the_icrc);
	tcase_add_test(tc, a_dry_pool_loses_nothing_and_asks_to_be_called_again);
	tcase_add_test(tc, an_address_that_is_taken_or_not_ours_is_refused);
	tcase_add_test(tc, both_ends_count_packets_and_bytes);
	suite_add_tcase(s, tc);
	return s;
}
