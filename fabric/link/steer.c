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

bool steer_qpn(const struct frame *f, uint32_t *qpn)
{
	const struct eth_hdr *eth = (const struct eth_hdr *)f->head;
	uint32_t off = sizeof(*eth);
	bool is_short = false;
	uint32_t ip_len;
	uint16_t type;

	*qpn = 0;
	if (f->head_len < off)
		return false;
	type = be16_get(eth->type);
	if (type == ETH_TYPE_VLAN) {
		if (f->head_len < off + sizeof(struct vlan_tag))
			return false;
		type = be16_get(((const struct vlan_tag *)(f->head + off))->type);
		off += (uint32_t)sizeof(struct vlan_tag);
	}
	ip_len = ip_header_len(type, f->head + off, f->head_len - off, &is_short);
	if (!ip_len)
		return !is_short;
	off += ip_len;
	if (f->head_len < off + sizeof(struct udp_hdr))
		return false;
	if (be16_get(((const struct udp_hdr *)(f->head + off))->dport) != ROCE_UDP_PORT)
		return true;
	off += (uint32_t)sizeof(struct udp_hdr);
	if (f->head_len < off + sizeof(struct bth))
		return false;
	*qpn = bth_dest_qpn((const struct bth *)(f->head + off));
	return true;
}
