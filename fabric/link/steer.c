/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/steer.h"

#include "fabric/wire/hdr.h"
#include "fabric/wire/packet.h"

/* The length of an IP header that UDP follows at once; 0: none we steer by. */
static uint32_t ip_header_len(uint16_t type, const uint8_t *ip, uint32_t n, bool *is_short)
{
	if (type == ETH_TYPE_IPV4) {
		const struct ipv4_hdr *h = (const struct ipv4_hdr *)ip;

		*is_short = n < sizeof(*h);
		if (*is_short || h->ver_ihl != IPV4_VER_IHL || h->proto != IP_PROTO_UDP ||
		    (be16_get(h->frag) & IPV4_FRAGMENT))
			return 0;
		return sizeof(*h);
	}
	if (type == ETH_TYPE_IPV6) {
		const struct ipv6_hdr *h = (const struct ipv6_hdr *)ip;

		*is_short = n < sizeof(*h);
		return *is_short || h->next != IP_PROTO_UDP ? 0 : sizeof(*h);
	}
	return 0;
}

/* The EtherType behind Ethernet and at most one tag; moves *off there. 0: cut off. */
static uint16_t ethertype(const struct frame *f, uint32_t *off)
{
	const struct eth_hdr *eth = (const struct eth_hdr *)f->head;
	uint16_t type;

	*off = sizeof(*eth);
	if (f->head_len < *off)
		return 0;
	type = be16_get(eth->type);
	if (type != ETH_TYPE_VLAN)
		return type;
	if (f->head_len < *off + sizeof(struct vlan_tag))
		return 0;
	type = be16_get(((const struct vlan_tag *)(f->head + *off))->type);
	*off += (uint32_t)sizeof(struct vlan_tag);
	return type;
}

const struct bth *steer_bth(const struct frame *f, bool *is_short)
{
	bool dummy;
	uint32_t off, ip_len;
	uint16_t type = ethertype(f, &off);

	if (!is_short)
		is_short = &dummy;
	*is_short = type == 0;
	if (*is_short)
		return NULL;
	ip_len = ip_header_len(type, f->head + off, f->head_len - off, is_short);
	if (!ip_len)
		return NULL;
	off += ip_len;
	*is_short = f->head_len < off + sizeof(struct udp_hdr);
	if (*is_short ||
	    be16_get(((const struct udp_hdr *)(f->head + off))->dport) != ROCE_UDP_PORT)
		return NULL;
	off += (uint32_t)sizeof(struct udp_hdr);
	*is_short = f->head_len < off + sizeof(struct bth);
	return *is_short ? NULL : (const struct bth *)(f->head + off);
}

bool steer_qpn(const struct frame *f, uint32_t *qpn)
{
	bool is_short;
	const struct bth *h = steer_bth(f, &is_short);

	*qpn = h ? bth_dest_qpn(h) : 0;
	return !is_short;
}
