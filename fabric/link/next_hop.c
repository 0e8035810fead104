/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/next_hop.h"

#include <string.h>

#include "fabric/link/gso.h"
#include "fabric/wire/hdr.h"

bool next_hop_destination(const struct frame *f, uint8_t gid[GID_LEN])
{
	struct gso_outer o;

	if (!gso_outer(f, &o))
		return false;
	if (o.is_ipv4)
		gid_from_ipv4(gid, ((const struct ipv4_hdr *)(f->head + o.l3_off))->dst);
	else
		memcpy(gid, ((const struct ipv6_hdr *)(f->head + o.l3_off))->dst, GID_LEN);
	return true;
}

enum next_hop_verdict next_hop_set(struct next_hop *h, struct frame *f)
{
	static const uint8_t none[6];
	uint8_t gid[GID_LEN], mac[6];

	if (f->head[0] & 1 || !h->table)
		return NEXT_HOP_GO;
	if (next_hop_destination(f, gid)) {
		switch (neigh_lookup(h->table, gid, mac)) {
		case NEIGH_KNOWN:
			memcpy(f->head, mac, sizeof(mac));
			return NEXT_HOP_GO;
		case NEIGH_PENDING:
			return NEXT_HOP_WAIT;
		case NEIGH_MISSING:
			break;
		}
	}
	return memcmp(f->head, none, sizeof(none)) ? NEXT_HOP_GO : NEXT_HOP_NONE;
}

bool next_hop_wait(struct next_hop *h, uint64_t now, struct frame *f)
{
	if (h->n == NEXT_HOP_WAITING)
		return false;
	/* The answer may have come since this frame was asked about: then all are asked again. */
	if (!h->n)
		h->changes = atomic_load_explicit(&h->table->changes, memory_order_acquire) - 1;
	h->f[h->n] = f;
	h->due[h->n++] = now + NEXT_HOP_PATIENCE;
	return true;
}

void next_hop_take(struct next_hop *h, uint64_t now, struct frame **go, unsigned *n_go,
		   struct frame **lost, unsigned *n_lost)
{
	unsigned kept = 0;

	*n_go = *n_lost = 0;
	if (!h->n)
		return;
	h->changes = atomic_load_explicit(&h->table->changes, memory_order_acquire);
	for (unsigned i = 0; i < h->n; i++) {
		switch (next_hop_set(h, h->f[i])) {
		case NEXT_HOP_GO:
			go[(*n_go)++] = h->f[i];
			continue;
		case NEXT_HOP_NONE:
			lost[(*n_lost)++] = h->f[i];
			continue;
		case NEXT_HOP_WAIT:
			break;
		}
		if (h->due[i] <= now) {
			lost[(*n_lost)++] = h->f[i];
		} else {
			h->f[kept] = h->f[i];
			h->due[kept++] = h->due[i];
		}
	}
	h->n = kept;
}
