/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/packet.h"

#include <string.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/icrc.h"
#include "fabric/wire/icrc_id.h"
#include "fabric/wire/rocev2.h"

const char *const packet_verdict_name[PACKET_N_VERDICTS] = {
	[PACKET_OK] = "ok",
	[PACKET_NOT_ROCE] = "not-roce",
	[PACKET_SHORT] = "short",
	[PACKET_BAD_IP] = "bad-ip",
	[PACKET_BAD_UDP_LEN] = "bad-udp-length",
	[PACKET_BAD_BTH_VERSION] = "bad-bth-version",
	[PACKET_UNKNOWN_OPCODE] = "unknown-opcode",
	[PACKET_BAD_PAD] = "bad-pad",
	[PACKET_BAD_ICRC] = "bad-icrc",
};

static void read_bth(struct packet *pk, const struct bth *h)
{
	uint32_t qpn_word = be32_get(h->fecn_qpn);
	uint32_t psn_word = be32_get(h->ack_psn);

	pk->opcode = h->opcode;
	pk->pad = bth_pad(h);
	pk->tver = bth_tver(h);
	pk->solicited = h->flags & BTH_SE;
	pk->mig_req = h->flags & BTH_MIGREQ;
	pk->pkey = be16_get(h->pkey);
	pk->fecn = qpn_word & BTH_FECN;
	pk->becn = qpn_word & BTH_BECN;
	pk->dest_qpn = qpn_word & BTH_QPN_MASK;
	pk->ack_req = psn_word & BTH_ACKREQ;
	pk->psn = psn_word & BTH_PSN_MASK;
}

/* Request headers, in wire order; returns what follows them. */
static const uint8_t *read_request_ext(struct packet *pk, const uint8_t *p, uint32_t flags)
{
	if (flags & OPC_DETH) {
		const struct deth *h = (const struct deth *)p;

		pk->qkey = be32_get(h->qkey);
		pk->src_qpn = be32_get(h->src_qpn) & BTH_QPN_MASK;
		p += sizeof(*h);
	}
	if (flags & OPC_XRCETH) {
		pk->xrc_srqn = be32_get(((const struct xrceth *)p)->srqn) & BTH_QPN_MASK;
		p += sizeof(struct xrceth);
	}
	if (flags & OPC_FETH) {
		pk->flush = be32_get(((const struct feth *)p)->bits) &
			    (FETH_PLACEMENT | FETH_SELECTION);
		p += sizeof(struct feth);
	}
	if (flags & OPC_RETH) {
		const struct reth *h = (const struct reth *)p;

		pk->va = be64_get(h->va);
		pk->rkey = be32_get(h->rkey);
		pk->dma_len = be32_get(h->dma_len);
		p += sizeof(*h);
	}
	if (flags & OPC_ATOMICETH) {
		const struct atomiceth *h = (const struct atomiceth *)p;

		pk->va = be64_get(h->va);
		pk->rkey = be32_get(h->rkey);
		pk->swap_add = be64_get(h->swap_add);
		pk->compare = be64_get(h->compare);
		p += sizeof(*h);
	}
	return p;
}

static void read_ext(struct packet *pk, const uint8_t *p, uint32_t flags)
{
	p = read_request_ext(pk, p, flags);
	if (flags & OPC_AETH) {
		uint32_t word = be32_get(((const struct aeth *)p)->syndrome_msn);

		pk->syndrome = (uint8_t)(word >> 24);
		pk->msn = word & BTH_24;
		p += sizeof(struct aeth);
	}
	if (flags & OPC_ATOMICACK) {
		pk->atomic_orig = be64_get(((const struct atomicacketh *)p)->orig);
		p += sizeof(struct atomicacketh);
	}
	if (flags & OPC_IMM) {
		memcpy(&pk->imm, p, sizeof(pk->imm));
		p += sizeof(struct immdt);
	}
	if (flags & OPC_IETH)
		pk->inv_rkey = be32_get(((const struct ieth *)p)->rkey);
}

/*
 * The BTH and its extension headers lie wholly in head, and a split frame's head ends with them:
 * else a segment boundary would say where headers end, not the opcode.
 */
static enum packet_verdict check_bth(const struct frame *f, const struct roce_outer *o)
{
	const struct bth *h = (const struct bth *)(f->head + o->bth_off);
	uint32_t in_head = f->head_len - o->bth_off;
	const struct opcode_desc *desc;
	uint32_t need;

	if (o->udp_payload < sizeof(*h) + ICRC_LEN || in_head < sizeof(*h))
		return PACKET_SHORT;
	if (bth_tver(h) != 0)
		return PACKET_BAD_BTH_VERSION;
	desc = opcode_get(h->opcode);
	if (!desc->name)
		return PACKET_UNKNOWN_OPCODE;
	need = (uint32_t)sizeof(*h) + desc->ext_len;
	if (o->udp_payload < need + ICRC_LEN || in_head < need)
		return PACKET_SHORT;
	if (!frame_is_flat(f) && in_head != need)
		return PACKET_BAD_PAD;
	return PACKET_OK;
}

/* room: bytes between headers and ICRC: payload and pad, together a multiple of four (IBA 9.2.1).
 */
static enum packet_verdict check_payload(struct packet *pk, uint32_t flags, uint32_t room)
{
	if (room % 4 != 0 || pk->pad > room)
		return PACKET_BAD_PAD;
	if (room && !(flags & OPC_PAYLOAD))
		return PACKET_BAD_PAD;
	pk->payload_len = room - pk->pad;
	return PACKET_OK;
}

static enum packet_verdict place_flat(struct packet *pk, const struct frame *f, uint32_t off)
{
	const uint8_t *icrc = f->head + off + pk->payload_len + pk->pad;

	if (pk->payload_len) {
		pk->seg[0] = (struct frame_seg){ f->head + off, pk->payload_len };
		pk->n_segs = 1;
	}
	pk->icrc = icrc_get(icrc);
	return PACKET_OK;
}

static enum packet_verdict place_split(struct packet *pk, const struct frame *f)
{
	const uint8_t *icrc = f->trailer + pk->pad;

	if (f->trailer_len != pk->pad + ICRC_LEN)
		return PACKET_BAD_PAD;
	pk->n_segs = f->n_segs;
	for (uint32_t i = 0; i < f->n_segs; i++)
		pk->seg[i] = f->seg[i];
	pk->icrc = icrc_get(icrc);
	return PACKET_OK;
}

static bool icrc_is_right(struct packet *pk, const struct roce_outer *o)
{
	uint32_t covered = o->ip_len - ICRC_LEN;
	uint32_t difference = icrc_frame(pk->frame, o->l3_off, covered) ^ pk->icrc;
	uint16_t id_change;

	if (!difference)
		return true;
	if (!pk->frame->is_ip_id_guessed || !pk->net.is_ipv4 ||
	    !icrc_explain_by_id(difference, covered, &id_change))
		return false;
	pk->ip_id ^= id_change;
	return true;
}

enum packet_verdict packet_parse(struct packet *pk, const struct frame *f, bool check_icrc)
{
	const struct opcode_desc *desc;
	enum packet_verdict v;
	struct roce_outer o;
	uint32_t ext_end;

	packet_clear(pk);
	pk->n_segs = 0;
	pk->icrc = 0;
	pk->frame = f;
	if (f->n_segs > FRAME_SEGS || f->trailer_len > FRAME_TRAILER)
		return PACKET_SHORT;
	v = roce_outer_parse(f, &o, &pk->net, &pk->ip_id);
	if (v != PACKET_OK)
		return v;
	v = check_bth(f, &o);
	if (v != PACKET_OK)
		return v;
	read_bth(pk, (const struct bth *)(f->head + o.bth_off));
	desc = opcode_get(pk->opcode);
	ext_end = (uint32_t)sizeof(struct bth) + desc->ext_len;
	v = check_payload(pk, desc->flags, o.udp_payload - ext_end - ICRC_LEN);
	if (v != PACKET_OK)
		return v;
	v = frame_is_flat(f) ? place_flat(pk, f, o.bth_off + ext_end) : place_split(pk, f);
	if (v != PACKET_OK)
		return v;
	if (check_icrc && !frame_is_trusted(f) && !icrc_is_right(pk, &o))
		return PACKET_BAD_ICRC;
	read_ext(pk, f->head + o.bth_off + sizeof(struct bth), desc->flags);
	return PACKET_OK;
}
