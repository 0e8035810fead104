/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_switch.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "fabric/wire/packet.h"
#include "tests/support/ck_main.h"
#include "tests/unit/link/eal.h"

#define MTU     4200
#define WORKERS 3
#define POOL    512u

static const uint8_t mac[3][6] = {
	{ 2, 0x55, 0x52, 0x4f, 0, 1 },
	{ 2, 0x55, 0x52, 0x4f, 0, 2 },
	{ 2, 0x55, 0x52, 0x4f, 0, 3 },
};

static struct link_switch *sw;
static struct link_port *port[3][WORKERS];
static unsigned woken[WORKERS];

static void note_wake(void *ctx, unsigned worker)
{
	ck_assert_ptr_eq(ctx, woken);
	__atomic_fetch_add(&woken[worker], 1, __ATOMIC_RELAXED); /* of threads of the test */
}

static void setup(void)
{
	struct link_switch_conf conf = { .n_workers = WORKERS,
					 .max_devices = 3,
					 .pool_size = POOL,
					 .depth = 64,
					 .wake = note_wake,
					 .wake_ctx = woken };

	sw = link_switch_create(&conf);
	ck_assert_ptr_nonnull(sw);
	ck_assert_int_eq(link_switch_add_device(sw, mac[0], MTU, port[0]), 0);
	ck_assert_int_eq(link_switch_add_device(sw, mac[1], MTU, port[1]), 0);
	memset(woken, 0, sizeof(woken));
}

static void teardown(void)
{
	link_switch_destroy(sw);
}

static struct net_path path_to(const uint8_t *src, const uint8_t *dst)
{
	struct net_path p = {
		.vlan = NET_NO_VLAN, .is_ipv4 = 1, .hop_limit = 64, .udp_sport = 0xc000
	};

	memcpy(p.smac, src, 6);
	memcpy(p.dmac, dst, 6);
	memcpy(p.sgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x12\0\1", 16);
	memcpy(p.dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x12\0\2", 16);
	return p;
}

/* A SEND from port p of len bytes to the QPN at dst, its PSN as the mark by which it is known. */
static struct frame *make(struct link_port *p, const uint8_t *dst, uint32_t qpn, uint32_t psn,
			  uint32_t len)
{
	struct packet pk = {
		.opcode = BTH_SEND_ONLY, .dest_qpn = qpn, .psn = psn, .payload_len = len
	};
	struct net_path path = path_to(p->mac, dst);
	struct net_template t;
	struct frame *f;

	ck_assert_uint_eq(p->ops->alloc(p, &f, 1), 1);
	for (uint32_t i = 0; i < len; i++)
		f->buf[i] = (uint8_t)(psn + i);
	f->n_segs = len ? 1 : 0;
	f->seg[0] = (struct frame_seg){ f->buf, len };
	net_template_build(&t, &path);
	packet_build(&pk, &t, f);
	return f;
}

static void send_one(struct link_port *p, struct frame *f)
{
	p->ops->tx(p, 0, &f, 1);
}

static uint32_t psn_of(const struct frame *f)
{
	struct packet pk;

	ck_assert_int_eq(packet_parse(&pk, f, true), PACKET_OK);
	return pk.psn;
}

static uint64_t drops(const struct link_port *p, enum link_drop why)
{
	struct link_counters c;

	link_switch_counters(p, &c);
	return c.drop[why];
}

static unsigned receive(struct link_port *p, uint32_t *psn, unsigned room)
{
	struct frame *f[64];
	unsigned n = p->ops->rx(p, 0, f, room < 64 ? room : 64);

	for (unsigned i = 0; i < n; i++)
		psn[i] = psn_of(f[i]);
	p->ops->free(p, f, n);
	return n;
}

/* Every buffer can be had again, if p's worker freed them: nobody kept one. */
static void assert_pool_is_whole(struct link_port *p)
{
	struct frame *f[POOL + 1];
	unsigned n = p->ops->alloc(p, f, POOL + 1);

	ck_assert_uint_eq(n, POOL);
	p->ops->free(p, f, n);
}

START_TEST(an_allocated_frame_is_empty_aligned_and_has_room)
{
	struct link_port *p = port[0][0];
	struct frame *f;

	for (int round = 0; round < 2; round++) {
		ck_assert_uint_eq(p->ops->alloc(p, &f, 1), 1);
		ck_assert_uint_eq((uintptr_t)f->buf % 64, 0);
		ck_assert_uint_eq(f->room, FRAME_PAYLOAD);
		ck_assert(f->is_open);
		ck_assert_uint_eq(f->n_segs + f->head_len + f->trailer_len, 0);
		memset(f->buf - FRAME_HEADROOM, 0xa5, FRAME_HEADROOM + FRAME_PAYLOAD);
		f->n_segs = 2;
		f->head_len = f->trailer_len = 8;
		p->ops->free(p, &f, 1);
	}
}
END_TEST

START_TEST(a_frame_goes_to_the_device_with_its_address_and_no_other)
{
	uint32_t psn[64];

	send_one(port[0][0], make(port[0][0], mac[1], 0, 7, 4096));
	ck_assert_uint_eq(receive(port[0][0], psn, 64), 0);
	ck_assert_uint_eq(receive(port[1][0], psn, 64), 1);
	ck_assert_uint_eq(psn[0], 7);
}
END_TEST

START_TEST(loopback_returns_to_the_own_device)
{
	uint32_t psn[64];

	send_one(port[1][0], make(port[1][0], mac[1], 0, 9, 1));
	ck_assert_uint_eq(receive(port[0][0], psn, 64), 0);
	ck_assert_uint_eq(receive(port[1][0], psn, 64), 1);
	ck_assert_uint_eq(psn[0], 9);
}
END_TEST

START_TEST(the_qpn_index_chooses_the_worker)
{
	uint32_t qpn = (uint32_t)_i | 0x5a0000u; /* a generation above the index does not count */
	uint32_t psn[64];

	send_one(port[0][1], make(port[0][1], mac[1], qpn, 1, 0));
	for (unsigned w = 0; w < WORKERS; w++)
		ck_assert_uint_eq(receive(port[1][w], psn, 64), w == (unsigned)_i % WORKERS);
}
END_TEST

START_TEST(other_workers_are_woken_once_a_burst_and_the_own_never)
{
	struct frame *f[12];
	struct link_port *p = port[0][1];

	for (unsigned i = 0; i < 12; i++)
		f[i] = make(p, mac[1], i, i, 8);
	p->ops->tx(p, 0, f, 12);
	ck_assert_uint_eq(woken[0], 1);
	ck_assert_uint_eq(woken[1], 0);
	ck_assert_uint_eq(woken[2], 1);
}
END_TEST

START_TEST(frames_between_two_ports_keep_their_order)
{
	struct link_port *p = port[0][0];
	struct frame *f[60];
	uint32_t psn[64];

	for (unsigned i = 0; i < 60; i++)
		f[i] = make(p, mac[i & 1], 0, i, 16);
	p->ops->tx(p, 0, f, 60);
	for (unsigned d = 0; d < 2; d++) {
		ck_assert_uint_eq(receive(port[d][0], psn, 64), 30);
		for (unsigned i = 0; i < 30; i++)
			ck_assert_uint_eq(psn[i], 2 * i + d);
	}
}
END_TEST

START_TEST(room_shrinks_with_the_fullest_queue_and_comes_back)
{
	struct link_port *p = port[0][0];
	uint32_t psn[64];

	ck_assert_uint_eq(p->ops->tx_room(p), 64);
	for (unsigned i = 0; i < 64; i++) {
		send_one(p, make(p, mac[1], 2, i, 0));
		ck_assert_uint_eq(p->ops->tx_room(p), 63 - i);
		ck_assert_uint_eq(port[1][1]->ops->tx_room(port[1][1]), 63 - i);
	}
	ck_assert_uint_eq(receive(port[1][2], psn, 10), 10);
	ck_assert_uint_eq(p->ops->tx_room(p), 10);
	ck_assert_uint_eq(drops(p, LINK_DROP_RING_FULL), 0);
}
END_TEST

START_TEST(the_whole_pool_fits_one_queue_so_nothing_is_lost_for_room)
{
	struct link_port *p = port[0][0];
	uint32_t psn[64];
	unsigned got = 0, n;

	for (unsigned i = 0; i < POOL; i++)
		send_one(p, make(p, mac[1], 0, i, 0));
	ck_assert_uint_eq(p->ops->tx_room(p), 0);
	while ((n = receive(port[1][0], psn, 64)))
		got += n;
	ck_assert_uint_eq(got, POOL);
	ck_assert_uint_eq(drops(p, LINK_DROP_RING_FULL), 0);
}
END_TEST

START_TEST(a_dry_pool_gives_what_it_has)
{
	struct link_port *p = port[0][0];
	struct frame *f[POOL], *one;
	unsigned n = p->ops->alloc(p, f, POOL);

	ck_assert_uint_eq(n, POOL);
	ck_assert_uint_eq(p->ops->alloc(p, &one, 1), 0);
	p->ops->free(p, f, n);
	assert_pool_is_whole(p);
}
END_TEST

START_TEST(an_unknown_address_is_dropped_by_name)
{
	struct link_port *p = port[0][0];

	send_one(p, make(p, mac[2], 0, 1, 64));
	ck_assert_uint_eq(drops(p, LINK_DROP_UNKNOWN_MAC), 1);
	assert_pool_is_whole(p);
}
END_TEST

START_TEST(a_frame_too_short_for_its_headers_is_a_runt)
{
	struct link_port *p = port[0][0];
	struct frame *f = make(p, mac[1], 0, 1, 0);

	f->head_len = (uint32_t)_i;
	send_one(p, f);
	ck_assert_uint_eq(drops(p, LINK_DROP_RUNT), 1);
	assert_pool_is_whole(p);
}
END_TEST

START_TEST(the_mtu_counts_the_ip_packet_without_ethernet)
{
	struct link_port *p = port[0][0], *small[WORKERS];
	uint32_t psn[64];
	uint32_t payload = 1000 - 20 - 8 - 12 - 4;

	ck_assert_int_eq(link_switch_add_device(sw, mac[2], 1000, small), 0);
	send_one(p, make(p, mac[2], 0, 1, payload));
	ck_assert_uint_eq(drops(p, LINK_DROP_TOO_LONG), 0);
	send_one(p, make(p, mac[2], 0, 2, payload + 4));
	ck_assert_uint_eq(drops(p, LINK_DROP_TOO_LONG), 1);
	ck_assert_uint_eq(receive(small[0], psn, 64), 1);
}
END_TEST

START_TEST(a_group_frame_is_copied_to_every_other_device)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct link_port *p = port[0][0], *third[WORKERS];
	uint32_t psn[64];

	ck_assert_int_eq(link_switch_add_device(sw, mac[2], MTU, third), 0);
	send_one(p, make(p, group, 0, 5, 100));
	ck_assert_uint_eq(receive(p, psn, 64), 0);
	ck_assert_uint_eq(receive(port[1][0], psn, 64), 1);
	ck_assert_uint_eq(psn[0], 5);
	ck_assert_uint_eq(receive(third[0], psn, 64), 1);
	ck_assert_uint_eq(psn[0], 5);
	assert_pool_is_whole(p);
}
END_TEST

START_TEST(a_datagram_to_a_group_reaches_all_workers_of_all_devices_and_the_senders_own)
{
	static const uint8_t group[6] = { 0x01, 0x00, 0x5e, 1, 1, 1 };
	struct link_port *p = port[0][1];
	uint32_t psn[64];

	send_one(p, make(p, group, 0xffffff, 7, 100));
	for (unsigned d = 0; d < 2; d++) {
		for (unsigned w = 0; w < WORKERS; w++) {
			ck_assert_uint_eq(receive(port[d][w], psn, 64), 1);
			ck_assert_uint_eq(psn[0], 7);
		}
	}
	ck_assert_uint_eq(woken[0], 1);
	ck_assert_uint_eq(woken[1], 0); /* it is the one that sends */
	ck_assert_uint_eq(woken[2], 1);
}
END_TEST

START_TEST(adding_is_refused_for_bad_taken_and_too_many_addresses)
{
	static const uint8_t zero[6], group[6] = { 1 };
	static const uint8_t fourth[6] = { 2, 9 };
	struct link_port *p[WORKERS];

	ck_assert_int_eq(link_switch_add_device(sw, zero, MTU, p), -EINVAL);
	ck_assert_int_eq(link_switch_add_device(sw, group, MTU, p), -EINVAL);
	ck_assert_int_eq(link_switch_add_device(sw, mac[2], 0, p), -EINVAL);
	ck_assert_int_eq(link_switch_add_device(sw, mac[1], MTU, p), -EEXIST);
	ck_assert_int_eq(link_switch_add_device(sw, mac[2], MTU, p), 0);
	ck_assert_int_eq(link_switch_add_device(sw, fourth, MTU, p), -ENOSPC);
	ck_assert_int_eq(link_switch_del_device(sw, fourth), -ENOENT);
}
END_TEST

START_TEST(a_deleted_device_gets_nothing_and_its_queue_is_freed)
{
	struct link_port *p = port[0][0], *again[WORKERS];
	uint32_t psn[64];

	send_one(p, make(p, mac[1], 0, 1, 64));
	ck_assert_int_eq(link_switch_del_device(sw, mac[1]), 0);
	assert_pool_is_whole(p);
	ck_assert_uint_eq(p->ops->tx_room(p), 64);
	send_one(p, make(p, mac[1], 0, 2, 64));
	ck_assert_uint_eq(drops(p, LINK_DROP_UNKNOWN_MAC), 1);
	ck_assert_int_eq(link_switch_add_device(sw, mac[2], MTU, again), 0);
	ck_assert_uint_eq(receive(again[0], psn, 64), 0);
	send_one(p, make(p, mac[2], 0, 3, 64));
	ck_assert_uint_eq(receive(again[0], psn, 64), 1);
	ck_assert_uint_eq(psn[0], 3);
}
END_TEST

START_TEST(counters_tell_packets_and_bytes_both_ways)
{
	struct link_port *p = port[0][0];
	struct link_counters tx, rx;
	uint32_t psn[64];

	send_one(p, make(p, mac[1], 0, 1, 100));
	send_one(p, make(p, mac[1], 0, 2, 1));
	receive(port[1][0], psn, 64);
	link_switch_counters(p, &tx);
	link_switch_counters(port[1][0], &rx);
	ck_assert_uint_eq(tx.tx_packets, 2);
	ck_assert_uint_eq(tx.tx_bytes, 2 * (14 + 20 + 8 + 12 + 4) + 100 + 4);
	ck_assert_uint_eq(rx.rx_packets, 2);
	ck_assert_uint_eq(rx.rx_bytes, tx.tx_bytes);
	ck_assert_uint_eq(tx.rx_packets + rx.tx_packets, 0);
}
END_TEST

START_TEST(every_drop_has_a_name)
{
	for (unsigned i = 0; i < LINK_N_DROPS; i++)
		ck_assert(link_drop_name[i] && *link_drop_name[i]);
}
END_TEST

/* Two workers send to a third at once; all that tx_room allowed arrives, in order for each. */
#define STORM 20000u

static void *storm(void *arg)
{
	struct link_port *p = arg;

	for (uint32_t i = 0; i < STORM;) {
		struct frame *f;

		if (!p->ops->tx_room(p) || !p->ops->alloc(p, &f, 1)) {
			sched_yield();
			continue;
		}
		p->ops->free(p, &f, 1);
		send_one(p, make(p, mac[1], 2, i++, 32));
	}
	return NULL;
}

START_TEST(workers_sending_to_one_port_at_once_lose_nothing)
{
	struct link_port *to = port[1][2];
	uint32_t next[2] = { 0, 0 };
	struct frame *f[32];
	pthread_t thread[2];

	pthread_create(&thread[0], NULL, storm, port[0][0]);
	pthread_create(&thread[1], NULL, storm, port[1][1]);
	while (next[0] < STORM || next[1] < STORM) {
		unsigned n = to->ops->rx(to, 0, f, 32);

		for (unsigned i = 0; i < n; i++) {
			unsigned who = f[i]->head[6 + 5] == mac[0][5] ? 0 : 1;

			ck_assert_uint_eq(psn_of(f[i]), next[who]++);
		}
		to->ops->free(to, f, n);
		if (!n)
			sched_yield();
	}
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	ck_assert_uint_eq(drops(port[0][0], LINK_DROP_RING_FULL), 0);
	ck_assert_uint_eq(drops(port[1][1], LINK_DROP_RING_FULL), 0);
}
END_TEST

START_TEST(a_switch_without_workers_or_devices_is_refused)
{
	struct link_switch_conf conf = { .n_workers = 0, .max_devices = 2 };

	ck_assert_ptr_null(link_switch_create(&conf));
	ck_assert_int_eq(errno, EINVAL);
	conf = (struct link_switch_conf){ .n_workers = 65, .max_devices = 2 };
	ck_assert_ptr_null(link_switch_create(&conf));
	conf = (struct link_switch_conf){ .n_workers = 1, .max_devices = 0 };
	ck_assert_ptr_null(link_switch_create(&conf));
}
END_TEST

static void add_forwarding(Suite *s)
{
	TCase *tc = tcase_create("forwarding");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_allocated_frame_is_empty_aligned_and_has_room);
	tcase_add_test(tc, a_frame_goes_to_the_device_with_its_address_and_no_other);
	tcase_add_test(tc, loopback_returns_to_the_own_device);
	tcase_add_loop_test(tc, the_qpn_index_chooses_the_worker, 0, 7);
	tcase_add_test(tc, frames_between_two_ports_keep_their_order);
	tcase_add_test(tc, other_workers_are_woken_once_a_burst_and_the_own_never);
	tcase_add_test(tc, a_group_frame_is_copied_to_every_other_device);
	tcase_add_test(
		tc, a_datagram_to_a_group_reaches_all_workers_of_all_devices_and_the_senders_own);
	tcase_add_test(tc, counters_tell_packets_and_bytes_both_ways);
	suite_add_tcase(s, tc);
}

static void add_limits(Suite *s)
{
	TCase *tc = tcase_create("limits");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, room_shrinks_with_the_fullest_queue_and_comes_back);
	tcase_add_test(tc, the_whole_pool_fits_one_queue_so_nothing_is_lost_for_room);
	tcase_add_test(tc, a_dry_pool_gives_what_it_has);
	tcase_add_test(tc, an_unknown_address_is_dropped_by_name);
	tcase_add_loop_test(tc, a_frame_too_short_for_its_headers_is_a_runt, 0, 54);
	tcase_add_test(tc, the_mtu_counts_the_ip_packet_without_ethernet);
	tcase_add_test(tc, workers_sending_to_one_port_at_once_lose_nothing);
	suite_add_tcase(s, tc);
}

Suite *suite_make(void)
{
	Suite *s = suite_create("link_switch");
	TCase *tc = tcase_create("devices");

	tcase_add_unchecked_fixture(tc, eal_up, NULL);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, adding_is_refused_for_bad_taken_and_too_many_addresses);
	tcase_add_test(tc, a_deleted_device_gets_nothing_and_its_queue_is_freed);
	tcase_add_test(tc, every_drop_has_a_name);
	suite_add_tcase(s, tc);
	add_forwarding(s);
	add_limits(s);
	tc = tcase_create("configuration");
	tcase_add_test(tc, a_switch_without_workers_or_devices_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
