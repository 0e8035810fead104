/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet parser fed raw frames, flat and split. What it accepts must describe itself, lie
 * within the frame, and build into the same bytes of payload again.
 */
#include <stdlib.h>

#include "fabric/wire/packet.h"
#include "tests/fuzz/input.h"

#define REQUIRE(cond) ((cond) ? (void)0 : abort())

static void check_segments(const struct packet *pk, const struct frame *f)
{
	uint32_t sum = 0;

	REQUIRE(pk->n_segs <= FRAME_SEGS);
	for (uint32_t i = 0; i < pk->n_segs; i++) {
		volatile uint8_t last = 0;

		if (pk->seg[i].len)
			last = pk->seg[i].base[pk->seg[i].len - 1];
		(void)last;
		sum += pk->seg[i].len;
	}
	REQUIRE(sum == pk->payload_len);
	REQUIRE(sum <= frame_len(f));
	REQUIRE(pk->psn <= BTH_PSN_MASK && pk->dest_qpn <= BTH_QPN_MASK);
}

static void rebuild(const struct packet *pk)
{
	static uint8_t mem[FRAME_HEADROOM + FRAME_PAYLOAD + 64] __attribute__((aligned(64)));
	struct frame f = { .buf = mem + FRAME_HEADROOM, .room = FRAME_PAYLOAD };
	struct net_template t;
	struct packet again;
	uint32_t at = 0;

	if (pk->payload_len > FRAME_PAYLOAD)
		return;
	for (uint32_t i = 0; i < pk->n_segs; at += pk->seg[i++].len)
		memcpy(f.buf + at, pk->seg[i].base, pk->seg[i].len);
	f.n_segs = pk->payload_len != 0;
	f.seg[0] = (struct frame_seg) { f.buf, pk->payload_len };
	net_template_build(&t, &pk->net);
	packet_build(pk, &t, &f);
	REQUIRE(packet_parse(&again, &f, true) == PACKET_OK);
	REQUIRE(again.opcode == pk->opcode && again.psn == pk->psn &&
		again.dest_qpn == pk->dest_qpn);
	REQUIRE(again.payload_len == pk->payload_len);
}

static void parse(const struct frame *f)
{
	struct packet pk;
	char text[256];

	packet_parse(&pk, f, true);
	if (packet_parse(&pk, f, false) != PACKET_OK)
		return;
	check_segments(&pk, f);
	packet_describe(&pk, text, sizeof(text));
	packet_describe(&pk, text, 8);
	rebuild(&pk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint32_t form = input_u8(&in), cut = input_u8(&in);
	uint8_t *mem = malloc(in.left + 1);
	struct frame f = { .head = mem, .head_len = (uint32_t)in.left };
	uint32_t n = (uint32_t)in.left;

	REQUIRE(mem);
	memcpy(mem, in.at, n);
	if ((form & 1) && n > 4 + cut) { /* split: cut bytes of headers, 4 to 7 of trailer */
		uint32_t trailer = 4 + (form >> 1 & 3);

		if (n >= cut + trailer) {
			f.head_len = cut;
			f.trailer_len = trailer;
			memcpy(f.trailer, mem + n - trailer, trailer);
			f.n_segs = 1;
			f.seg[0] = (struct frame_seg) { mem + cut, n - cut - trailer };
		}
	}
	parse(&f);
	free(mem);
	return 0;
}
