/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that an enemy or a bad cable made: never a crash, never accepted where the ICRC sees it. */
#include <stdlib.h>

#include "fabric/wire/packet.h"
#include "tests/support/pcap_read.h"
#include "tests/unit/wire/sample.h"

static const struct {
	const char *file;
	unsigned frame;
	bool is_ipv4;
} victims[] = {
	{ VECTORS_DIR "/rxe/01_rc_send_sizes.pcap", 1, true },  /* SEND of nothing */
	{ VECTORS_DIR "/rxe/01_rc_send_sizes.pcap", 3, true },  /* 1 byte, 3 of pad */
	{ VECTORS_DIR "/rxe/01_rc_send_sizes.pcap", 2, true },  /* ACK */
	{ VECTORS_DIR "/rxe/03_rc_write_mtu256.pcap", 1, true },
	{ VECTORS_DIR "/rxe/04_rc_read_mtu256.pcap", 1, true },
	{ VECTORS_DIR "/rxe/04_rc_read_mtu256.pcap", 2, true },
	{ VECTORS_DIR "/rxe/06_rc_atomic.pcap", 5, true },
	{ VECTORS_DIR "/rxe/06_rc_atomic.pcap", 6, true },
	{ VECTORS_DIR "/rxe/42_ud.pcap", 3, true },
	{ VECTORS_DIR "/rxe/43_rc_ipv6.pcap", 1, false },
	{ VECTORS_DIR "/rxe/43_rc_ipv6.pcap", 7, false },
};
#define N_VICTIMS ((int)(sizeof(victims) / sizeof(victims[0])))

static struct pcap_reader victim;

static void load(int i)
{
	ck_assert_int_eq(pcap_open(&victim, victims[i].file), 0);
	for (unsigned n = 0; n < victims[i].frame; n++)
		ck_assert_int_eq(pcap_next(&victim), 1);
	pcap_close(&victim);
}

/* In memory of exactly its size, so that the address sanitizer sees the first byte too far. */
static enum packet_verdict parse_exact(const uint8_t *bytes, uint32_t len)
{
	uint8_t *exact = malloc(len ? len : 1);
	struct frame f = frame_flat(exact, len);
	enum packet_verdict v;
	struct packet pk;

	memcpy(exact, bytes, len);
	v = packet_parse(&pk, &f, true);
	free(exact);
	return v;
}

START_TEST(no_truncation_is_accepted)
{
	load(_i);
	for (uint32_t len = 0; len < victim.len; len++)
		ck_assert_int_ne(parse_exact(victim.bytes, len), PACKET_OK);
	ck_assert_int_eq(parse_exact(victim.bytes, victim.len), PACKET_OK);
}
END_TEST

/* What the ICRC does not cover, and no other check either. */
static bool may_change(uint32_t off, bool is_ipv4)
{
	uint32_t udp = 14 + (is_ipv4 ? 20 : 40);

	if (off < 12)
		return true;   /* Ethernet addresses: the FCS guards them */
	if (off == udp + 6 || off == udp + 7 || off == udp + 12)
		return true;   /* UDP checksum, resv8a */
	return !is_ipv4 && (off == 15 || off == 16 || off == 17 || off == 21);
}

START_TEST(no_single_corrupt_byte_is_accepted_where_it_counts)
{
	load(_i);
	for (uint32_t off = 0; off < victim.len; off++) {
		bool free_byte = may_change(off, victims[_i].is_ipv4);

		for (unsigned flip = 1; flip < 256; flip++) {
			enum packet_verdict v;

			/* the low half of IPv6's first byte is masked, the version is not */
			if (!victims[_i].is_ipv4 && off == 14 && flip < 16)
				continue;
			victim.bytes[off] ^= (uint8_t)flip;
			v = parse_exact(victim.bytes, victim.len);
			victim.bytes[off] ^= (uint8_t)flip;
			ck_assert_msg((v == PACKET_OK) == free_byte, "byte %u ^ 0x%02x: %s", off,
				      flip, packet_verdict_name[v]);
		}
	}
}
END_TEST

/* Split frames cut anywhere, bytes anywhere: the parser may say what it likes, but reads only them.
 */
START_TEST(any_split_of_corrupt_bytes_is_read_within_its_bounds)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;

	load(_i);
	for (int round = 0; round < 20000; round++) {
		uint32_t head = ck_below(&seed, victim.len + 1);
		uint32_t seg = ck_below(&seed, victim.len - head + 1);
		uint8_t *h = malloc(head + 1u), *p = malloc(seg + 1u);
		struct frame f = { .head = h + 1, .head_len = head, .n_segs = 1 };
		uint32_t off = ck_below(&seed, victim.len);
		struct packet pk;

		memcpy(f.head, victim.bytes, head);
		memcpy(p + 1, victim.bytes + head, seg);
		f.seg[0] = (struct frame_seg){ p + 1, seg };
		f.trailer_len = ck_below(&seed, FRAME_TRAILER + 1);
		if (off < head)
			f.head[off] = (uint8_t)ck_rand(&seed);
		if (packet_parse(&pk, &f, round & 1) == PACKET_OK && pk.payload_len)
			ck_assert_ptr_eq(pk.seg[0].base, p + 1);
		free(h);
		free(p);
	}
}
END_TEST

START_TEST(noise_is_never_accepted)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	uint8_t bytes[160];

	for (int round = 0; round < 50000; round++) {
		uint32_t len = ck_below(&seed, sizeof(bytes) + 1);

		for (uint32_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)ck_rand(&seed);
		if (len > 14) { /* past the first gate, or nothing is tested */
			memcpy(bytes + 12, _i ? "\x86\xdd\x60" : "\x08\x00\x45", 3);
			bytes[len > 24 ? (_i ? 20 : 23) : 14] = 17;
		}
		ck_assert_int_ne(parse_exact(bytes, len), PACKET_OK);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("packet_hostile");
	TCase *tc = tcase_create("hostile");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, no_truncation_is_accepted, 0, N_VICTIMS);
	tcase_add_loop_test(tc, no_single_corrupt_byte_is_accepted_where_it_counts, 0, N_VICTIMS);
	tcase_add_loop_test(tc, any_split_of_corrupt_bytes_is_read_within_its_bounds, 0, N_VICTIMS);
	tcase_add_loop_test(tc, noise_is_never_accepted, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
