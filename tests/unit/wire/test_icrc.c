/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/icrc.h"

#include "fabric/wire/hdr.h"
#include "fabric/wire/rocev2.h"
#include "tests/unit/wire/sample.h"

/* CRC-32 of IEEE 802.3, bit by bit: the definition, to hold the fast one against. */
static uint32_t crc_bits(uint32_t crc, const uint8_t *p, uint32_t n)
{
	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}

/* The definition of annex A17, over a flat packet from its IP header on. */
static uint32_t icrc_by_definition(const uint8_t *ip, uint32_t n)
{
	static const uint8_t ones[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint8_t copy[8192];
	uint32_t udp;

	memcpy(copy, ip, n);
	if (ip[0] >> 4 == 4) {
		copy[1] = copy[8] = copy[10] = copy[11] = 0xff;
		udp = 20;
	} else {
		copy[0] |= 0x0f;
		copy[1] = copy[2] = copy[3] = copy[7] = 0xff;
		udp = 40;
	}
	copy[udp + 6] = copy[udp + 7] = copy[udp + 8 + 4] = 0xff;
	return ~crc_bits(crc_bits(0xffffffff, ones, 8), copy, n);
}

static const uint32_t lengths[] = {
	0, 1, 2, 3, 4, 5, 63, 64, 65, 255, 256, 1023, 1024, 4095, 4096
};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

START_TEST(both_forms_give_what_the_definition_gives)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	enum sample_net net = (enum sample_net)(_i % SAMPLE_N_NETS);
	uint8_t bytes[8192];

	for (unsigned l = 0; l < N_LENGTHS; l++) {
		for (unsigned segs = 1; segs <= FRAME_SEGS; segs++) {
			struct packet pk = sample_packet(BTH_WRITE_ONLY_IMM, lengths[l], &seed);
			struct frame_room room;
			struct frame f = sample_build(&pk, net, &room, segs, &seed), flat;
			uint32_t n = frame_bytes(&f, bytes);
			uint32_t l3 = net >= SAMPLE_V4_VLAN ? 18 : 14, covered = n - l3 - ICRC_LEN;
			uint32_t want = icrc_by_definition(bytes + l3, covered);

			flat = frame_flat(bytes, n);
			ck_assert_uint_eq(icrc_frame(&f, l3, covered), want);
			ck_assert_uint_eq(icrc_frame(&flat, l3, covered), want);
			ck_assert_mem_eq(bytes + n - 4, &want, 4); /* little endian on the wire */
		}
	}
}
END_TEST

/* offset from the IP header; what a router may write must not show, all else must. */
static bool is_masked(enum sample_net net, uint32_t off)
{
	bool v4 = net == SAMPLE_V4 || net == SAMPLE_V4_VLAN;
	uint32_t udp = v4 ? 20 : 40;

	if (off == udp + 6 || off == udp + 7 || off == udp + 12)
		return true;
	if (v4)
		return off == 1 || off == 8 || off == 10 || off == 11;
	return off == 1 || off == 2 || off == 3 || off == 7;
}

START_TEST(exactly_the_variant_fields_are_masked)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_WRITE_ONLY, 33, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, (enum sample_net)_i, &room, 2, &seed), flat;
	uint32_t l3 = _i >= SAMPLE_V4_VLAN ? 18 : 14;
	uint8_t bytes[1024];
	uint32_t n = frame_bytes(&f, bytes), covered = n - l3 - ICRC_LEN;
	uint32_t want = icrc_frame(&f, l3, covered);

	flat = frame_flat(bytes, n);
	for (uint32_t off = 0; off < covered; off++) {
		uint8_t flip = off ? 0x08 : 0x10; /* of the first byte, IPv6 masks the lower half */

		bytes[l3 + off] ^= flip;
		ck_assert_msg((icrc_frame(&flat, l3, covered) == want) ==
				      is_masked((enum sample_net)_i, off),
			      "offset %u", off);
		bytes[l3 + off] ^= flip;
	}
}
END_TEST

START_TEST(no_length_reads_past_the_frame)
{
	for (uint32_t n = 0; n < 120; n++) {
		uint8_t *bytes = malloc(n + 1);
		struct frame f = frame_flat(bytes + 1, n); /* the end is the allocation's */

		memset(bytes, _i ? 0x60 : 0x45, n + 1);
		icrc_frame(&f, 0, n);
		icrc_frame(&f, 0, n + 1000);
		icrc_frame(&f, n + 7, 100);
		free(bytes);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("icrc");
	TCase *tc = tcase_create("icrc");

	tcase_add_loop_test(tc, both_forms_give_what_the_definition_gives, 0, 2 * SAMPLE_N_NETS);
	tcase_add_loop_test(tc, exactly_the_variant_fields_are_masked, 0, SAMPLE_N_NETS);
	tcase_add_loop_test(tc, no_length_reads_past_the_frame, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
