/* SPDX-License-Identifier: BSD-3-Clause */
/* Open frames: no ICRC while nobody can see or damage them, the right one when somebody may. */
#include "fabric/wire/hdr.h"
#include "fabric/wire/icrc.h"
#include "tests/unit/wire/sample.h"

static const struct packet *packet_of(unsigned i, uint64_t *seed)
{
	static struct packet pk;

	pk = sample_packet(BTH_WRITE_ONLY_IMM, 60 + i % 5, seed);
	return &pk;
}

/* The same packet as sample_build makes, in a frame that is open. */
static struct frame build_open(const struct packet *pk, enum sample_net net,
			       struct frame_room *room, struct frame *sealed)
{
	struct net_path path = sample_path(net);
	struct frame f = *sealed;
	struct net_template t;

	memcpy(room->bytes, (const uint8_t *)sealed->buf - FRAME_HEADROOM, sizeof(room->bytes));
	f.buf = room->bytes + FRAME_HEADROOM;
	for (uint32_t i = 0; i < f.n_segs; i++)
		f.seg[i].base = f.buf + (sealed->seg[i].base - sealed->buf);
	f.is_open = true;
	net_template_build(&t, &path);
	packet_build(pk, &t, &f);
	return f;
}

START_TEST(an_open_frame_has_no_icrc_and_needs_none)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	const struct packet *pk = packet_of((unsigned)_i, &seed);
	struct frame_room room[2];
	struct frame f = sample_build(pk, (enum sample_net)_i, &room[0], 2, &seed);
	struct frame open = build_open(pk, (enum sample_net)_i, &room[1], &f);
	struct packet got;

	ck_assert_uint_eq(open.trailer_len, f.trailer_len);
	ck_assert_mem_eq(open.trailer + open.trailer_len - ICRC_LEN, "\0\0\0\0", ICRC_LEN);
	ck_assert_int_eq(packet_parse(&got, &open, true), PACKET_OK);
	ck_assert_uint_eq(got.psn, pk->psn);
}
END_TEST

START_TEST(sealing_makes_it_what_it_would_have_been)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	const struct packet *pk = packet_of((unsigned)_i, &seed);
	struct frame_room room[2];
	struct frame f = sample_build(pk, (enum sample_net)_i, &room[0], 2, &seed);
	struct frame open = build_open(pk, (enum sample_net)_i, &room[1], &f);
	uint8_t want[8192], got[8192];
	uint32_t n = frame_bytes(&f, want);

	icrc_seal(&open);
	ck_assert(!open.is_open);
	ck_assert_uint_eq(frame_bytes(&open, got), n);
	ck_assert_mem_eq(got, want, n);
	open.trailer[open.trailer_len - 1] ^= 1;
	icrc_seal(&open); /* a second time it is not its business any more */
	ck_assert_int_eq(packet_parse(&(struct packet){ 0 }, &open, true), PACKET_BAD_ICRC);
}
END_TEST

START_TEST(damage_after_sealing_is_found)
{
	uint64_t seed = ck_seed();
	const struct packet *pk = packet_of(0, &seed);
	struct frame_room room[2];
	struct frame f = sample_build(pk, SAMPLE_V4, &room[0], 1, &seed);
	struct frame open = build_open(pk, SAMPLE_V4, &room[1], &f);

	icrc_seal(&open);
	open.seg[0].base[7] ^= 4;
	ck_assert_int_eq(packet_parse(&(struct packet){ 0 }, &open, true), PACKET_BAD_ICRC);
}
END_TEST

START_TEST(a_flat_frame_is_never_taken_for_open)
{
	uint64_t seed = ck_seed();
	const struct packet *pk = packet_of(0, &seed);
	struct frame_room room;
	struct frame f = sample_build(pk, SAMPLE_V6, &room, 1, &seed), flat;
	uint8_t bytes[8192];
	uint32_t n = frame_bytes(&f, bytes);

	bytes[n - 1] ^= 1;
	flat = frame_flat(bytes, n);
	flat.is_open = true;
	ck_assert_int_eq(packet_parse(&(struct packet){ 0 }, &flat, true), PACKET_BAD_ICRC);
}
END_TEST

/* Whatever says it is open: sealing stays inside of it. */
START_TEST(sealing_what_is_no_packet_does_no_harm)
{
	for (uint32_t n = 0; n < 60; n++) {
		uint8_t *bytes = malloc(n + 1);
		struct frame f = { .head = bytes, .head_len = n, .is_open = true };

		memset(bytes, _i ? 0x81 : 0, n + 1);
		f.trailer_len = n % (FRAME_TRAILER + 1);
		icrc_seal(&f);
		ck_assert(!f.is_open);
		free(bytes);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("packet_open");
	TCase *tc = tcase_create("packet_open");

	tcase_add_loop_test(tc, an_open_frame_has_no_icrc_and_needs_none, 0, SAMPLE_N_NETS);
	tcase_add_loop_test(tc, sealing_makes_it_what_it_would_have_been, 0, SAMPLE_N_NETS);
	tcase_add_test(tc, damage_after_sealing_is_found);
	tcase_add_test(tc, a_flat_frame_is_never_taken_for_open);
	tcase_add_loop_test(tc, sealing_what_is_no_packet_does_no_harm, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
