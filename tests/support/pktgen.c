/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/pktgen.h"

#include <string.h>

#include "tests/support/ck_main.h"

void pktgen_init(struct pktgen *g, const struct net_path *path)
{
	memset(g, 0, sizeof(*g));
	net_template_build(&g->tmpl, path);
}

static void flatten(struct pktgen *g)
{
	uint8_t *p = g->wire;

	memcpy(p, g->split.head, g->split.head_len);
	p += g->split.head_len;
	for (uint32_t i = 0; i < g->split.n_segs; i++) {
		memcpy(p, g->split.seg[i].base, g->split.seg[i].len);
		p += g->split.seg[i].len;
	}
	memcpy(p, g->split.trailer, g->split.trailer_len);
	g->flat = (struct frame) { .head = g->wire, .head_len = frame_len(&g->split) };
}

const struct frame *pktgen_frame(struct pktgen *g, const struct packet *pk, const void *payload)
{
	uint8_t *buf = g->mem + FRAME_HEADROOM;

	if (payload)
		memcpy(buf, payload, pk->payload_len);
	else
		for (uint32_t i = 0; i < pk->payload_len; i++)
			buf[i] = (uint8_t)(i * 13 + pk->psn);
	g->split = (struct frame) { .buf = buf, .room = FRAME_PAYLOAD };
	if (pk->payload_len) {
		g->split.n_segs = 1;
		g->split.seg[0] = (struct frame_seg) { buf, pk->payload_len };
	}
	packet_build(pk, &g->tmpl, &g->split);
	flatten(g);
	return &g->flat;
}

static uint32_t odd_length(uint64_t *rng, uint32_t mtu)
{
	static const uint32_t near[] = { 0, 1, 3, 4, 5, 8 };

	switch (ck_below(rng, 4)) {
	case 0:
		return near[ck_below(rng, 6)];
	case 1:
		return mtu;
	case 2:
		return mtu + ck_below(rng, 9) - 4;
	}
	return ck_below(rng, FRAME_PAYLOAD);
}

static uint64_t odd_number(uint64_t *rng, uint64_t good)
{
	switch (ck_below(rng, 6)) {
	case 0:
		return ck_rand(rng);
	case 1:
		return good + ck_below(rng, 8) - 4;
	case 2:
		return good ^ (1ull << ck_below(rng, 64));
	}
	return good;
}

static const struct opcode_desc *pick_opcode(uint64_t *rng, const struct pktgen_aim *aim,
					     struct packet *pk)
{
	const struct opcode_desc *d;

	do {
		pk->opcode = (uint8_t)(ck_below(rng, 16) ? aim->service | ck_below(rng, 32)
							 : ck_below(rng, 256));
		d = opcode_get(pk->opcode);
	} while (!d->name);
	return d;
}

const struct frame *pktgen_hostile(struct pktgen *g, uint64_t *rng, const struct pktgen_aim *aim)
{
	struct packet pk = { 0 };
	const struct opcode_desc *d = pick_opcode(rng, aim, &pk);

	pk.dest_qpn = aim->dest_qpn;
	pk.psn = (uint32_t)odd_number(rng, aim->psn) & BTH_PSN_MASK;
	pk.pkey = ck_below(rng, 32) ? 0xffff : (uint16_t)ck_rand(rng);
	pk.ack_req = ck_below(rng, 2);
	pk.solicited = ck_below(rng, 2);
	pk.va = odd_number(rng, aim->va);
	pk.rkey = (uint32_t)odd_number(rng, aim->rkey);
	pk.dma_len = ck_below(rng, 3) ? odd_length(rng, aim->mtu) * ck_below(rng, 4)
				      : (uint32_t)ck_rand(rng);
	pk.swap_add = ck_rand(rng);
	pk.compare = ck_rand(rng);
	pk.syndrome = (uint8_t)ck_rand(rng);
	pk.msn = (uint32_t)ck_rand(rng) & 0xffffff;
	pk.atomic_orig = ck_rand(rng);
	pk.qkey = (uint32_t)ck_rand(rng);
	pk.src_qpn = (uint32_t)ck_rand(rng) & BTH_QPN_MASK;
	pk.imm = (uint32_t)ck_rand(rng);
	pk.inv_rkey = (uint32_t)odd_number(rng, aim->rkey);
	if (d->flags & OPC_PAYLOAD) {
		uint32_t len = odd_length(rng, aim->mtu);

		pk.payload_len = len > FRAME_PAYLOAD ? FRAME_PAYLOAD : len;
	}
	return pktgen_frame(g, &pk, NULL);
}
