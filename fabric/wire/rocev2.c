/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/rocev2.h"

#include <string.h>

static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

/*
 * Over the header with its checksum field as it is: 0 when that field is right. The ones'
 * complement sum does not care for byte order (RFC 1071), so whole words are added as they lie in
 * memory.
 */
uint16_t ipv4_checksum(const struct ipv4_hdr *h)
{
	uint32_t w[sizeof(*h) / 4];
	uint64_t sum;
	uint16_t folded;
	be16 out;

	memcpy(w, h, sizeof(w));
	sum = (uint64_t)w[0] + w[1] + w[2] + w[3] + w[4];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	folded = (uint16_t)~sum;
	memcpy(&out, &folded, sizeof(out));
	return be16_get(out);
}

static void map_v4(uint8_t gid[16], const uint8_t addr[4])
{
	memcpy(gid, v4_mapped, sizeof(v4_mapped));
	memcpy(gid + sizeof(v4_mapped), addr, 4);
}

/* UDP to the RoCE port, and as long as the IP payload. Who is not ours is told before who is wrong.
 */
static enum packet_verdict check_port(const struct udp_hdr *udp, struct net_path *net)
{
	net->udp_sport = be16_get(udp->sport);
	return be16_get(udp->dport) == ROCE_UDP_PORT ? PACKET_OK : PACKET_NOT_ROCE;
}

static enum packet_verdict parse_ipv4(const struct frame *f, struct roce_outer *o,
				      struct net_path *net, uint16_t *ip_id)
{
	const struct ipv4_hdr *ip = (const struct ipv4_hdr *)(f->head + o->l3_off);
	uint32_t n = f->head_len - o->l3_off;

	if (n < sizeof(*ip))
		return PACKET_SHORT;
	if (ip->proto != IP_PROTO_UDP)
		return PACKET_NOT_ROCE;
	if (ip->ver_ihl != IPV4_VER_IHL || (be16_get(ip->frag) & IPV4_FRAGMENT))
		return PACKET_BAD_IP;
	if (n < sizeof(*ip) + sizeof(struct udp_hdr))
		return PACKET_SHORT;
	if (check_port((const struct udp_hdr *)(ip + 1), net) != PACKET_OK)
		return PACKET_NOT_ROCE;
	if (!frame_is_trusted(f) && ipv4_checksum(ip) != 0)
		return PACKET_BAD_IP;
	o->ip_len = be16_get(ip->total_len);
	o->bth_off = o->l3_off + (uint32_t)(sizeof(*ip) + sizeof(struct udp_hdr));
	*ip_id = be16_get(ip->id);
	net->is_ipv4 = 1;
	net->flow_label = 0;
	net->tclass = ip->tos;
	net->hop_limit = ip->ttl;
	map_v4(net->sgid, ip->src);
	map_v4(net->dgid, ip->dst);
	return PACKET_OK;
}

static enum packet_verdict parse_ipv6(const struct frame *f, struct roce_outer *o,
				      struct net_path *net)
{
	const struct ipv6_hdr *ip = (const struct ipv6_hdr *)(f->head + o->l3_off);
	uint32_t n = f->head_len - o->l3_off;
	uint32_t word;

	if (n < sizeof(*ip))
		return PACKET_SHORT;
	if (ip->next != IP_PROTO_UDP)
		return PACKET_NOT_ROCE;
	if (n < sizeof(*ip) + sizeof(struct udp_hdr))
		return PACKET_SHORT;
	if (check_port((const struct udp_hdr *)(ip + 1), net) != PACKET_OK)
		return PACKET_NOT_ROCE;
	word = be32_get(ip->ver_tc_fl);
	if (word >> 28 != 6)
		return PACKET_BAD_IP;
	o->ip_len = (uint32_t)sizeof(*ip) + be16_get(ip->payload_len);
	o->bth_off = o->l3_off + (uint32_t)(sizeof(*ip) + sizeof(struct udp_hdr));
	net->is_ipv4 = 0;
	net->tclass = (uint8_t)(word >> 20);
	net->flow_label = word & IPV6_FLOW_MASK;
	net->hop_limit = ip->hop_limit;
	memcpy(net->sgid, ip->src, 16);
	memcpy(net->dgid, ip->dst, 16);
	return PACKET_OK;
}

/* Ethernet and at most one tag; gives the EtherType of what follows, 0 where the frame ends. */
static uint16_t parse_ethernet(const struct frame *f, struct roce_outer *o, struct net_path *net)
{
	const struct eth_hdr *eth = (const struct eth_hdr *)f->head;
	const struct vlan_tag *tag = (const struct vlan_tag *)(f->head + sizeof(*eth));
	uint16_t type;

	if (f->head_len < sizeof(*eth))
		return 0;
	memcpy(net->dmac, eth->dst, 6);
	memcpy(net->smac, eth->src, 6);
	net->vlan = NET_NO_VLAN;
	o->l3_off = sizeof(*eth);
	type = be16_get(eth->type);
	if (type != ETH_TYPE_VLAN)
		return type;
	if (f->head_len < sizeof(*eth) + sizeof(*tag))
		return 0;
	net->vlan = be16_get(tag->tci);
	o->l3_off += (uint32_t)sizeof(*tag);
	return be16_get(tag->type);
}

/* The IP packet must be all there, and UDP as long as IP says. */
static enum packet_verdict check_lengths(const struct frame *f, struct roce_outer *o)
{
	const uint8_t *bth = f->head + o->bth_off;
	const struct udp_hdr *udp = (const struct udp_hdr *)(bth - sizeof(*udp));
	uint32_t here = frame_len(f) - o->l3_off;
	uint32_t outer = o->bth_off - o->l3_off;

	if (o->ip_len < outer || o->ip_len > here || (o->ip_len < here && !frame_is_flat(f)))
		return PACKET_BAD_IP;
	o->udp_payload = o->ip_len - outer;
	if (be16_get(udp->len) != o->udp_payload + sizeof(*udp))
		return PACKET_BAD_UDP_LEN;
	return PACKET_OK;
}

enum packet_verdict roce_outer_parse(const struct frame *f, struct roce_outer *o,
				     struct net_path *net, uint16_t *ip_id)
{
	enum packet_verdict v;

	*ip_id = 0;
	switch (parse_ethernet(f, o, net)) {
	case 0:
		return PACKET_SHORT;
	case ETH_TYPE_IPV4:
		v = parse_ipv4(f, o, net, ip_id);
		break;
	case ETH_TYPE_IPV6:
		v = parse_ipv6(f, o, net);
		break;
	default:
		return PACKET_NOT_ROCE;
	}
	return v == PACKET_OK ? check_lengths(f, o) : v;
}

static uint8_t *put_ethernet(uint8_t *p, const struct net_path *path)
{
	struct eth_hdr *eth = (struct eth_hdr *)p;
	uint16_t type = path->is_ipv4 ? ETH_TYPE_IPV4 : ETH_TYPE_IPV6;

	memcpy(eth->dst, path->dmac, 6);
	memcpy(eth->src, path->smac, 6);
	p += sizeof(*eth);
	if (path->vlan == NET_NO_VLAN) {
		eth->type = be16_make(type);
	} else {
		struct vlan_tag *tag = (struct vlan_tag *)p;

		eth->type = be16_make(ETH_TYPE_VLAN);
		tag->tci = be16_make(path->vlan);
		tag->type = be16_make(type);
		p += sizeof(*tag);
	}
	return p;
}

static uint8_t *put_ip(uint8_t *p, const struct net_path *path)
{
	if (path->is_ipv4) {
		struct ipv4_hdr *ip = (struct ipv4_hdr *)p;

		*ip = (struct ipv4_hdr) { .ver_ihl = IPV4_VER_IHL,
					  .tos = path->tclass,
					  .frag = be16_make(IPV4_DF),
					  .ttl = path->hop_limit,
					  .proto = IP_PROTO_UDP };
		memcpy(ip->src, path->sgid + 12, 4);
		memcpy(ip->dst, path->dgid + 12, 4);
		ip->checksum = be16_make(ipv4_checksum(ip));
		return p + sizeof(*ip);
	}
	struct ipv6_hdr *ip = (struct ipv6_hdr *)p;

	*ip = (struct ipv6_hdr) { .ver_tc_fl = be32_make(6u << 28 | (uint32_t)path->tclass << 20 |
							 (path->flow_label & IPV6_FLOW_MASK)),
				  .next = IP_PROTO_UDP,
				  .hop_limit = path->hop_limit };
	memcpy(ip->src, path->sgid, 16);
	memcpy(ip->dst, path->dgid, 16);
	return p + sizeof(*ip);
}

void net_template_build(struct net_template *t, const struct net_path *path)
{
	struct udp_hdr *udp;
	uint8_t *p = t->bytes;

	memset(t, 0, sizeof(*t));
	t->is_ipv4 = path->is_ipv4;
	p = put_ethernet(p, path);
	t->l3_off = (uint8_t)(p - t->bytes);
	p = put_ip(p, path);
	udp = (struct udp_hdr *)p;
	udp->sport = be16_make(path->udp_sport);
	udp->dport = be16_make(ROCE_UDP_PORT);
	t->len = (uint8_t)(p + sizeof(*udp) - t->bytes);
}

void roce_outer_build(uint8_t *h, const struct net_template *t, uint32_t udp_payload)
{
	uint32_t udp_len = udp_payload + (uint32_t)sizeof(struct udp_hdr);
	struct udp_hdr *udp = (struct udp_hdr *)(h + t->len - sizeof(*udp));

	memcpy(h, t->bytes, t->len);
	udp->len = be16_make((uint16_t)udp_len);
	if (t->is_ipv4) {
		struct ipv4_hdr *ip = (struct ipv4_hdr *)(h + t->l3_off);

		uint32_t total = udp_len + (uint32_t)sizeof(*ip);
		uint32_t sum = (uint16_t)~be16_get(ip->checksum) + total; /* RFC 1624 */

		ip->total_len = be16_make((uint16_t)total);
		ip->checksum = be16_make((uint16_t)~((sum & 0xffff) + (sum >> 16)));
	} else {
		struct ipv6_hdr *ip = (struct ipv6_hdr *)(h + t->l3_off);

		ip->payload_len = be16_make((uint16_t)udp_len);
	}
}

uint16_t roce_udp_sport(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn)
{
	uint32_t fl = flow_label & IPV6_FLOW_MASK;

	if (!fl) {
		uint64_t v = (uint64_t)(local_qpn & BTH_QPN_MASK) * (remote_qpn & BTH_QPN_MASK);

		v ^= v >> 20;
		v ^= v >> 40;
		fl = (uint32_t)v & IPV6_FLOW_MASK;
	}
	return (uint16_t)(0xc000u | ((fl & 0x3fffu) ^ (fl >> 14)));
}
