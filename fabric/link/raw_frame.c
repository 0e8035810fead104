/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/raw_frame.h"

#include <string.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/rocev2.h"

/* Of an IP packet behind l3_off; 0: it is no IP, or ends inside its header. */
static uint32_t ip_len(const uint8_t *bytes, uint32_t len, uint32_t l3_off, bool is_ipv4)
{
	if (is_ipv4)
		return len < l3_off + sizeof(struct ipv4_hdr)
			       ? 0
			       : be16_get(((const struct ipv4_hdr *)(bytes + l3_off))->total_len);
	return len < l3_off + sizeof(struct ipv6_hdr)
		       ? 0
		       : be16_get(((const struct ipv6_hdr *)(bytes + l3_off))->payload_len) +
				 (uint32_t)sizeof(struct ipv6_hdr);
}

/* Where the UDP header ends, if IP has no options and UDP follows at once; 0: it is not so. */
static uint32_t payload_offset(const uint8_t *bytes, uint32_t len, uint32_t l3_off, bool is_ipv4)
{
	uint32_t off;

	if (is_ipv4) {
		const struct ipv4_hdr *h = (const struct ipv4_hdr *)(bytes + l3_off);

		off = l3_off + (uint32_t)(sizeof(*h) + sizeof(struct udp_hdr));
		if (len < off || h->ver_ihl != IPV4_VER_IHL || h->proto != IP_PROTO_UDP ||
		    (be16_get(h->frag) & IPV4_FRAGMENT))
			return 0;
		return off;
	}
	off = l3_off + (uint32_t)(sizeof(struct ipv6_hdr) + sizeof(struct udp_hdr));
	if (len < off || ((const struct ipv6_hdr *)(bytes + l3_off))->next != IP_PROTO_UDP)
		return 0;
	return off;
}

/* The headers up to UDP's as a template: their lengths are written for each packet anew. */
static void make_template(struct net_template *t, const uint8_t *bytes, uint32_t l3_off,
			  uint32_t payload_off, bool is_ipv4)
{
	struct udp_hdr *udp = (struct udp_hdr *)(t->bytes + payload_off) - 1;

	t->len = (uint8_t)payload_off;
	t->l3_off = (uint8_t)l3_off;
	t->is_ipv4 = is_ipv4;
	memcpy(t->bytes, bytes, payload_off);
	udp->checksum = be16_make(0);
	if (is_ipv4) {
		struct ipv4_hdr *h = (struct ipv4_hdr *)(t->bytes + l3_off);

		h->total_len = be16_make(0);
		h->id = be16_make(0);
		h->checksum = be16_make(0);
		h->checksum = be16_make(ipv4_checksum(h)); /* a template's, without a length */
	}
}

bool raw_frame_read(struct raw_frame *r, const uint8_t *bytes, uint32_t len, uint32_t packet_len)
{
	uint32_t l3_off = sizeof(struct eth_hdr), off, n;
	uint16_t type;
	bool is_ipv4;

	if (len < l3_off + sizeof(struct vlan_tag))
		return false;
	type = be16_get(((const struct eth_hdr *)bytes)->type);
	if (type == ETH_TYPE_VLAN) {
		type = be16_get(((const struct vlan_tag *)(bytes + l3_off))->type);
		l3_off += (uint32_t)sizeof(struct vlan_tag);
	}
	*r = (struct raw_frame) { .bytes = bytes, .len = len, .is_group = bytes[0] & 1 };
	is_ipv4 = type == ETH_TYPE_IPV4;
	if (!is_ipv4 && type != ETH_TYPE_IPV6)
		return packet_len == 0; /* no packet of ours: let the parser say so */
	n = ip_len(bytes, len, l3_off, is_ipv4);
	if (n && l3_off + n < len)
		r->len = l3_off + n;
	off = payload_offset(bytes, r->len, l3_off, is_ipv4);
	if (!off)
		return packet_len == 0;
	make_template(&r->s.net, bytes, l3_off, off, is_ipv4);
	r->s.payload = bytes + off;
	r->s.len = r->len - off;
	r->is_super = packet_len != 0;
	r->s.packet_len = packet_len ? packet_len : r->s.len;
	if (is_ipv4)
		r->s.ip_id = be16_get(((const struct ipv4_hdr *)(bytes + l3_off))->id);
	/* Whoever coalesced packets may have had them with other identifications. */
	r->s.is_ip_id_guessed = is_ipv4 && r->is_super;
	return r->s.len != 0;
}

unsigned raw_frame_count(const struct raw_frame *r)
{
	return r->is_super ? gso_super_count(&r->s) : 1;
}

static bool copy_flat(const struct raw_frame *r, struct frame *f)
{
	if (r->len > FRAME_HEADROOM + f->room)
		return false;
	f->head = f->buf - FRAME_HEADROOM;
	f->head_len = r->len;
	memcpy(f->head, r->bytes, r->len);
	return true;
}

bool raw_frame_cut(const struct raw_frame *r, unsigned i, struct frame *f)
{
	if (!r->s.len)
		return copy_flat(r, f);
	if (!gso_cut(&r->s, i, f))
		return false;
	/* A frame by itself keeps the headers that came, for the parser to judge. */
	if (!r->is_super)
		memcpy(f->head, r->bytes, r->s.net.len);
	return true;
}
