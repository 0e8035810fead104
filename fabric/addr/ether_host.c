/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/ether_host.h"

#include <assert.h>
#include <string.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/rocev2.h"

#define ETH_TYPE_ARP   0x0806u
#define IP_PROTO_ICMP  1u
#define IP_PROTO_ICMP6 58u
#define HOP_MAX        255u /* neighbour discovery comes from no further (RFC 4861) */

/* RFC 826, for IPv4 over Ethernet. */
struct arp {
	be16 htype, ptype;
	uint8_t hlen, plen;
	be16 op;
	uint8_t sha[6], spa[4], tha[6], tpa[4];
};
static_assert(sizeof(struct arp) == 28, "ARP for IPv4 is 28 bytes on the wire");

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

struct icmp {
	uint8_t type, code;
	be16 checksum;
	uint8_t rest[4];
};
static_assert(sizeof(struct icmp) == 8, "ICMP header is 8 bytes on the wire");

enum { ECHO_REPLY = 0, ECHO = 8, ECHO6 = 128, ECHO6_REPLY = 129, SOLICIT = 135, ADVERTISE = 136 };
enum { OPTION_SOURCE_MAC = 1, OPTION_TARGET_MAC = 2 };

#define NA_SOLICITED 0x40u
#define NA_OVERRIDE  0x20u

/* Neighbour solicitation and advertisement with their one option (RFC 4861). */
struct nd {
	struct icmp icmp;
	uint8_t target[16];
	uint8_t option, option_len; /* in units of 8 bytes */
	uint8_t mac[6];
};
static_assert(sizeof(struct nd) == 32, "neighbour discovery with a MAC is 32 bytes on the wire");

static uint16_t sum_bytes(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* With the checksum in place: 0xffff when it is right. */
static uint16_t sum_icmp6(const struct ipv6_hdr *ip, const uint8_t *icmp, uint32_t len)
{
	uint32_t pseudo = sum_bytes(ip->src, 32, IP_PROTO_ICMP6 + len);

	return sum_bytes(icmp, len, pseudo);
}

static bool is_mine(const struct ether_host *h, const uint8_t gid[GID_LEN])
{
	for (unsigned i = 0; i < h->n_addrs; i++)
		if (!memcmp(h->addr[i], gid, GID_LEN))
			return true;
	return false;
}

/* Only of those we look for: nobody fills the table with others. */
static void learn(struct ether_host *h, uint64_t now, const uint8_t gid[GID_LEN],
		  const uint8_t mac[6])
{
	int slot = neigh_find(h->table, gid);

	if (slot < 0 || (mac[0] & 1))
		return;
	neigh_set(h->table, (unsigned)slot, mac);
	h->heard[slot] = now;
	h->unanswered[slot] = 0;
}

/* Ethernet header of the answer: back to whom it came from, with the same tag. Its length. */
static uint32_t answer_l2(const struct ether_host *h, const uint8_t *frame, uint32_t l3_off,
			  uint8_t *out)
{
	memcpy(out, frame, l3_off);
	memcpy(out, frame + 6, 6);
	memcpy(out + 6, h->mac, 6);
	return l3_off;
}

static uint32_t input_arp(struct ether_host *h, uint64_t now, const uint8_t *frame, uint32_t off,
			  uint32_t len, uint8_t *out)
{
	const struct arp *in = (const struct arp *)(frame + off);
	struct arp *reply = (struct arp *)(out + off);
	uint8_t from[GID_LEN], to[GID_LEN];

	if (len < off + sizeof(*in) || be16_get(in->htype) != 1 ||
	    be16_get(in->ptype) != ETH_TYPE_IPV4 || in->hlen != 6 || in->plen != 4)
		return 0;
	gid_from_ipv4(from, in->spa);
	gid_from_ipv4(to, in->tpa);
	if (is_mine(h, from))
		return 0;
	/* RFC 826 updates before it looks at what is asked; so gratuitous ones count. */
	learn(h, now, from, in->sha);
	if (be16_get(in->op) != ARP_REQUEST || !is_mine(h, to))
		return 0;
	answer_l2(h, frame, off, out);
	*reply = *in;
	reply->op = be16_make(ARP_REPLY);
	memcpy(reply->sha, h->mac, 6);
	memcpy(reply->spa, in->tpa, 4);
	memcpy(reply->tha, in->sha, 6);
	memcpy(reply->tpa, in->spa, 4);
	return off + (uint32_t)sizeof(*reply);
}

static uint32_t input_icmp(const struct ether_host *h, const uint8_t *frame, uint32_t off,
			   uint32_t len, uint8_t *out)
{
	const struct ipv4_hdr *ip = (const struct ipv4_hdr *)(frame + off);
	struct ipv4_hdr *reply = (struct ipv4_hdr *)(out + off);
	struct icmp *icmp = (struct icmp *)(reply + 1);
	uint32_t total, n;
	uint8_t to[GID_LEN];

	if (len < off + sizeof(*ip) + sizeof(*icmp) || ip->ver_ihl != IPV4_VER_IHL ||
	    ip->proto != IP_PROTO_ICMP || (be16_get(ip->frag) & IPV4_FRAGMENT))
		return 0;
	total = be16_get(ip->total_len);
	gid_from_ipv4(to, ip->dst);
	if (total < sizeof(*ip) + sizeof(*icmp) || total > len - off || !is_mine(h, to) ||
	    sum_bytes((const uint8_t *)ip, sizeof(*ip), 0) != 0xffff)
		return 0;
	n = total - (uint32_t)sizeof(*ip);
	if (frame[off + sizeof(*ip)] != ECHO ||
	    sum_bytes((const uint8_t *)(ip + 1), n, 0) != 0xffff)
		return 0;
	answer_l2(h, frame, off, out);
	memcpy(reply, ip, total);
	memcpy(reply->src, ip->dst, 4);
	memcpy(reply->dst, ip->src, 4);
	reply->ttl = 64;
	reply->checksum = be16_make(0);
	reply->checksum = be16_make(ipv4_checksum(reply));
	icmp->type = ECHO_REPLY;
	icmp->checksum = be16_make(0);
	icmp->checksum = be16_make((uint16_t)~sum_bytes((const uint8_t *)icmp, n, 0));
	return off + total;
}

/* IPv6 and ICMPv6 headers around n bytes of ICMPv6 that lie there already. */
static uint32_t finish_icmp6(uint8_t *out, uint32_t off, const uint8_t *src, const uint8_t *dst,
			     uint32_t n, uint8_t hops)
{
	struct ipv6_hdr *ip = (struct ipv6_hdr *)(out + off);
	struct icmp *icmp = (struct icmp *)(ip + 1);
	uint8_t from[GID_LEN], to[GID_LEN];

	memcpy(from, src, GID_LEN);
	memcpy(to, dst, GID_LEN);
	ip->ver_tc_fl = be32_make(6u << 28);
	ip->payload_len = be16_make((uint16_t)n);
	ip->next = IP_PROTO_ICMP6;
	ip->hop_limit = hops;
	memcpy(ip->src, from, GID_LEN);
	memcpy(ip->dst, to, GID_LEN);
	icmp->checksum = be16_make(0);
	icmp->checksum = be16_make((uint16_t)~sum_icmp6(ip, (const uint8_t *)icmp, n));
	return off + (uint32_t)sizeof(*ip) + n;
}

/* The MAC in an option of this kind; NULL: none, or options that cannot be. */
static const uint8_t *option_mac(const uint8_t *p, uint32_t len, uint8_t kind)
{
	while (len >= 8) {
		uint32_t n = p[1] * 8u;

		if (!n || n > len)
			return NULL;
		if (p[0] == kind && n == 8)
			return p + 2;
		p += n;
		len -= n;
	}
	return NULL;
}

static uint32_t answer_solicit(struct ether_host *h, uint64_t now, const uint8_t *frame,
			       uint32_t off, const struct nd *in, uint32_t n, uint8_t *out)
{
	const struct ipv6_hdr *ip = (const struct ipv6_hdr *)(frame + off);
	struct nd *reply = (struct nd *)(out + off + sizeof(*ip));
	const uint8_t *mac = option_mac(&in->option, n - 24, OPTION_SOURCE_MAC);
	uint8_t all_nodes[GID_LEN] = { 0xff, 2, [15] = 1 }, mine[GID_LEN];
	bool is_dad = gid_is_zero(ip->src);

	if (!is_mine(h, in->target) || is_mine(h, ip->src))
		return 0;
	if (mac && !is_dad)
		learn(h, now, ip->src, mac);
	memcpy(mine, in->target, sizeof(mine));
	answer_l2(h, frame, off, out);
	if (is_dad) /* somebody tries whether it may have our address: all shall hear that not */
		memcpy(out, "\x33\x33\0\0\0\x01", 6);
	*reply = (struct nd) { .icmp.type = ADVERTISE,
			       .option = OPTION_TARGET_MAC,
			       .option_len = 1 };
	reply->icmp.rest[0] = is_dad ? NA_OVERRIDE : NA_SOLICITED | NA_OVERRIDE;
	memcpy(reply->target, mine, sizeof(mine));
	memcpy(reply->mac, h->mac, 6);
	return finish_icmp6(out, off, mine, is_dad ? all_nodes : ip->src, sizeof(*reply), HOP_MAX);
}

static uint32_t input_icmp6(struct ether_host *h, uint64_t now, const uint8_t *frame, uint32_t off,
			    uint32_t len, uint8_t *out)
{
	const struct ipv6_hdr *ip = (const struct ipv6_hdr *)(frame + off);
	const struct nd *in = (const struct nd *)(ip + 1);
	const uint8_t *mac;
	uint32_t n;

	if (len < off + sizeof(*ip) + sizeof(struct icmp) || ip->next != IP_PROTO_ICMP6 ||
	    be32_get(ip->ver_tc_fl) >> 28 != 6)
		return 0;
	n = be16_get(ip->payload_len);
	if (n < sizeof(struct icmp) || n > len - off - sizeof(*ip) ||
	    sum_icmp6(ip, (const uint8_t *)in, n) != 0xffff || in->icmp.code)
		return 0;
	if (in->icmp.type == ECHO6 && is_mine(h, ip->dst) && !gid_is_multicast(ip->src)) {
		answer_l2(h, frame, off, out);
		memcpy(out + off + sizeof(*ip), in, n);
		out[off + sizeof(*ip)] = ECHO6_REPLY;
		return finish_icmp6(out, off, ip->dst, ip->src, n, 64);
	}
	if (ip->hop_limit != HOP_MAX || n < 24)
		return 0;
	if (in->icmp.type == SOLICIT)
		return answer_solicit(h, now, frame, off, in, n, out);
	mac = in->icmp.type == ADVERTISE ? option_mac(&in->option, n - 24, OPTION_TARGET_MAC)
					 : NULL;
	if (mac && !is_mine(h, in->target))
		learn(h, now, in->target, mac);
	return 0;
}

/* Where the layer above Ethernet begins, and its type; 0: too short. */
static uint32_t l3_offset(const uint8_t *frame, uint32_t len, uint16_t *type)
{
	uint32_t off = sizeof(struct eth_hdr);

	if (len < off + sizeof(struct vlan_tag))
		return 0;
	*type = be16_get(((const struct eth_hdr *)frame)->type);
	if (*type == ETH_TYPE_VLAN) {
		*type = be16_get(((const struct vlan_tag *)(frame + off))->type);
		off += (uint32_t)sizeof(struct vlan_tag);
	}
	return off;
}

bool ether_host_wants(const uint8_t *frame, uint32_t len)
{
	uint16_t type;
	uint32_t off = l3_offset(frame, len, &type);

	if (!off)
		return false;
	switch (type) {
	case ETH_TYPE_ARP:
		return true;
	case ETH_TYPE_IPV4:
		return len > off + 9 && frame[off + 9] == IP_PROTO_ICMP;
	case ETH_TYPE_IPV6:
		return len > off + 6 && frame[off + 6] == IP_PROTO_ICMP6;
	default:
		return false;
	}
}

uint32_t ether_host_input(struct ether_host *h, uint64_t now, const uint8_t *frame, uint32_t len,
			  uint8_t *out)
{
	uint16_t type;
	uint32_t off = l3_offset(frame, len, &type);

	/* A group is no sender, and answers to ourselves would go round and round. */
	if (!off || len > ETHER_HOST_BYTES || (frame[6] & 1) || !memcmp(frame + 6, h->mac, 6))
		return 0;
	switch (type) {
	case ETH_TYPE_ARP:
		return input_arp(h, now, frame, off, len, out);
	case ETH_TYPE_IPV4:
		return input_icmp(h, frame, off, len, out);
	case ETH_TYPE_IPV6:
		return input_icmp6(h, now, frame, off, len, out);
	default:
		return 0;
	}
}

static uint32_t put_l2(const struct ether_host *h, const uint8_t *to, uint16_t type, uint8_t *out)
{
	struct eth_hdr *eth = (struct eth_hdr *)out;
	struct vlan_tag *tag = (struct vlan_tag *)(eth + 1);

	memcpy(eth->dst, to, 6);
	memcpy(eth->src, h->mac, 6);
	eth->type = be16_make(h->vlan ? ETH_TYPE_VLAN : type);
	if (!h->vlan)
		return sizeof(*eth);
	tag->tci = be16_make(h->vlan);
	tag->type = be16_make(type);
	return sizeof(*eth) + sizeof(*tag);
}

/* An address of ours to ask from: of the same family, and link-local for link-local. */
static const uint8_t *source_for(const struct ether_host *h, const uint8_t gid[GID_LEN])
{
	const uint8_t *found = NULL;

	for (unsigned i = 0; i < h->n_addrs; i++) {
		if (gid_is_ipv4(h->addr[i]) != gid_is_ipv4(gid))
			continue;
		if (!found || gid_is_link_local(h->addr[i]) == gid_is_link_local(gid))
			found = h->addr[i];
	}
	return found;
}

static uint32_t ask_arp(const struct ether_host *h, const uint8_t *src, const uint8_t *gid,
			uint8_t *out)
{
	uint32_t off = put_l2(h, (const uint8_t *)"\xff\xff\xff\xff\xff\xff", ETH_TYPE_ARP, out);
	struct arp *q = (struct arp *)(out + off);

	*q = (struct arp) { .htype = be16_make(1),
			    .ptype = be16_make(ETH_TYPE_IPV4),
			    .hlen = 6,
			    .plen = 4,
			    .op = be16_make(ARP_REQUEST) };
	memcpy(q->sha, h->mac, 6);
	memcpy(q->spa, src + 12, 4);
	memcpy(q->tpa, gid + 12, 4);
	return off + (uint32_t)sizeof(*q);
}

static uint32_t ask_nd(const struct ether_host *h, const uint8_t *src, const uint8_t *gid,
		       uint8_t *out)
{
	/* The group of all whose addresses end alike (RFC 4291, 2.7.1). */
	uint8_t group[GID_LEN] = { 0xff, 2, [11] = 1, [12] = 0xff, gid[13], gid[14], gid[15] };
	const uint8_t to[6] = { 0x33, 0x33, 0xff, gid[13], gid[14], gid[15] };
	uint32_t off = put_l2(h, to, ETH_TYPE_IPV6, out);
	struct nd *q = (struct nd *)(out + off + sizeof(struct ipv6_hdr));

	*q = (struct nd) { .icmp.type = SOLICIT, .option = OPTION_SOURCE_MAC, .option_len = 1 };
	memcpy(q->target, gid, GID_LEN);
	memcpy(q->mac, h->mac, 6);
	return finish_icmp6(out, off, src, group, sizeof(*q), HOP_MAX);
}

uint32_t ether_host_ask(struct ether_host *h, uint64_t now, const uint8_t gid[GID_LEN],
			uint8_t *out)
{
	const uint8_t *src = source_for(h, gid);
	bool is_new;
	unsigned slot;

	if (!src || gid_is_multicast(gid) || gid_is_zero(gid))
		return 0;
	slot = neigh_add(h->table, gid, &is_new);
	if (is_new) {
		h->unanswered[slot] = 0;
		h->heard[slot] = 0;
	} else if (h->asked[slot] && now - h->asked[slot] < ETHER_HOST_ASK) {
		return 0;
	}
	h->asked[slot] = now ? now : 1;
	if (h->unanswered[slot] < ETHER_HOST_LOST)
		h->unanswered[slot]++;
	else
		neigh_set(h->table, slot, NULL);
	return gid_is_ipv4(gid) ? ask_arp(h, src, gid, out) : ask_nd(h, src, gid, out);
}

uint32_t ether_host_tick(struct ether_host *h, uint64_t now, uint8_t *out)
{
	for (unsigned i = 0; i < NEIGH_SLOTS; i++) {
		unsigned slot = h->cursor;
		uint8_t gid[GID_LEN];
		bool is_known, is_due;

		h->cursor = (slot + 1) % NEIGH_SLOTS;
		if (!neigh_get(h->table, slot, gid, &is_known))
			continue;
		is_due = !is_known || h->unanswered[slot] ||
			 now - h->heard[slot] >= ETHER_HOST_CHECK;
		if (is_due && now - h->asked[slot] >= ETHER_HOST_ASK &&
		    neigh_take_used(h->table, slot)) {
			uint32_t len = ether_host_ask(h, now, gid, out);

			if (len)
				return len;
		}
	}
	return 0;
}
