/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/icrc.h"

#include <isa-l/crc.h>
#include <string.h>

#include "fabric/wire/hdr.h"

/* Eight bytes of ones stand for the LRH that a routed packet does not have (IBA A17.3.3). */
#define LRH_ONES 8u

/* Room for the longest header chain a packet has: IPv6, UDP, BTH, XRCETH, AtomicETH. */
#define COPY_MAX (40u + 8u + 12u + 4u + 28u)

/* Overwrites what routers may change; h has n bytes from the IP header on. */
static void mask_ones(uint8_t *h, uint32_t n)
{
	uint32_t l4;

	if (n >= sizeof(struct ipv6_hdr) && h[0] >> 4 == 6) {
		h[0] |= 0x0f; /* traffic class, flow label */
		memset(h + 1, 0xff, 3);
		h[offsetof(struct ipv6_hdr, hop_limit)] = 0xff;
		l4 = sizeof(struct ipv6_hdr);
	} else if (n >= sizeof(struct ipv4_hdr)) {
		h[offsetof(struct ipv4_hdr, tos)] = 0xff;
		h[offsetof(struct ipv4_hdr, ttl)] = 0xff;
		memset(h + offsetof(struct ipv4_hdr, checksum), 0xff, 2);
		l4 = sizeof(struct ipv4_hdr);
	} else {
		return;
	}
	if (n >= l4 + sizeof(struct udp_hdr) + sizeof(struct bth)) {
		memset(h + l4 + offsetof(struct udp_hdr, checksum), 0xff, 2);
		h[l4 + sizeof(struct udp_hdr) + offsetof(struct bth, fecn_qpn)] = 0xff;
	}
}

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Adds up to *left bytes of p to the CRC. */
static uint32_t add(uint32_t crc, const uint8_t *p, uint32_t len, uint32_t *left)
{
	uint32_t n = min32(len, *left);

	*left -= n;
	return n ? crc32_gzip_refl(crc, p, n) : crc;
}

uint32_t icrc_frame(const struct frame *f, uint32_t l3_off, uint32_t covered)
{
	uint8_t masked[LRH_ONES + COPY_MAX];
	uint32_t in_head = f->head_len - min32(l3_off, f->head_len);
	uint32_t n = min32(min32(in_head, covered), COPY_MAX);
	uint32_t left = covered - n;
	uint32_t crc;

	memset(masked, 0xff, LRH_ONES);
	if (n)
		memcpy(masked + LRH_ONES, f->head + l3_off, n);
	mask_ones(masked + LRH_ONES, n);
	crc = crc32_gzip_refl(0, masked, LRH_ONES + n);
	if (in_head > n)
		crc = add(crc, f->head + l3_off + n, in_head - n, &left);
	for (uint32_t i = 0; i < f->n_segs; i++)
		crc = add(crc, f->seg[i].base, f->seg[i].len, &left);
	return add(crc, f->trailer, f->trailer_len, &left);
}

void icrc_seal(struct frame *f)
{
	const struct eth_hdr *eth = (const struct eth_hdr *)f->head;
	uint32_t l3_off = (uint32_t)sizeof(*eth), pad;

	if (!f->is_open)
		return;
	f->is_open = false;
	if (f->head_len < sizeof(*eth) || f->trailer_len < ICRC_LEN)
		return;
	if (be16_get(eth->type) == ETH_TYPE_VLAN)
		l3_off += (uint32_t)sizeof(struct vlan_tag);
	pad = f->trailer_len - ICRC_LEN;
	icrc_put(f->trailer + pad, icrc_frame(f, l3_off, frame_len(f) - l3_off - ICRC_LEN));
}
