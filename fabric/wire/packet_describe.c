/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/packet.h"

#include <inttypes.h>
#include <stdio.h>

#include "fabric/wire/be.h"
#include "fabric/wire/line.h"

static void put_ext(struct line *l, const struct packet *pk, uint32_t flags)
{
	be32 imm;

	if (flags & OPC_DETH)
		line_put(l, " qkey 0x%x src_qpn 0x%x", pk->qkey, pk->src_qpn);
	if (flags & OPC_XRCETH)
		line_put(l, " srqn 0x%x", pk->xrc_srqn);
	if (flags & OPC_FETH)
		line_put(l, " flush 0x%x", pk->flush);
	if (flags & OPC_RETH)
		line_put(l, " va 0x%" PRIx64 " rkey 0x%x dma_len %u", pk->va, pk->rkey,
			 pk->dma_len);
	if (flags & OPC_ATOMICETH)
		line_put(l, " va 0x%" PRIx64 " rkey 0x%x swap_add 0x%" PRIx64 " compare 0x%" PRIx64,
			 pk->va, pk->rkey, pk->swap_add, pk->compare);
	if (flags & OPC_AETH)
		line_put(l, " syndrome 0x%02x msn %u", pk->syndrome, pk->msn);
	if (flags & OPC_ATOMICACK)
		line_put(l, " orig 0x%" PRIx64, pk->atomic_orig);
	if (flags & OPC_IMM) {
		memcpy(imm.b, &pk->imm, sizeof(imm.b));
		line_put(l, " imm 0x%x", be32_get(imm));
	}
	if (flags & OPC_IETH)
		line_put(l, " inv_rkey 0x%x", pk->inv_rkey);
}

const char *packet_describe(const struct packet *pk, char *buf, unsigned size)
{
	const struct opcode_desc *desc = opcode_get(pk->opcode);
	struct line l = { buf, size, 0 };

	if (desc->name)
		line_put(&l, "%s", desc->name);
	else
		line_put(&l, "opcode 0x%02x", pk->opcode);
	line_put(&l, " qpn 0x%x psn %u len %u", pk->dest_qpn, pk->psn, pk->payload_len);
	put_ext(&l, pk, desc->flags);
	line_put(&l, "%s%s%s%s%s", pk->ack_req ? " ackreq" : "", pk->solicited ? " se" : "",
		 pk->mig_req ? " migreq" : "", pk->fecn ? " fecn" : "", pk->becn ? " becn" : "");
	return buf;
}
