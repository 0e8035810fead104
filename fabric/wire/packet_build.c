/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/packet.h"

#include <assert.h>
#include <string.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/icrc.h"
#include "fabric/wire/rocev2.h"

static void write_bth(struct bth *h, const struct packet *pk, uint8_t pad)
{
	h->opcode = pk->opcode;
	h->flags = (uint8_t)((pk->solicited ? BTH_SE : 0) | (pk->mig_req ? BTH_MIGREQ : 0) |
			     pad << BTH_PAD_SHIFT | (pk->tver & BTH_TVER_MASK));
	h->pkey = be16_make(pk->pkey);
	h->fecn_qpn = be32_make((pk->fecn ? BTH_FECN : 0) | (pk->becn ? BTH_BECN : 0) |
				(pk->dest_qpn & BTH_QPN_MASK));
	h->ack_psn = be32_make((pk->ack_req ? BTH_ACKREQ : 0) | (pk->psn & BTH_PSN_MASK));
}

static uint8_t *write_request_ext(uint8_t *p, const struct packet *pk, uint32_t flags)
{
	if (flags & OPC_DETH) {
		*(struct deth *)p = (struct deth){ be32_make(pk->qkey),
						   be32_make(pk->src_qpn & BTH_QPN_MASK) };
		p += sizeof(struct deth);
	}
	if (flags & OPC_XRCETH) {
		((struct xrceth *)p)->srqn = be32_make(pk->xrc_srqn & BTH_QPN_MASK);
		p += sizeof(struct xrceth);
	}
	if (flags & OPC_FETH) {
		((struct feth *)p)->bits = be32_make(pk->flush);
		p += sizeof(struct feth);
	}
	if (flags & OPC_RETH) {
		*(struct reth *)p = (struct reth){ be64_make(pk->va), be32_make(pk->rkey),
						   be32_make(pk->dma_len) };
		p += sizeof(struct reth);
	}
	if (flags & OPC_ATOMICETH) {
		*(struct atomiceth *)p =
			(struct atomiceth){ be64_make(pk->va), be32_make(pk->rkey),
					    be64_make(pk->swap_add), be64_make(pk->compare) };
		p += sizeof(struct atomiceth);
	}
	return p;
}

static void write_ext(uint8_t *p, const struct packet *pk, uint32_t flags)
{
	p = write_request_ext(p, pk, flags);
	if (flags & OPC_AETH) {
		((struct aeth *)p)->syndrome_msn =
			be32_make((uint32_t)pk->syndrome << 24 | (pk->msn & BTH_24));
		p += sizeof(struct aeth);
	}
	if (flags & OPC_ATOMICACK) {
		((struct atomicacketh *)p)->orig = be64_make(pk->atomic_orig);
		p += sizeof(struct atomicacketh);
	}
	if (flags & OPC_IMM) {
		memcpy(p, &pk->imm, sizeof(pk->imm));
		p += sizeof(struct immdt);
	}
	if (flags & OPC_IETH)
		((struct ieth *)p)->rkey = be32_make(pk->inv_rkey);
}

static void write_trailer(struct frame *f, uint32_t l3_off, uint8_t pad)
{
	memset(f->trailer, 0, sizeof(f->trailer));
	f->trailer_len = pad + ICRC_LEN;
	if (!f->is_open)
		icrc_put(f->trailer + pad,
			 icrc_frame(f, l3_off, frame_len(f) - l3_off - ICRC_LEN));
}

void packet_build(const struct packet *pk, const struct net_template *t, struct frame *f)
{
	const struct opcode_desc *desc = opcode_get(pk->opcode);
	uint8_t pad = (uint8_t)(-pk->payload_len & 3u);
	uint32_t ib_len = (uint32_t)sizeof(struct bth) + desc->ext_len;
	uint8_t *bth;

	assert(desc->name && t->len + ib_len <= FRAME_HEADROOM);
	f->head_len = t->len + ib_len;
	f->head = f->buf - f->head_len;
	bth = f->head + t->len;
	roce_outer_build(f->head, t, ib_len + pk->payload_len + pad + ICRC_LEN);
	write_bth((struct bth *)bth, pk, pad);
	if (desc->flags & (OPC_REQUEST | OPC_RESPONSE))
		write_ext(bth + sizeof(struct bth), pk, desc->flags);
	else
		memset(bth + sizeof(struct bth), 0, desc->ext_len); /* CNP: reserved */
	write_trailer(f, t->l3_off, pad);
}
