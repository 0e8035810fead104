/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet's destination, as it is when a frame leaves: Ethernet is no part of the ICRC. Frames
 * whose neighbour has not answered yet wait for it, a second at most. Private to fabric/link.
 */
#pragma once

#include <stdbool.h>

#include "fabric/addr/neigh_table.h"
#include "fabric/wire/frame.h"

#define NEXT_HOP_WAITING  64u
#define NEXT_HOP_PATIENCE 1000000000ull /* ns */

struct next_hop {
	struct neigh_table *table; /* NULL: frames know their way already */
	uint32_t changes;          /* of the table, when the waiting were last looked at */
	unsigned n;
	struct frame *f[NEXT_HOP_WAITING]; /* by age */
	uint64_t due[NEXT_HOP_WAITING];    /* when it is given up */
};

enum next_hop_verdict { NEXT_HOP_GO, NEXT_HOP_WAIT, NEXT_HOP_NONE };

/* Writes the MAC. NONE: nobody asked for this address, and the frame has no MAC of its own. */
enum next_hop_verdict next_hop_set(struct next_hop *h, struct frame *f);

/* Where a frame goes. false: it is no UDP packet in split form. */
bool next_hop_destination(const struct frame *f, uint8_t gid[GID_LEN]);

/* false: too many wait already. */
bool next_hop_wait(struct next_hop *h, uint64_t now, struct frame *f);

/* Could some of those that wait go, or must some be given up? */
static inline bool next_hop_is_due(const struct next_hop *h, uint64_t now)
{
	return h->n &&
	       (h->due[0] <= now ||
		atomic_load_explicit(&h->table->changes, memory_order_acquire) != h->changes);
}

/* Takes out those that can go, into go (room for all), and those to be given up, into lost. */
void next_hop_take(struct next_hop *h, uint64_t now, struct frame **go, unsigned *n_go,
		   struct frame **lost, unsigned *n_lost);

static inline uint64_t next_hop_deadline(const struct next_hop *h)
{
	return h->n ? h->due[0] : UINT64_MAX;
}
