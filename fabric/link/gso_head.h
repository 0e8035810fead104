/* SPDX-License-Identifier: BSD-3-Clause */
/* The one set of headers of a super-frame that is sent. Private to fabric/link. */
#pragma once

#include "fabric/link/gso.h"
#include "fabric/wire/hdr.h"

struct gso_head {
	uint8_t bytes[sizeof(struct eth_hdr) + sizeof(struct vlan_tag) + sizeof(struct ipv6_hdr) +
		      sizeof(struct udp_hdr)];
};

/*
 * Those of f[0], with the lengths of all n frames, and the UDP checksum as whoever cuts it wants
 * it: the sum over the pseudo-header, not complemented.
 */
void gso_head_make(struct gso_head *h, struct frame *const *f, unsigned n,
		   const struct gso_outer *o);
