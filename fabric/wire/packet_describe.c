/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/packet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "fabric/wire/be.h"

struct line {
	char *buf;
	unsigned size, len;
};

/* Appends what fits; a line too long is cut. */
__attribute__((format(printf, 2, 3))) static void put(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (l->len >= l->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, l->size - l->len, fmt, ap);
	va_end(ap);
	l->len += n > 0 ? (unsigned)n : 0;
}

static void put_ext(struct line *l, const struct packet *pk, uint32_t flags)
{
	be32 imm;

	if (flags & OPC_DETH)
		put(l, " qkey 0x%x src_qpn 0x%x", pk->qkey, pk->src_qpn);
	if (flags & OPC_XRCETH)
		put(l, " srqn 0x%x", pk->xrc_srqn);
	if (flags & OPC_RETH)
		put(l, " va 0x%" PRIx64 " rkey 0x%x dma_len %u", pk->va, pk->rkey, pk->dma_len);
	if (flags & OPC_ATOMICETH)
		put(l, " va 0x%" PRIx64 " rkey 0x%x swap_add 0x%" PRIx64 " compare 0x%" PRIx64,
		    pk->va, pk->rkey, pk->swap_add, pk->compare);
	if (flags & OPC_AETH)
		put(l, " syndrome 0x%02x msn %u", pk->syndrome, pk->msn);
	if (flags & OPC_ATOMICACK)
		put(l, " orig 0x%" PRIx64, pk->atomic_orig);
	if (flags & OPC_IMM) {
		memcpy(imm.b, &pk->imm, sizeof(imm.b));
		put(l, " imm 0x%x", be32_get(imm));
	}
	if (flags & OPC_IETH)
		put(l, " inv_rkey 0x%x", pk->inv_rkey);
}

const char *packet_describe(const struct packet *pk, char *buf, unsigned size)
{
	const struct opcode_desc *desc = opcode_get(pk->opcode);
	struct line l = { buf, size, 0 };

	if (desc->name)
		put(&l, "%s", desc->name);
	else
		put(&l, "opcode 0x%02x", pk->opcode);
	put(&l, " qpn 0x%x psn %u len %u", pk->dest_qpn, pk->psn, pk->payload_len);
	put_ext(&l, pk, desc->flags);
	put(&l, "%s%s%s%s%s", pk->ack_req ? " ackreq" : "", pk->solicited ? " se" : "",
	    pk->mig_req ? " migreq" : "", pk->fecn ? " fecn" : "", pk->becn ? " becn" : "");
	return buf;
}
