/* SPDX-License-Identifier: BSD-3-Clause */
/* A device of the switch whose uplink is a link in plain memory; its frames are the switch's. */
#include "fabric/link/link_switch.h"

#include <errno.h>
#include <string.h>

#include "fabric/wire/packet.h"
#include "tests/support/ck_main.h"
#include "tests/unit/link/eal.h"
#include "tests/unit/link/fake_link.h"

#define MTU    4200
#define POOL   256u
#define GROUPS 0xffffffu /* the QPN of a datagram to a group */

static const uint8_t mac[4][6] = {
	{ 2, 0x55, 0x52, 0x4f, 0, 1 }, /* with an uplink */
	{ 2, 0x55, 0x52, 0x4f, 0, 2 }, /* on the switch only */
	{ 2, 0x55, 0x52, 0x4f, 0, 9 }, /* of somebody out there */
	{ 1, 0, 0x5e, 1, 2, 3 },       /* of a group */
};

static struct link_switch *sw;
static struct link_port *left, *right;
static struct link_ops ops;

static void count_below(const struct link_port *p, struct link_counters *out)
{
	(void)p;
	*out = (struct link_counters) { .tx_packets = 1000, .rx_bytes = 7 };
	out->drop[LINK_DROP_OVERRUN] = 3;
}

static uint64_t in_an_hour(const struct link_port *p)
{
	(void)p;
	return 3600;
}

static void setup(void)
{
	struct link_switch_conf conf = {
		.n_workers = 1, .max_devices = 2, .pool_size = POOL, .depth = 64
	};
	struct link_port *uplink = &below.port;

	ops = fake_ops;
	ops.counters = count_below;
	ops.deadline = in_an_hour;
	memset(&below, 0, sizeof(below));
	below.port.ops = &ops;
	below.room = 64;
	sw = link_switch_create(&conf);
	ck_assert_ptr_nonnull(sw);
	ck_assert_int_eq(link_switch_add_device(sw, mac[0], MTU, &left), 0);
	ck_assert_int_eq(link_switch_add_device(sw, mac[1], MTU, &right), 0);
	link_switch_set_uplink(&left, &uplink, false);
}

static void free_below(void)
{
	left->ops->free(left, below.out.f, below.out.n);
	below.out.n = 0;
}

static void teardown(void)
{
	free_below();
	link_switch_destroy(sw);
}

/* A SEND of 5 bytes; its PSN is the mark by which it is known. */
static struct frame *make(const uint8_t *src, const uint8_t *dst, uint32_t qpn, uint32_t psn)
{
	struct packet pk = {
		.opcode = BTH_SEND_ONLY, .dest_qpn = qpn, .psn = psn, .payload_len = 5
	};
	struct net_path path = {
		.vlan = NET_NO_VLAN, .is_ipv4 = 1, .hop_limit = 64, .udp_sport = 0xc000
	};
	struct net_template t;
	struct frame *f;

	memcpy(path.smac, src, 6);
	memcpy(path.dmac, dst, 6);
	memcpy(path.sgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x12\0\1", 16);
	memcpy(path.dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x12\0\2", 16);
	ck_assert_uint_eq(left->ops->alloc(left, &f, 1), 1);
	memset(f->buf, 0x5a, 5);
	f->n_segs = 1;
	f->seg[0] = (struct frame_seg) { f->buf, 5 };
	net_template_build(&t, &path);
	packet_build(&pk, &t, f);
	return f;
}

static void send_from(struct link_port *p, const uint8_t *dst, uint32_t qpn, uint32_t psn)
{
	struct frame *f = make(p->mac, dst, qpn, psn);

	p->ops->tx(p, 0, &f, 1);
}

static void arrive(const uint8_t *src, const uint8_t *dst, uint32_t qpn, uint32_t psn)
{
	below.in.f[below.in.n++] = make(src, dst, qpn, psn);
}

/* The PSN of a frame whose ICRC must be right if it was sealed. */
static uint32_t psn_of(const struct frame *f)
{
	struct packet pk;

	ck_assert_int_eq(packet_parse(&pk, f, true), PACKET_OK);
	return pk.psn;
}

static unsigned receive(struct link_port *p, uint32_t *psn, unsigned room)
{
	struct frame *f[16];
	unsigned n = p->ops->rx(p, 0, f, room);

	for (unsigned i = 0; i < n; i++)
		psn[i] = psn_of(f[i]);
	p->ops->free(p, f, n);
	return n;
}

static uint64_t drops(const struct link_port *p, enum link_drop why)
{
	struct link_counters c;

	p->ops->counters(p, &c);
	return c.drop[why];
}

START_TEST(what_is_on_the_switch_stays_there)
{
	uint32_t psn[16];

	send_from(left, mac[1], 2, 11);
	send_from(left, mac[0], 2, 12);
	ck_assert_uint_eq(below.out.n, 0);
	ck_assert_uint_eq(receive(right, psn, 16), 1);
	ck_assert_uint_eq(psn[0], 11);
	ck_assert_uint_eq(receive(left, psn, 16), 1);
	ck_assert_uint_eq(psn[0], 12);
}
END_TEST

START_TEST(what_is_not_leaves_by_the_uplink_and_sealed)
{
	send_from(left, mac[2], 2, 21);
	ck_assert_uint_eq(below.out.n, 1);
	ck_assert(!below.out.f[0]->is_open);
	ck_assert_uint_eq(psn_of(below.out.f[0]), 21);
	ck_assert_uint_eq(drops(left, LINK_DROP_UNKNOWN_MAC), 0);
	/* Who has no uplink loses it, as before. */
	send_from(right, mac[2], 2, 22);
	ck_assert_uint_eq(below.out.n, 1);
	ck_assert_uint_eq(drops(right, LINK_DROP_UNKNOWN_MAC), 1);
}
END_TEST

START_TEST(a_groups_datagram_goes_both_ways)
{
	uint32_t psn[16];
	bool loops = _i;

	link_switch_set_uplink(&left, &(struct link_port *) { &below.port }, loops);
	send_from(left, mac[3], GROUPS, 31);
	ck_assert_uint_eq(below.out.n, 1);
	ck_assert(!below.out.f[0]->is_open);
	ck_assert_uint_eq(receive(right, psn, 16), 1);
	/* To the sender once: by us, or by an uplink that does it itself. */
	ck_assert_uint_eq(receive(left, psn, 16), loops ? 0 : 1);
}
END_TEST

START_TEST(what_comes_back_of_it_is_dropped)
{
	uint32_t psn[16];

	arrive(mac[1], mac[3], GROUPS, 41);
	arrive(mac[2], mac[3], GROUPS, 42);
	arrive(mac[2], mac[0], 2, 43);
	ck_assert_uint_eq(receive(left, psn, 16), 2);
	ck_assert_uint_eq(psn[0], 42);
	ck_assert_uint_eq(psn[1], 43);
	ck_assert_uint_eq(drops(left, LINK_DROP_REFLECTED), 1);
}
END_TEST

START_TEST(neither_side_starves_the_other)
{
	uint32_t psn[16], from_switch = 0, from_uplink = 0;

	for (uint32_t i = 0; i < 20; i++) {
		send_from(right, mac[0], 2, 100 + i);
		arrive(mac[2], mac[0], 2, 200 + i);
	}
	for (unsigned round = 0; round < 4; round++) {
		unsigned n = receive(left, psn, 4);

		ck_assert_uint_eq(n, 4);
		for (unsigned i = 0; i < n; i++)
			*(psn[i] < 200 ? &from_switch : &from_uplink) += 1;
	}
	ck_assert_uint_eq(from_switch, 8);
	ck_assert_uint_eq(from_uplink, 8);
	while (receive(left, psn, 16))
		;
}
END_TEST

START_TEST(the_port_has_the_uplinks_room_deadline_and_descriptor)
{
	below.room = 5;
	ck_assert_uint_eq(left->ops->tx_room(left), 5);
	ck_assert_uint_eq(right->ops->tx_room(right), 64);
	below.room = 1000;
	ck_assert_uint_eq(left->ops->tx_room(left), 64);
	ck_assert_uint_eq(left->ops->deadline(left), 3600);
	ck_assert_uint_eq(right->ops->deadline(right), UINT64_MAX);
	ck_assert_int_eq(left->ops->wait_fd(left), 42);
	ck_assert_int_eq(right->ops->wait_fd(right), -1);
}
END_TEST

START_TEST(what_left_is_counted_by_the_uplink_alone)
{
	struct link_counters c;

	send_from(left, mac[2], 2, 51);
	send_from(left, mac[1], 2, 52);
	left->ops->counters(left, &c);
	ck_assert_uint_eq(c.tx_packets, 1000 + 1);
	ck_assert_uint_eq(c.rx_bytes, 7);
	ck_assert_uint_eq(c.drop[LINK_DROP_OVERRUN], 3);
}
END_TEST

START_TEST(an_mtu_that_changes_counts_for_what_others_send)
{
	uint32_t psn[16];

	ck_assert_int_eq(link_switch_set_mtu(sw, mac[2], 50), -ENOENT);
	ck_assert_int_eq(link_switch_set_mtu(sw, mac[0], 40), 0);
	send_from(right, mac[0], 2, 61);
	ck_assert_uint_eq(receive(left, psn, 16), 0);
	ck_assert_uint_eq(drops(right, LINK_DROP_TOO_LONG), 1);
	ck_assert_int_eq(link_switch_set_mtu(sw, mac[0], 80), 0);
	send_from(right, mac[0], 2, 62);
	ck_assert_uint_eq(receive(left, psn, 16), 1);
}
END_TEST

START_TEST(a_device_that_follows_on_its_slot_has_no_uplink)
{
	ck_assert_int_eq(link_switch_del_device(sw, mac[0]), 0);
	ck_assert_int_eq(link_switch_add_device(sw, mac[0], MTU, &left), 0);
	send_from(left, mac[2], 2, 71);
	ck_assert_uint_eq(below.out.n, 0);
	ck_assert_uint_eq(drops(left, LINK_DROP_UNKNOWN_MAC), 1);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("switch_uplink");
	TCase *tc = tcase_create("uplink");

	tcase_add_unchecked_fixture(tc, eal_up, NULL);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_on_the_switch_stays_there);
	tcase_add_test(tc, what_is_not_leaves_by_the_uplink_and_sealed);
	tcase_add_loop_test(tc, a_groups_datagram_goes_both_ways, 0, 2);
	tcase_add_test(tc, what_comes_back_of_it_is_dropped);
	tcase_add_test(tc, neither_side_starves_the_other);
	tcase_add_test(tc, the_port_has_the_uplinks_room_deadline_and_descriptor);
	tcase_add_test(tc, what_left_is_counted_by_the_uplink_alone);
	tcase_add_test(tc, an_mtu_that_changes_counts_for_what_others_send);
	tcase_add_test(tc, a_device_that_follows_on_its_slot_has_no_uplink);
	suite_add_tcase(s, tc);
	return s;
}
