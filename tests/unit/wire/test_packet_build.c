/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/packet.h"

#include "fabric/wire/hdr.h"
#include "tests/unit/wire/sample.h"

static void assert_same(const struct packet *a, const struct packet *b)
{
	ck_assert_uint_eq(a->opcode, b->opcode);
	ck_assert_uint_eq(a->solicited, b->solicited);
	ck_assert_uint_eq(a->ack_req, b->ack_req);
	ck_assert_uint_eq(a->mig_req, b->mig_req);
	ck_assert_uint_eq(a->fecn, b->fecn);
	ck_assert_uint_eq(a->becn, b->becn);
	ck_assert_uint_eq(a->tver, b->tver);
	ck_assert_uint_eq(a->pkey, b->pkey);
	ck_assert_uint_eq(a->dest_qpn, b->dest_qpn);
	ck_assert_uint_eq(a->psn, b->psn);
	ck_assert_uint_eq(a->va, b->va);
	ck_assert_uint_eq(a->rkey, b->rkey);
	ck_assert_uint_eq(a->dma_len, b->dma_len);
	ck_assert_uint_eq(a->swap_add, b->swap_add);
	ck_assert_uint_eq(a->compare, b->compare);
	ck_assert_uint_eq(a->syndrome, b->syndrome);
	ck_assert_uint_eq(a->msn, b->msn);
	ck_assert_uint_eq(a->atomic_orig, b->atomic_orig);
	ck_assert_uint_eq(a->qkey, b->qkey);
	ck_assert_uint_eq(a->src_qpn, b->src_qpn);
	ck_assert_uint_eq(a->imm, b->imm);
	ck_assert_uint_eq(a->inv_rkey, b->inv_rkey);
	ck_assert_uint_eq(a->xrc_srqn, b->xrc_srqn);
	ck_assert_uint_eq(a->payload_len, b->payload_len);
}

static void assert_payload(const struct packet *pk, const uint8_t *want)
{
	uint32_t off = 0;

	for (uint32_t i = 0; i < pk->n_segs; i++) {
		if (pk->seg[i].len)
			ck_assert_mem_eq(pk->seg[i].base, want + off, pk->seg[i].len);
		off += pk->seg[i].len;
	}
	ck_assert_uint_eq(off, pk->payload_len);
}

/* _i: the opcode. Both forms, every net, payloads of every pad. */
START_TEST(what_was_built_is_parsed_back)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;
	uint8_t bytes[8192];

	if (!opcode_get((uint8_t)_i)->name)
		return;
	for (unsigned round = 0; round < 4 * SAMPLE_N_NETS; round++) {
		struct packet pk = sample_packet((uint8_t)_i, 60 + round / SAMPLE_N_NETS, &seed);
		struct frame_room room;
		struct frame f = sample_build(&pk, (enum sample_net)(round % SAMPLE_N_NETS), &room,
					      1 + round % FRAME_SEGS, &seed);
		struct frame flat = frame_flat(bytes, frame_bytes(&f, bytes));
		struct packet got;

		ck_assert_int_eq(packet_parse(&got, &f, true), PACKET_OK);
		assert_same(&got, &pk);
		assert_payload(&got, f.buf);
		ck_assert_ptr_eq(got.frame, &f);
		ck_assert_int_eq(packet_parse(&got, &flat, true), PACKET_OK);
		assert_same(&got, &pk);
		assert_payload(&got, f.buf);
	}
}
END_TEST

START_TEST(headers_end_where_the_payload_buffer_begins)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_XRC | BTH_CMP_SWAP, 0, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, (enum sample_net)_i, &room, 1, &seed);

	ck_assert_ptr_eq(f.head + f.head_len, f.buf);
	ck_assert_uint_le(f.head_len, FRAME_HEADROOM);
	ck_assert_uint_eq(f.n_segs, 0);
}
END_TEST

START_TEST(pad_fills_the_payload_to_a_multiple_of_four_with_zeros)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_SEND_ONLY, (uint32_t)_i, &seed);
	unsigned pad = (4 - (unsigned)_i % 4) % 4;
	struct frame_room room;
	struct frame f = sample_build(&pk, SAMPLE_V4, &room, 1, &seed);
	const struct bth *h = (const struct bth *)(f.buf - sizeof(*h));

	ck_assert_uint_eq(bth_pad(h), pad);
	ck_assert_uint_eq(f.trailer_len, pad + 4);
	ck_assert_mem_eq(f.trailer, "\0\0\0", pad);
}
END_TEST

START_TEST(a_plain_packet_has_zero_in_all_it_does_not_say)
{
	struct packet pk = { .opcode = BTH_ACKNOWLEDGE, .pkey = 0xffff, .dest_qpn = 0x123456 };
	uint64_t seed = ck_seed();
	struct frame_room room;
	struct frame f = sample_build(&pk, SAMPLE_V4, &room, 1, &seed);
	const uint8_t *ip = f.head + 14;

	ck_assert_mem_eq(ip + 4, "\0\0\x40\0", 4);  /* identification 0, DF */
	ck_assert_mem_eq(ip + 26, "\0\0", 2);       /* UDP checksum */
	ck_assert_mem_eq(ip + 28, "\x11\0\xff\xff\0\x12\x34\x56\0\0\0\0\0\0\0\0", 16);
}
END_TEST

START_TEST(a_cnp_carries_sixteen_reserved_zeros)
{
	struct packet pk = { .opcode = 0x81, .becn = true, .dest_qpn = 5 }, got;
	uint64_t seed = ck_seed();
	struct frame_room room;
	struct frame f;

	memset(&room, 0xa5, sizeof(room));
	f = sample_build(&pk, SAMPLE_V6, &room, 1, &seed);
	ck_assert_mem_eq(f.buf - 16, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	ck_assert_int_eq(packet_parse(&got, &f, true), PACKET_OK);
	ck_assert(got.becn && !got.fecn);
}
END_TEST

START_TEST(immediate_data_stands_on_the_wire_as_it_was_given)
{
	struct packet pk = { .opcode = BTH_SEND_ONLY_IMM };
	uint64_t seed = ck_seed();
	struct frame_room room;
	struct frame f;

	memcpy(&pk.imm, "\x12\x34\x56\x78", 4);
	f = sample_build(&pk, SAMPLE_V4, &room, 1, &seed);
	ck_assert_mem_eq(f.buf - 4, "\x12\x34\x56\x78", 4);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("packet_build");
	TCase *tc = tcase_create("build");

	tcase_add_loop_test(tc, what_was_built_is_parsed_back, 0, 256);
	tcase_add_loop_test(tc, headers_end_where_the_payload_buffer_begins, 0, SAMPLE_N_NETS);
	tcase_add_loop_test(tc, pad_fills_the_payload_to_a_multiple_of_four_with_zeros, 0, 9);
	tcase_add_test(tc, a_plain_packet_has_zero_in_all_it_does_not_say);
	tcase_add_test(tc, a_cnp_carries_sixteen_reserved_zeros);
	tcase_add_test(tc, immediate_data_stands_on_the_wire_as_it_was_given);
	suite_add_tcase(s, tc);
	return s;
}
