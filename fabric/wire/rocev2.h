/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet, IP and UDP around the BTH; for fabric/wire, links and tests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/packet.h"

/* What the outer headers say; offsets into head. */
struct roce_outer {
	uint32_t l3_off;
	uint32_t bth_off;
	uint32_t ip_len;      /* whole IP packet, ICRC included */
	uint32_t udp_payload; /* BTH to ICRC */
};

/*
 * Reads the outer headers of f. A frame may be longer than its IP packet only where padding is
 * possible: when it is flat.
 */
enum packet_verdict roce_outer_parse(const struct frame *f, struct roce_outer *o,
				     struct net_path *net, uint16_t *ip_id);

/* Copies t to h (t->len bytes) and fills lengths and checksum for this much after the UDP header.
 */
void roce_outer_build(uint8_t *h, const struct net_template *t, uint32_t udp_payload);

uint16_t ipv4_checksum(const struct ipv4_hdr *h);

/* Packets in either form: no segments and no trailer means that head has it all. */
static inline bool frame_is_flat(const struct frame *f)
{
	return f->n_segs == 0 && f->trailer_len == 0;
}

/* It has never been where anything but we could write; a flat one comes from outside. */
static inline bool frame_is_trusted(const struct frame *f)
{
	return f->is_open && !frame_is_flat(f);
}
