/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/gso_head.h"

#include <string.h>

#include "fabric/wire/rocev2.h"

static uint32_t sum16(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return sum;
}

static uint16_t pseudo_sum(const uint8_t *addresses, uint32_t len, uint32_t udp_len)
{
	uint32_t sum = sum16(addresses, len) + IP_PROTO_UDP + udp_len;

	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

void gso_head_make(struct gso_head *h, struct frame *const *f, unsigned n,
		   const struct gso_outer *o)
{
	uint32_t udp_len = sizeof(struct udp_hdr);
	struct udp_hdr *udp = (struct udp_hdr *)(h->bytes + o->payload_off) - 1;
	uint8_t *ip = h->bytes + o->l3_off;
	uint16_t sum;

	memcpy(h->bytes, f[0]->head, o->payload_off);
	for (unsigned i = 0; i < n; i++)
		udp_len += frame_len(f[i]) - o->payload_off;
	if (o->is_ipv4) {
		struct ipv4_hdr *v4 = (struct ipv4_hdr *)ip;

		v4->total_len = be16_make((uint16_t)(sizeof(*v4) + udp_len));
		v4->checksum = be16_make(0);
		v4->checksum = be16_make(ipv4_checksum(v4));
		sum = pseudo_sum(v4->src, 8, udp_len);
	} else {
		struct ipv6_hdr *v6 = (struct ipv6_hdr *)ip;

		v6->payload_len = be16_make((uint16_t)udp_len);
		sum = pseudo_sum(v6->src, 32, udp_len);
	}
	udp->len = be16_make((uint16_t)udp_len);
	udp->checksum = be16_make(sum);
}
