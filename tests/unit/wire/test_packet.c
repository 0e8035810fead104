/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/packet.h"

#include <stdlib.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/icrc.h"
#include "fabric/wire/rocev2.h"
#include "tests/unit/wire/sample.h"

#define L3  14u
#define UDP (L3 + 20u)
#define BTH (UDP + 8u)

/* A flat SEND over IPv4, 61 bytes of payload and so 3 of pad. */
static uint8_t good[256];
static uint32_t good_len;

static void setup(void)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_SEND_ONLY, 61, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, SAMPLE_V4, &room, 1, &seed);

	good_len = frame_bytes(&f, good);
}

/* The damaged packet with its checksum and ICRC set right, so that only the damage is judged. */
static void mend(uint32_t icrc_at)
{
	struct frame f = frame_flat(good, icrc_at + 4);
	struct ipv4_hdr *ip = (struct ipv4_hdr *)(good + L3);
	uint32_t icrc;

	ip->checksum = be16_make(0);
	ip->checksum = be16_make(ipv4_checksum(ip));
	icrc = icrc_frame(&f, L3, icrc_at - L3);
	memcpy(good + icrc_at, &icrc, 4);
}

static const struct {
	const char *what;
	uint32_t off;
	uint8_t value;
	enum packet_verdict verdict;
} edits[] = {
	{ "nothing", L3, 0x45, PACKET_OK },
	{ "EtherType ARP", 13, 0x06, PACKET_NOT_ROCE },
	{ "protocol TCP", L3 + 9, 6, PACKET_NOT_ROCE },
	{ "UDP port 4790", UDP + 3, 0xb6, PACKET_NOT_ROCE },
	{ "IP version 5", L3, 0x55, PACKET_BAD_IP },
	{ "IP options", L3, 0x46, PACKET_BAD_IP },
	{ "IP header of 16 bytes", L3, 0x44, PACKET_BAD_IP },
	{ "more fragments", L3 + 6, 0x20, PACKET_BAD_IP },
	{ "fragment offset", L3 + 7, 0x01, PACKET_BAD_IP },
	{ "fragmenting allowed", L3 + 6, 0x00, PACKET_OK },
	{ "IP longer than the frame", L3 + 2, 0x01, PACKET_BAD_IP },
	{ "IP shorter than its header", L3 + 3, 27, PACKET_BAD_IP },
	{ "UDP shorter than IP says", UDP + 5, 0x20, PACKET_BAD_UDP_LEN },
	{ "UDP longer than IP says", UDP + 4, 0x01, PACKET_BAD_UDP_LEN },
	{ "TVer 1", BTH + 1, 0x31, PACKET_BAD_BTH_VERSION },
	{ "RD service", BTH, 0x44, PACKET_UNKNOWN_OPCODE },
	{ "operation 0x15", BTH, 0x15, PACKET_UNKNOWN_OPCODE },
	{ "ACK with payload", BTH, 0x11, PACKET_BAD_PAD },
	{ "READ request with payload", BTH, 0x0c, PACKET_BAD_PAD },
	{ "UDP checksum", UDP + 7, 0xee, PACKET_OK },
	{ "resv8a", BTH + 4, 0x3f, PACKET_OK },
};

START_TEST(each_wrong_field_has_its_verdict)
{
	struct frame f = frame_flat(good, good_len);
	struct packet pk;
	enum packet_verdict v;

	good[edits[_i].off] = edits[_i].value;
	mend(good_len - 4);
	v = packet_parse(&pk, &f, true);
	ck_assert_msg(v == edits[_i].verdict, "%s: %s", edits[_i].what, packet_verdict_name[v]);
}
END_TEST

START_TEST(a_wrong_ip_checksum_is_bad_ip)
{
	struct frame f = frame_flat(good, good_len);
	struct packet pk;

	good[L3 + 10] ^= 1;
	ck_assert_int_eq(packet_parse(&pk, &f, false), PACKET_BAD_IP);
}
END_TEST

START_TEST(the_icrc_is_judged_only_on_request)
{
	struct frame f = frame_flat(good, good_len);
	struct packet pk;

	good[good_len - 1] ^= 1;
	ck_assert_int_eq(packet_parse(&pk, &f, true), PACKET_BAD_ICRC);
	ck_assert_int_eq(packet_parse(&pk, &f, false), PACKET_OK);
	ck_assert_uint_eq(pk.payload_len, 61);
}
END_TEST

START_TEST(flat_frames_may_be_padded_by_ethernet)
{
	struct frame f = frame_flat(good, good_len + 40);
	struct packet pk;

	memset(good + good_len, 0x5a, 40);
	ck_assert_int_eq(packet_parse(&pk, &f, true), PACKET_OK);
	ck_assert_uint_eq(pk.payload_len, 61);
}
END_TEST

static void set_lengths(uint32_t udp_payload)
{
	((struct ipv4_hdr *)(good + L3))->total_len = be16_make((uint16_t)(28 + udp_payload));
	((struct udp_hdr *)(good + UDP))->len = be16_make((uint16_t)(8 + udp_payload));
}

/* Each opcode, as long as _i bytes after the BTH. */
START_TEST(a_packet_must_hold_what_its_opcode_has)
{
	uint32_t after = (uint32_t)_i;

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct opcode_desc *d = opcode_get((uint8_t)opcode);
		uint32_t payload = after - d->ext_len - 4;
		struct frame f = frame_flat(good, BTH + 12 + after);
		struct packet pk;
		enum packet_verdict v, want = PACKET_OK;

		if (!d->name)
			continue;
		if (after < d->ext_len + 4u)
			want = PACKET_SHORT;
		else if (payload % 4 || (payload && !(d->flags & OPC_PAYLOAD)))
			want = PACKET_BAD_PAD;
		set_lengths(12 + after);
		good[BTH] = (uint8_t)opcode;
		good[BTH + 1] = 0;
		mend(after >= 4 ? BTH + 12 + after - 4 : BTH + 12);
		v = packet_parse(&pk, &f, true);
		ck_assert_msg(v == want, "%s + %u: %s", d->name, after, packet_verdict_name[v]);
		if (v == PACKET_OK)
			ck_assert_uint_eq(pk.payload_len, payload);
	}
}
END_TEST

/* _i: pad count of the BTH. */
START_TEST(pad_is_no_longer_than_what_it_pads)
{
	struct packet pk;

	for (uint32_t room = 0; room <= 8; room += 4) {
		struct frame f = frame_flat(good, BTH + 12 + room + 4);
		bool fits = (uint32_t)_i <= room;

		set_lengths(12 + room + 4);
		good[BTH + 1] = (uint8_t)(_i << 4);
		mend(BTH + 12 + room);
		ck_assert_int_eq(packet_parse(&pk, &f, true), fits ? PACKET_OK : PACKET_BAD_PAD);
		if (fits)
			ck_assert_uint_eq(pk.payload_len, room - (uint32_t)_i);
	}
}
END_TEST

/*
 * The good frame cut into head, segment and trailer at any place: accepted only where the headers
 * end, and only with pad and ICRC in the trailer.
 */
START_TEST(a_split_frame_is_cut_where_its_headers_end)
{
	uint32_t cut = (uint32_t)_i;
	struct packet pk;

	for (uint32_t trailer = 0; trailer <= FRAME_TRAILER; trailer++) {
		struct frame f = {
			.head = good, .head_len = cut, .n_segs = 1, .trailer_len = trailer
		};
		bool ok = cut == BTH + 12 && trailer == 3 + 4;
		enum packet_verdict v;

		f.seg[0] = (struct frame_seg){ good + cut, good_len - cut - trailer };
		memcpy(f.trailer, good + good_len - trailer, trailer);
		v = packet_parse(&pk, &f, true);
		ck_assert_msg((v == PACKET_OK) == ok, "cut %u trailer %u: %s", cut, trailer,
			      packet_verdict_name[v]);
	}
}
END_TEST

START_TEST(a_split_frame_is_exactly_as_long_as_ip_says)
{
	struct frame f = { .head = good, .head_len = BTH + 12, .n_segs = 1, .trailer_len = 7 };
	struct packet pk;

	f.seg[0] = (struct frame_seg){ good + BTH + 12, 61 };
	memcpy(f.trailer, good + good_len - 7, 7);
	ck_assert_int_eq(packet_parse(&pk, &f, true), PACKET_OK);
	f.seg[0].len = 62;
	ck_assert_int_eq(packet_parse(&pk, &f, false), PACKET_BAD_IP);
	f.seg[0].len = 60;
	ck_assert_int_eq(packet_parse(&pk, &f, false), PACKET_BAD_IP);
}
END_TEST

START_TEST(impossible_segment_counts_are_refused)
{
	struct frame f = { .head = good, .head_len = good_len, .n_segs = FRAME_SEGS + 1 };
	struct packet pk;

	ck_assert_int_eq(packet_parse(&pk, &f, true), PACKET_SHORT);
	f.n_segs = 0;
	f.trailer_len = FRAME_TRAILER + 1;
	ck_assert_int_eq(packet_parse(&pk, &f, true), PACKET_SHORT);
}
END_TEST

static const struct {
	uint32_t off;
	uint8_t value;
	enum packet_verdict verdict;
} v6_edits[] = {
	{ 14, 0x66, PACKET_OK },
	{ 14, 0x76, PACKET_BAD_IP },
	{ 14 + 6, 0, PACKET_NOT_ROCE },           /* hop-by-hop options */
	{ 14 + 5, 200, PACKET_BAD_IP },           /* longer than the frame */
	{ 14 + 4, 0xff, PACKET_BAD_IP },
	{ 14 + 5, 40, PACKET_BAD_UDP_LEN },
	{ 14 + 5, 7, PACKET_BAD_IP },             /* no room for UDP */
	{ 14 + 1, 0x11, PACKET_OK },              /* traffic class, flow label: masked */
	{ 14 + 7, 1, PACKET_OK },                 /* hop limit */
};

START_TEST(ipv6_fields_have_their_verdicts)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_SEND_ONLY, 64, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, SAMPLE_V6, &room, 1, &seed);
	uint8_t bytes[256];
	struct frame flat = frame_flat(bytes, frame_bytes(&f, bytes));

	bytes[v6_edits[_i].off] = v6_edits[_i].value;
	ck_assert_int_eq(packet_parse(&pk, &flat, true), v6_edits[_i].verdict);
}
END_TEST

START_TEST(every_verdict_has_a_name_of_its_own)
{
	for (unsigned i = 0; i < PACKET_N_VERDICTS; i++) {
		ck_assert(packet_verdict_name[i] && *packet_verdict_name[i]);
		for (unsigned k = 0; k < i; k++)
			ck_assert_str_ne(packet_verdict_name[i], packet_verdict_name[k]);
	}
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

Suite *suite_make(void)
{
	Suite *s = suite_create("packet");
	TCase *tc = tcase_create("parse");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, each_wrong_field_has_its_verdict, 0, N(edits));
	tcase_add_test(tc, a_wrong_ip_checksum_is_bad_ip);
	tcase_add_test(tc, the_icrc_is_judged_only_on_request);
	tcase_add_test(tc, flat_frames_may_be_padded_by_ethernet);
	tcase_add_loop_test(tc, a_packet_must_hold_what_its_opcode_has, 0, 52);
	tcase_add_loop_test(tc, pad_is_no_longer_than_what_it_pads, 0, 4);
	tcase_add_loop_test(tc, a_split_frame_is_cut_where_its_headers_end, 0, 100);
	tcase_add_test(tc, a_split_frame_is_exactly_as_long_as_ip_says);
	tcase_add_test(tc, impossible_segment_counts_are_refused);
	tcase_add_loop_test(tc, ipv6_fields_have_their_verdicts, 0, N(v6_edits));
	tcase_add_test(tc, every_verdict_has_a_name_of_its_own);
	suite_add_tcase(s, tc);
	return s;
}
