/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/gso.h"

#include <string.h>

#include "fabric/wire/icrc_id.h"
#include "fabric/wire/rocev2.h"

bool gso_outer(const struct frame *f, struct gso_outer *o)
{
	uint16_t type;

	o->l3_off = sizeof(struct eth_hdr);
	if (frame_is_flat(f) || f->head_len < o->l3_off + sizeof(struct vlan_tag))
		return false;
	type = be16_get(((const struct eth_hdr *)f->head)->type);
	if (type == ETH_TYPE_VLAN) {
		type = be16_get(((const struct vlan_tag *)(f->head + o->l3_off))->type);
		o->l3_off += (uint32_t)sizeof(struct vlan_tag);
	}
	o->is_ipv4 = type == ETH_TYPE_IPV4;
	if (!o->is_ipv4 && type != ETH_TYPE_IPV6)
		return false;
	o->payload_off = o->l3_off + (uint32_t)sizeof(struct udp_hdr) +
			 (o->is_ipv4 ? (uint32_t)sizeof(struct ipv4_hdr)
				     : (uint32_t)sizeof(struct ipv6_hdr));
	return f->head_len >= o->payload_off;
}

/*
 * May b follow a? Everything up to the UDP lengths must be equal but for the fields that depend on
 * the length: those of packets of one length are equal too.
 */
static bool is_same_flow(const struct frame *a, const struct frame *b, const struct gso_outer *o,
			 bool is_same_len)
{
	uint32_t l3 = o->l3_off, ports = o->payload_off - (uint32_t)sizeof(struct udp_hdr);
	uint32_t addrs = o->is_ipv4 ? (uint32_t)offsetof(struct ipv4_hdr, src)
				    : (uint32_t)offsetof(struct ipv6_hdr, next);

	if (is_same_len)
		return !memcmp(a->head, b->head, o->payload_off);
	if (memcmp(a->head + l3 + addrs, b->head + l3 + addrs, ports + 4 - l3 - addrs))
		return false;
	/* What stands before the length: version, TOS or traffic class, flow label. */
	return !memcmp(a->head, b->head, l3 + (o->is_ipv4 ? 2u : 4u)) &&
	       (!o->is_ipv4 || a->head[l3 + offsetof(struct ipv4_hdr, ttl)] ==
				       b->head[l3 + offsetof(struct ipv4_hdr, ttl)]);
}

unsigned gso_run(struct frame *const *f, unsigned n, const struct gso_outer *o)
{
	uint32_t len = frame_len(f[0]), total = len - o->payload_off;
	unsigned k = 1;

	if (n > GSO_MAX_PACKETS)
		n = GSO_MAX_PACKETS;
	for (; k < n; k++) {
		uint32_t next = frame_len(f[k]);

		if (frame_is_flat(f[k]) || f[k]->head_len < o->payload_off || next > len)
			break;
		total += next - o->payload_off;
		if (total > GSO_MAX_BYTES || !is_same_flow(f[0], f[k], o, next == len))
			break;
		if (next < len) /* a shorter one ends it */
			return k + 1;
	}
	return k;
}

static void learn(struct gso_icrc *c, uint32_t covered)
{
	if (c->covered == covered)
		return;
	c->covered = covered;
	for (unsigned b = 0; b < 6; b++)
		c->bit[b] = icrc_of_id_change((uint16_t)(1u << b), covered);
}

static uint32_t change_for(const struct gso_icrc *c, unsigned i)
{
	uint32_t change = 0;

	for (unsigned b = 0; b < 6; b++)
		change ^= i >> b & 1 ? c->bit[b] : 0;
	return change;
}

static void xor_icrc(struct frame *f, uint32_t change)
{
	uint8_t *icrc = f->trailer + f->trailer_len - ICRC_LEN;

	for (unsigned i = 0; i < ICRC_LEN; i++)
		icrc[i] ^= (uint8_t)(change >> (8 * i));
}

void gso_change_icrc(struct gso_icrc *c, struct frame *const *f, unsigned n,
		     const struct gso_outer *o)
{
	uint32_t covered = frame_len(f[0]) - o->l3_off - ICRC_LEN;

	if (!o->is_ipv4 || n == 1)
		return;
	learn(c, covered);
	for (unsigned i = 1; i < n; i++) {
		uint32_t own = frame_len(f[i]) - o->l3_off - ICRC_LEN;

		xor_icrc(f[i],
			 own == covered ? change_for(c, i) : icrc_of_id_change((uint16_t)i, own));
	}
}

/*
 * Bytes of transport headers when the packet can be taken apart into headers, payload and trailer:
 * then the payload is copied to where memory is aligned. 0: the parser shall say what is wrong.
 */
static uint32_t split_at(const uint8_t *p, uint32_t len)
{
	const struct opcode_desc *desc;
	uint32_t ib_len;

	if (len < sizeof(struct bth))
		return 0;
	desc = opcode_get(p[0]);
	ib_len = (uint32_t)sizeof(struct bth) + desc->ext_len;
	if (!desc->name || len < ib_len + bth_pad((const struct bth *)p) + ICRC_LEN)
		return 0;
	return ib_len;
}

static bool place_split(struct frame *f, uint32_t net_len, const uint8_t *p, uint32_t len,
			uint32_t ib_len)
{
	uint32_t trailer = bth_pad((const struct bth *)p) + ICRC_LEN;
	uint32_t payload = len - ib_len - trailer;

	if (payload > f->room)
		return false;
	f->head_len = net_len + ib_len;
	f->head = f->buf - f->head_len;
	memcpy(f->head + net_len, p, ib_len);
	f->n_segs = payload ? 1 : 0;
	f->seg[0] = (struct frame_seg) { f->buf, payload };
	memcpy(f->buf, p + ib_len, payload);
	f->trailer_len = trailer;
	memcpy(f->trailer, p + len - trailer, trailer);
	return true;
}

static bool place_flat(struct frame *f, uint32_t net_len, const uint8_t *p, uint32_t len)
{
	f->head = f->buf - FRAME_HEADROOM;
	f->head_len = net_len + len;
	if (f->head_len > FRAME_HEADROOM + f->room)
		return false;
	memcpy(f->head + net_len, p, len);
	return true;
}

static void set_ip_id(struct ipv4_hdr *ip, uint16_t id)
{
	ip->id = be16_make(id);
	ip->checksum = be16_make(0);
	ip->checksum = be16_make(ipv4_checksum(ip));
}

bool gso_cut(const struct gso_super *s, unsigned i, struct frame *f)
{
	uint32_t off = i * s->packet_len;
	uint32_t len = s->len - off < s->packet_len ? s->len - off : s->packet_len;
	uint32_t ib_len = split_at(s->payload + off, len);
	uint16_t id = (uint16_t)(s->ip_id + i);
	bool fits;

	if (ib_len)
		fits = place_split(f, s->net.len, s->payload + off, len, ib_len);
	else
		fits = place_flat(f, s->net.len, s->payload + off, len);
	if (!fits)
		return false;
	roce_outer_build(f->head, &s->net, len);
	if (s->net.is_ipv4 && id)
		set_ip_id((struct ipv4_hdr *)(f->head + s->net.l3_off), id);
	f->is_ip_id_guessed = s->is_ip_id_guessed;
	return true;
}
