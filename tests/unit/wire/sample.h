/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to try things on: every kind of outer header, every opcode, any payload. */
#pragma once

#include <string.h>

#include "fabric/wire/packet.h"
#include "tests/support/ck_main.h"
#include "tests/support/frame_make.h"

enum sample_net { SAMPLE_V4, SAMPLE_V6, SAMPLE_V4_VLAN, SAMPLE_V6_VLAN, SAMPLE_N_NETS };

static inline struct net_path sample_path(enum sample_net net)
{
	struct net_path p = { .dmac = { 2, 0x55, 0x52, 0x4f, 0, 2 },
			      .smac = { 2, 0x55, 0x52, 0x4f, 0, 1 },
			      .vlan = NET_NO_VLAN,
			      .udp_sport = 0xd123,
			      .tclass = 0x6a,
			      .hop_limit = 17 };

	if (net == SAMPLE_V4 || net == SAMPLE_V4_VLAN) {
		p.is_ipv4 = 1;
		memcpy(p.sgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x12\0\1", 16);
		memcpy(p.dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x12\0\2", 16);
	} else {
		p.flow_label = 0xabcde;
		memcpy(p.sgid, "\xfe\x80\0\0\0\0\0\0\0\x55\x52\xff\xfe\x4f\0\1", 16);
		memcpy(p.dgid, "\xfe\x80\0\0\0\0\0\0\0\x55\x52\xff\xfe\x4f\0\2", 16);
	}
	if (net == SAMPLE_V4_VLAN || net == SAMPLE_V6_VLAN)
		p.vlan = 0x6123;
	return p;
}

/* Random values in exactly those fields that the opcode carries. */
static inline struct packet sample_packet(uint8_t opcode, uint32_t payload_len, uint64_t *seed)
{
	const struct opcode_desc *d = opcode_get(opcode);
	uint32_t has = d->flags;
	uint64_t bits = ck_rand(seed);
	struct packet pk = { .opcode = opcode,
			     .solicited = bits & 1,
			     .ack_req = bits & 2,
			     .mig_req = bits & 4,
			     .fecn = bits & 8,
			     .becn = bits & 16,
			     .pkey = (uint16_t)(bits >> 8),
			     .dest_qpn = (uint32_t)(bits >> 24) & BTH_QPN_MASK,
			     .psn = (uint32_t)ck_rand(seed) & BTH_PSN_MASK };

	pk.payload_len = has & OPC_PAYLOAD ? payload_len : 0;
	pk.qkey = has & OPC_DETH ? (uint32_t)ck_rand(seed) : 0;
	pk.src_qpn = has & OPC_DETH ? (uint32_t)ck_rand(seed) & BTH_QPN_MASK : 0;
	pk.xrc_srqn = has & OPC_XRCETH ? (uint32_t)ck_rand(seed) & BTH_QPN_MASK : 0;
	pk.va = has & (OPC_RETH | OPC_ATOMICETH) ? ck_rand(seed) : 0;
	pk.rkey = has & (OPC_RETH | OPC_ATOMICETH) ? (uint32_t)ck_rand(seed) : 0;
	pk.dma_len = has & OPC_RETH ? (uint32_t)ck_rand(seed) : 0;
	pk.swap_add = has & OPC_ATOMICETH ? ck_rand(seed) : 0;
	pk.compare = has & OPC_ATOMICETH ? ck_rand(seed) : 0;
	pk.syndrome = has & OPC_AETH ? (uint8_t)ck_rand(seed) : 0;
	pk.msn = has & OPC_AETH ? (uint32_t)ck_rand(seed) & 0xffffff : 0;
	pk.atomic_orig = has & OPC_ATOMICACK ? ck_rand(seed) : 0;
	pk.imm = has & OPC_IMM ? (uint32_t)ck_rand(seed) : 0;
	pk.flush = has & OPC_FETH ? (uint32_t)ck_rand(seed) & 0x3f : 0;
	pk.inv_rkey = has & OPC_IETH ? (uint32_t)ck_rand(seed) : 0;
	return pk;
}

/* Builds pk in room, its payload in n_segs (1 to FRAME_SEGS) pieces of random bytes. */
static inline struct frame sample_build(const struct packet *pk, enum sample_net net,
					struct frame_room *room, unsigned n_segs, uint64_t *seed)
{
	struct net_path path = sample_path(net);
	struct frame f = frame_empty(room);
	struct net_template t;
	uint32_t off = 0;

	for (uint32_t i = 0; i < pk->payload_len; i++)
		f.buf[i] = (uint8_t)ck_rand(seed);
	for (unsigned i = 0; pk->payload_len && i < n_segs; i++) {
		uint32_t end = i + 1 == n_segs ? pk->payload_len :
						 off + ck_below(seed, pk->payload_len - off + 1);

		f.seg[f.n_segs++] = (struct frame_seg){ f.buf + off, end - off };
		off = end;
	}
	net_template_build(&t, &path);
	packet_build(pk, &t, &f);
	return f;
}
