/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/icrc_id.h"

#include "fabric/wire/hdr.h"
#include "fabric/wire/icrc.h"
#include "fabric/wire/rocev2.h"
#include "tests/unit/wire/sample.h"

static const uint32_t lengths[] = { 0, 1, 4, 31, 256, 1024, 1500, 4095, 4096 };
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

#define L3 14u

/* A packet as one that a socket delivers: flat, its identification a guess (0). */
struct received {
	uint8_t bytes[8192];
	uint32_t n;
	struct frame f;
};

static struct received receive(enum sample_net net, uint32_t payload, uint64_t *seed)
{
	struct packet pk = sample_packet(BTH_WRITE_ONLY, payload, seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, net, &room, 1, seed);
	struct received r;

	r.n = frame_bytes(&f, r.bytes);
	return r;
}

static struct ipv4_hdr *ip_of(struct received *r)
{
	return (struct ipv4_hdr *)(r->bytes + L3);
}

static void set_id(struct received *r, uint16_t id)
{
	struct ipv4_hdr *ip = ip_of(r);

	ip->id = be16_make(id);
	ip->checksum = be16_make(0);
	ip->checksum = be16_make(ipv4_checksum(ip));
}

static uint32_t icrc_of(struct received *r)
{
	struct frame f = frame_flat(r->bytes, r->n);

	return icrc_frame(&f, L3, r->n - L3 - ICRC_LEN);
}

static void put_icrc(struct received *r, uint32_t icrc)
{
	for (unsigned i = 0; i < ICRC_LEN; i++)
		r->bytes[r->n - ICRC_LEN + i] = (uint8_t)(icrc >> (8 * i));
}

/* The ICRC is for that identification, but the header shows none, as behind a socket. */
static void sent_with_id(struct received *r, uint16_t id)
{
	set_id(r, id);
	put_icrc(r, icrc_of(r));
	set_id(r, 0);
}

static enum packet_verdict parse(struct received *r, bool is_guessed, struct packet *pk)
{
	r->f = frame_flat(r->bytes, r->n);
	r->f.is_ip_id_guessed = is_guessed;
	return packet_parse(pk, &r->f, true);
}

START_TEST(a_change_of_the_identification_changes_the_icrc_by_this)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	struct received r = receive(SAMPLE_V4, lengths[_i], &seed);
	uint32_t covered = r.n - L3 - ICRC_LEN;

	for (unsigned round = 0; round < 50; round++) {
		uint16_t from = (uint16_t)ck_rand(&seed), to = (uint16_t)ck_rand(&seed), found;
		uint32_t difference;

		set_id(&r, from);
		difference = icrc_of(&r);
		set_id(&r, to);
		difference ^= icrc_of(&r);
		ck_assert_uint_eq(icrc_of_id_change(from ^ to, covered), difference);
		ck_assert(icrc_explain_by_id(difference, covered, &found));
		ck_assert_uint_eq(found, from ^ to);
	}
}
END_TEST

START_TEST(every_identification_is_found)
{
	for (uint32_t id = 0; id < 65536; id++) {
		uint16_t found;
		uint32_t covered = 44 + id % 4200;

		ck_assert(icrc_explain_by_id(icrc_of_id_change((uint16_t)id, covered), covered,
					     &found));
		ck_assert_uint_eq(found, id);
	}
}
END_TEST

START_TEST(a_packet_whose_identification_is_guessed_passes_with_any)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	struct received r = receive(SAMPLE_V4, lengths[_i], &seed);
	uint16_t id = (uint16_t)(1 + ck_below(&seed, 65535));
	struct packet pk;

	sent_with_id(&r, id);
	ck_assert_int_eq(parse(&r, true, &pk), PACKET_OK);
	ck_assert_uint_eq(pk.ip_id, id);
	ck_assert_int_eq(parse(&r, false, &pk), PACKET_BAD_ICRC);
	sent_with_id(&r, 0);
	ck_assert_int_eq(parse(&r, true, &pk), PACKET_OK);
	ck_assert_uint_eq(pk.ip_id, 0);
}
END_TEST

START_TEST(a_damaged_payload_is_not_explained_by_an_identification)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	struct received r = receive(SAMPLE_V4, 1024, &seed);
	struct packet pk;
	unsigned passed = 0;

	sent_with_id(&r, (uint16_t)ck_rand(&seed));
	for (unsigned round = 0; round < 2000; round++) {
		uint32_t at = L3 + 44 + ck_below(&seed, 1000);
		uint8_t flip = (uint8_t)(1 + ck_below(&seed, 255));

		r.bytes[at] ^= flip;
		passed += parse(&r, true, &pk) == PACKET_OK;
		r.bytes[at] ^= flip;
	}
	/* One in 65,536 may. */
	ck_assert_uint_le(passed, 1);
	ck_assert_int_eq(parse(&r, true, &pk), PACKET_OK);
}
END_TEST

START_TEST(ipv6_has_no_identification_to_guess)
{
	uint64_t seed = ck_seed();
	struct received r = receive(SAMPLE_V6, 64, &seed);
	struct packet pk;

	ck_assert_int_eq(parse(&r, true, &pk), PACKET_OK);
	put_icrc(&r, icrc_of(&r) ^ icrc_of_id_change(7, r.n - L3 - ICRC_LEN));
	ck_assert_int_eq(parse(&r, true, &pk), PACKET_BAD_ICRC);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("icrc_id");
	TCase *tc = tcase_create("icrc_id");

	tcase_add_loop_test(tc, a_change_of_the_identification_changes_the_icrc_by_this, 0,
			    N_LENGTHS);
	tcase_add_test(tc, every_identification_is_found);
	tcase_add_loop_test(tc, a_packet_whose_identification_is_guessed_passes_with_any, 0,
			    N_LENGTHS);
	tcase_add_loop_test(tc, a_damaged_payload_is_not_explained_by_an_identification, 0, 4);
	tcase_add_test(tc, ipv6_has_no_identification_to_guess);
	suite_add_tcase(s, tc);
	return s;
}
