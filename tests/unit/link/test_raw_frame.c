/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/raw_frame.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/addr/gid.h"
#include "fabric/link/gso_head.h"
#include "fabric/wire/packet.h"
#include "tests/support/ck_main.h"

#define N 10u

/* A frame with memory of its own, as a pool gives it. */
struct own {
	_Alignas(64) uint8_t bytes[FRAME_HEADROOM + FRAME_PAYLOAD];
	struct frame f;
};

static struct own out[N], in;
static uint8_t wire[65600];

static struct frame *empty(struct own *o)
{
	o->f = (struct frame) { .buf = o->bytes + FRAME_HEADROOM, .room = FRAME_PAYLOAD };
	return &o->f;
}

static struct net_path path(bool v6, uint16_t vlan)
{
	struct net_path p = { .vlan = vlan,
			      .is_ipv4 = !v6,
			      .hop_limit = 3,
			      .udp_sport = 0xc001,
			      .dmac = { 2, 9 },
			      .smac = { 2, 8 },
			      .tclass = 0x2a };

	gid_parse(v6 ? "fd00::1" : "192.0.2.1", p.sgid);
	gid_parse(v6 ? "fd00::2" : "192.0.2.2", p.dgid);
	return p;
}

static void make(unsigned i, const struct net_path *p, uint32_t len)
{
	struct packet pk = { .opcode = BTH_WRITE_MIDDLE, .dest_qpn = 5, .psn = i };
	struct frame *f = empty(&out[i]);
	struct net_template t;

	pk.payload_len = len;
	memset(f->buf, (int)i + 1, len);
	f->n_segs = 1;
	f->seg[0] = (struct frame_seg) { f->buf, len };
	net_template_build(&t, p);
	packet_build(&pk, &t, f);
}

static uint32_t append(uint32_t at, const struct frame *f, uint32_t from)
{
	memcpy(wire + at, f->head + from, f->head_len - from);
	at += f->head_len - from;
	memcpy(wire + at, f->seg[0].base, f->seg[0].len);
	at += f->seg[0].len;
	memcpy(wire + at, f->trailer, f->trailer_len);
	return at + f->trailer_len;
}

/* The super-frame of n packets of this length, the last shorter. */
static uint32_t make_super(bool v6, uint16_t vlan, unsigned n, uint32_t len, uint32_t *packet_len)
{
	struct net_path p = path(v6, vlan);
	struct frame *f[N];
	struct gso_outer o;
	struct gso_icrc icrc = { 0 };
	struct gso_head h;
	uint32_t at;

	for (unsigned i = 0; i < n; i++) {
		make(i, &p, i + 1 == n ? len - 4 : len);
		f[i] = &out[i].f;
	}
	ck_assert(gso_outer(f[0], &o));
	ck_assert_uint_eq(gso_run(f, n, &o), n);
	gso_change_icrc(&icrc, f, n, &o);
	gso_head_make(&h, f, n, &o);
	memcpy(wire, h.bytes, o.payload_off);
	at = o.payload_off;
	*packet_len = frame_len(f[0]) - at;
	for (unsigned i = 0; i < n; i++)
		at = append(at, f[i], o.payload_off);
	return at;
}

START_TEST(a_super_frame_is_cut_into_the_packets_it_was_made_of)
{
	bool v6 = _i & 1;
	uint16_t vlan = _i & 2 ? 0x0123 : NET_NO_VLAN;
	uint32_t packet_len, len = make_super(v6, vlan, N, 1024, &packet_len);
	struct raw_frame r;
	struct packet pk;

	ck_assert(raw_frame_read(&r, wire, len, packet_len));
	ck_assert_uint_eq(raw_frame_count(&r), N);
	for (unsigned i = 0; i < N; i++) {
		ck_assert(raw_frame_cut(&r, i, empty(&in)));
		ck_assert_int_eq(packet_parse(&pk, &in.f, true), PACKET_OK);
		ck_assert_uint_eq(pk.psn, i);
		ck_assert_uint_eq(pk.payload_len, i + 1 == N ? 1020 : 1024);
		ck_assert_uint_eq(pk.seg[0].base[0], i + 1);
		ck_assert_uint_eq(pk.net.tclass, 0x2a);
		ck_assert_uint_eq(pk.net.vlan, vlan);
		ck_assert_uint_eq(pk.ip_id, v6 ? 0 : i);
	}
}
END_TEST

/* One that somebody coalesced out of packets that all had identification 0. */
START_TEST(equal_identifications_are_told_by_the_icrc)
{
	struct net_path p = path(false, NET_NO_VLAN);
	struct raw_frame r;
	struct packet pk;
	uint32_t at = 0, off = 42, packet_len = 0;

	for (unsigned i = 0; i < 3; i++) {
		make(i, &p, 512);
		packet_len = frame_len(&out[i].f) - off;
		at = append(at, &out[i].f, i ? off : 0);
	}
	wire[16] = (uint8_t)((at - 14) >> 8);
	wire[17] = (uint8_t)(at - 14);
	ck_assert(raw_frame_read(&r, wire, at, packet_len));
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(raw_frame_cut(&r, i, empty(&in)));
		ck_assert_int_eq(packet_parse(&pk, &in.f, true), PACKET_OK);
		ck_assert_uint_eq(pk.ip_id, 0);
	}
}
END_TEST

START_TEST(a_frame_by_itself_keeps_its_headers_and_loses_its_padding)
{
	struct net_path p = path(_i & 1, NET_NO_VLAN);
	struct raw_frame r;
	struct packet pk;
	uint32_t len;

	make(0, &p, 8);
	len = append(0, &out[0].f, 0);
	memset(wire + len, 0xee, 20);
	ck_assert(raw_frame_read(&r, wire, len + 20, 0));
	ck_assert_uint_eq(raw_frame_count(&r), 1);
	ck_assert(raw_frame_cut(&r, 0, empty(&in)));
	ck_assert_uint_eq(frame_len(&in.f), len);
	ck_assert_mem_eq(in.f.head, wire, out[0].f.head_len);
	ck_assert_int_eq(packet_parse(&pk, &in.f, true), PACKET_OK);
	/* A wrong checksum of IP is there for the parser to see. */
	if (p.is_ipv4) {
		wire[24] ^= 1;
		ck_assert(raw_frame_read(&r, wire, len, 0));
		ck_assert(raw_frame_cut(&r, 0, empty(&in)));
		ck_assert_int_eq(packet_parse(&pk, &in.f, true), PACKET_BAD_IP);
	}
}
END_TEST

START_TEST(what_is_no_udp_is_handed_on_as_it_is)
{
	static const uint8_t ihl6 = 0x46;
	struct net_path p = path(false, NET_NO_VLAN);
	struct raw_frame r;
	struct packet pk;
	uint32_t len;

	make(0, &p, 64);
	len = append(0, &out[0].f, 0);
	wire[14] = ihl6; /* options */
	ck_assert(raw_frame_read(&r, wire, len, 0));
	ck_assert(raw_frame_cut(&r, 0, empty(&in)));
	ck_assert_mem_eq(in.f.head, wire, len);
	ck_assert_int_ne(packet_parse(&pk, &in.f, true), PACKET_OK);
	ck_assert(!raw_frame_read(&r, wire, len, 100));
}
END_TEST

/* Every length of every kind, and headers of random bytes: nothing outside the bytes is read. */
START_TEST(nothing_that_arrives_can_harm)
{
	uint32_t packet_len,
		len = make_super(_i & 1, _i & 2 ? 7 : NET_NO_VLAN, 3, 1024, &packet_len);
	unsigned seed = (unsigned)_i;
	struct packet pk;

	for (uint32_t cut = 0; cut <= 4000; cut++) {
		uint32_t n = cut < len ? cut : len;
		uint8_t *exact = malloc(n ? n : 1);
		struct raw_frame r;

		memcpy(exact, wire, n);
		for (unsigned k = 0; cut & 1 && k < 3 && n > 60; k++)
			exact[12 + rand_r(&seed) % 48] = (uint8_t)rand_r(&seed);
		if (raw_frame_read(&r, exact, n, cut % 3 ? packet_len : (uint32_t)cut % 2)) {
			unsigned count = raw_frame_count(&r);

			for (unsigned i = 0; i < count && i < 80; i++)
				if (raw_frame_cut(&r, i, empty(&in)))
					packet_parse(&pk, &in.f, true);
		}
		free(exact);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("raw_frame");
	TCase *tc = tcase_create("raw");

	tcase_add_loop_test(tc, a_super_frame_is_cut_into_the_packets_it_was_made_of, 0, 4);
	tcase_add_test(tc, equal_identifications_are_told_by_the_icrc);
	tcase_add_loop_test(tc, a_frame_by_itself_keeps_its_headers_and_loses_its_padding, 0, 2);
	tcase_add_test(tc, what_is_no_udp_is_handed_on_as_it_is);
	tcase_add_loop_test(tc, nothing_that_arrives_can_harm, 0, 4);
	suite_add_tcase(s, tc);
	return s;
}
