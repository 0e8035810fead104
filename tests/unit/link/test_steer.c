/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/steer.h"

#include <stdlib.h>

#include "fabric/wire/hdr.h"
#include "tests/unit/wire/sample.h"

START_TEST(the_bth_is_found_behind_every_kind_of_header)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_WRITE_ONLY, 9, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, (enum sample_net)_i, &room, 1, &seed);
	bool is_short = true;
	uint32_t qpn;

	ck_assert_ptr_eq(steer_bth(&f, &is_short),
			 f.buf - sizeof(struct bth) - sizeof(struct reth));
	ck_assert(!is_short);
	ck_assert(steer_qpn(&f, &qpn));
	ck_assert_uint_eq(qpn, pk.dest_qpn);
}
END_TEST

/* Each length of head, in memory of just that size. */
START_TEST(a_head_cut_anywhere_is_short_and_not_read_past)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_SEND_ONLY, 0, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, (enum sample_net)_i, &room, 1, &seed);

	for (uint32_t len = 0; len <= f.head_len; len++) {
		uint8_t *bytes = malloc(len ? len : 1);
		struct frame cut = frame_flat(bytes, len);
		uint32_t qpn = 1;

		memcpy(bytes, f.head, len);
		ck_assert_int_eq(steer_qpn(&cut, &qpn), len == f.head_len);
		ck_assert_uint_eq(qpn, len == f.head_len ? pk.dest_qpn : 0);
		free(bytes);
	}
}
END_TEST

static const struct {
	const char *what;
	uint32_t off;
	uint8_t value;
} others[] = {
	{ "ARP", 13, 0x06 },           { "TCP", 14 + 9, 6 },
	{ "a fragment", 14 + 7, 1 },   { "the first fragment", 14 + 6, 0x20 },
	{ "IP options", 14, 0x46 },    { "another port", 14 + 20 + 3, 1 },
};

START_TEST(what_is_no_roce_goes_to_qpn_zero)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_SEND_ONLY, 0, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, SAMPLE_V4, &room, 1, &seed);
	uint32_t qpn = 1;

	f.head[others[_i].off] = others[_i].value;
	ck_assert_msg(steer_qpn(&f, &qpn), "%s", others[_i].what);
	ck_assert_uint_eq(qpn, 0);
	ck_assert_ptr_null(steer_bth(&f, NULL));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("steer");
	TCase *tc = tcase_create("steer");

	tcase_add_loop_test(tc, the_bth_is_found_behind_every_kind_of_header, 0, SAMPLE_N_NETS);
	tcase_add_loop_test(tc, a_head_cut_anywhere_is_short_and_not_read_past, 0, SAMPLE_N_NETS);
	tcase_add_loop_test(tc, what_is_no_roce_goes_to_qpn_zero, 0,
			    sizeof(others) / sizeof(others[0]));
	suite_add_tcase(s, tc);
	return s;
}
