/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host on Ethernet where no kernel owns the address: answers ARP, neighbour discovery and echo
 * requests, and asks for others. Pure; one thread. What it reads is written by an enemy: it answers
 * only what is asked of its own addresses, and learns only what it wants to know.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/addr/neigh_table.h"

#define ETHER_HOST_ADDRS 16u
#define ETHER_HOST_BYTES 1518u          /* longest frame it answers */
#define ETHER_HOST_ASK   1000000000ull  /* ns between two questions for one address */
#define ETHER_HOST_CHECK 30000000000ull /* ns until one in use is asked for again */
#define ETHER_HOST_LOST  3u             /* questions without answer until it counts as gone */

struct ether_host {
	uint8_t mac[6];
	uint16_t vlan; /* id of the tag of our own questions; 0: none */
	uint8_t addr[ETHER_HOST_ADDRS][GID_LEN];
	unsigned n_addrs;
	struct neigh_table *table;
	uint64_t asked[NEIGH_SLOTS], heard[NEIGH_SLOTS];
	uint8_t unanswered[NEIGH_SLOTS];
	unsigned cursor;
};

/* mac, vlan, addr and table are set, the rest zero. */

/*
 * Reads a frame (Ethernet header first, tagged or not). Returns the length of the answer in out,
 * which has room for ETHER_HOST_BYTES; 0: none.
 */
uint32_t ether_host_input(struct ether_host *h, uint64_t now, const uint8_t *frame, uint32_t len,
			  uint8_t *out);

/* Is it something ether_host_input may care about? */
bool ether_host_wants(const uint8_t *frame, uint32_t len);

/*
 * A question for gid, whose slot it gets; 0: it was asked lately. IPv6 and IPv4 from an address of
 * ours of that family; without one there is no question.
 */
uint32_t ether_host_ask(struct ether_host *h, uint64_t now, const uint8_t gid[GID_LEN],
			uint8_t *out);

/* The next question that time demands; 0: none now. To be called some times a second. */
uint32_t ether_host_tick(struct ether_host *h, uint64_t now, uint8_t *out);
