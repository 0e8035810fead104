/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Super-frames: many UDP packets of one flow as one, with one set of headers; all but the last of
 * one length. The kernel cuts such a one late or never, and coalesces what arrives. Cut, packet i
 * carries the IPv4 identification of the first plus i, which the ICRC covers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/frame.h"
#include "fabric/wire/packet.h"

#define GSO_MAX_PACKETS 64u    /* UDP_MAX_SEGMENTS of Linux before 6.9 */
#define GSO_MAX_BYTES   65000u /* of UDP payload; with headers below the 65,535 of IP */

/* Where the headers of a frame end; offsets into head. */
struct gso_outer {
	uint32_t l3_off;
	uint32_t payload_off; /* what follows the UDP header */
	bool is_ipv4;
};

/* false: no UDP packet, or a frame in flat form, or one that ends inside its headers. */
bool gso_outer(const struct frame *f, struct gso_outer *o);

/* How many of f[0..n) fit into one super-frame with f[0]: at least 1 (n must be too). */
unsigned gso_run(struct frame *const *f, unsigned n, const struct gso_outer *o);

/* How the ICRC changes with the place in a super-frame; remembered from one burst to the next. */
struct gso_icrc {
	uint32_t covered; /* for which length bit[] is; 0: none yet */
	uint32_t bit[6];
};

/*
 * Makes the ICRCs of a run, which are for identification 0, those for identification i; and back,
 * when called a second time.
 */
void gso_change_icrc(struct gso_icrc *c, struct frame *const *f, unsigned n,
		     const struct gso_outer *o);

/* A super-frame that arrived. */
struct gso_super {
	struct net_template net;
	uint16_t ip_id; /* of the first packet */
	bool is_ip_id_guessed;
	const uint8_t *payload; /* after the UDP header, of all packets */
	uint32_t len;
	uint32_t packet_len; /* of each but the last; not 0 */
};

static inline unsigned gso_super_count(const struct gso_super *s)
{
	return (s->len + s->packet_len - 1) / s->packet_len;
}

/* Copies packet i into the empty frame f. false: longer than a frame. */
bool gso_cut(const struct gso_super *s, unsigned i, struct frame *f);
