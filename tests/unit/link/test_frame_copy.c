/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/frame_copy.h"

#include "tests/unit/wire/sample.h"

START_TEST(a_copy_is_the_same_packet_in_its_own_memory)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	struct packet pk = sample_packet(BTH_WRITE_ONLY, (uint32_t)_i * 1365, &seed), got;
	struct frame_room room, copy_room;
	struct frame f = sample_build(&pk, SAMPLE_V4, &room, 1 + (unsigned)_i, &seed);
	struct frame copy = frame_empty(&copy_room);
	uint8_t a[8192], b[8192];
	uint32_t n = frame_bytes(&f, a);

	ck_assert(frame_copy(&copy, &f));
	memset(&room, 0, sizeof(room));
	ck_assert_uint_eq(frame_bytes(&copy, b), n);
	ck_assert_mem_eq(a, b, n);
	ck_assert_int_eq(packet_parse(&got, &copy, true), PACKET_OK);
	ck_assert_uint_eq(got.psn, pk.psn);
}
END_TEST

START_TEST(a_flat_frame_may_fill_headroom_and_room)
{
	static uint8_t bytes[FRAME_HEADROOM + FRAME_PAYLOAD + 1];
	struct frame_room room;
	struct frame f = frame_flat(bytes, FRAME_HEADROOM + FRAME_PAYLOAD),
		     copy = frame_empty(&room);

	memset(bytes, 0x5a, sizeof(bytes));
	ck_assert(frame_copy(&copy, &f));
	ck_assert_uint_eq(copy.head_len, f.head_len);
	ck_assert_mem_eq(copy.head, bytes, f.head_len);
	f.head_len++;
	copy = frame_empty(&room);
	ck_assert(!frame_copy(&copy, &f));
}
END_TEST

START_TEST(what_does_not_fit_is_not_copied)
{
	static uint8_t bytes[FRAME_PAYLOAD + 1];
	struct frame_room room;
	struct frame copy = frame_empty(&room);
	struct frame f = { .head = bytes, .head_len = 54, .n_segs = 2, .trailer_len = 4 };

	f.seg[0] = (struct frame_seg){ bytes, 1 };
	f.seg[1] = (struct frame_seg){ bytes, FRAME_PAYLOAD };
	ck_assert(!frame_copy(&copy, &f));
	f.seg[1].len = FRAME_PAYLOAD - 1;
	ck_assert(frame_copy(&copy, &f));
	f.head_len = FRAME_HEADROOM + 1;
	ck_assert(!frame_copy(&copy, &f));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("frame_copy");
	TCase *tc = tcase_create("copy");

	tcase_add_loop_test(tc, a_copy_is_the_same_packet_in_its_own_memory, 0, 4);
	tcase_add_test(tc, a_flat_frame_may_fill_headroom_and_room);
	tcase_add_test(tc, what_does_not_fit_is_not_copied);
	suite_add_tcase(s, tc);
	return s;
}
