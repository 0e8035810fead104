/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handle → path: what the packets of a QP or an AH need in front of their BTH. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/addr/gid.h"
#include "fabric/wire/packet.h"

/* The global route part of an address vector, as verbs give it. */
struct ah_attr {
	uint8_t dgid[GID_LEN];
	uint32_t flow_label;
	uint32_t sgid_index;
	uint8_t tclass;
	uint8_t hop_limit;
};

/* The MAC of a group: RFC 1112, RFC 2464. */
void ah_group_mac(const uint8_t dgid[GID_LEN], uint8_t dmac[6]);

/* The MAC at which dgid is reached, or the gateway's. false: not known. */
typedef bool ah_neigh_lookup(void *ctx, const uint8_t dgid[GID_LEN], uint8_t dmac[6]);

/*
 * Fills path but for udp_sport, which depends on the QPs: see roce_udp_sport. Group addresses give
 * their MAC themselves, and so does a link-local GID that lookup does not know. hop_limit below 2
 * becomes 64: programs leave 0 or 1 there (ibv_rc_pingpong), and Linux puts the route's in its
 * place.
 *
 * 0; -EINVAL: no such source GID, zero destination, or source and destination of unlike families;
 * -EHOSTUNREACH: nobody knows its MAC.
 */
int ah_resolve(struct net_path *path, const struct ah_attr *attr, const struct gid_table *gids,
	       ah_neigh_lookup *lookup, void *ctx);
