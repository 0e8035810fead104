/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/own_frames.h"

#include <string.h>

#include "fabric/link/frame_copy.h"
#include "fabric/link/steer.h"
#include "fabric/wire/hdr.h"
#include "fabric/wire/packet.h"

static void keep(struct own_frames *o, struct socket_port *p, struct frame *f)
{
	if (o->n < OWN_FRAMES)
		o->f[o->n++] = f;
	else
		socket_port_drop(p, &f, 1, LINK_DROP_RING_FULL);
}

static struct frame *copy_of(struct socket_port *p, const struct frame *f)
{
	struct frame *copy;

	if (!socket_port_alloc(&p->port, &copy, 1)) {
		socket_port_count(&p->count.drop[LINK_DROP_NO_BUFFER], 1);
		return NULL;
	}
	if (frame_copy(copy, f))
		return copy;
	socket_port_drop(p, &copy, 1, LINK_DROP_TOO_LONG);
	return NULL;
}

void own_frames_copy_to_others(struct socket_port *p, const struct frame *f)
{
	for (unsigned w = 0; w < handoff_workers(p->handoff); w++) {
		struct frame *copy = w == p->worker ? NULL : copy_of(p, f);

		if (copy && !handoff_give(p->handoff, w, copy))
			socket_port_drop(p, &copy, 1, LINK_DROP_RING_FULL);
	}
}

/* As an HCA loops a group's datagram back to itself. */
static void copy_to_members(struct own_frames *o, struct socket_port *p, const struct frame *f)
{
	struct frame *copy = copy_of(p, f);

	if (copy)
		keep(o, p, copy);
	own_frames_copy_to_others(p, f);
}

bool own_frames_is_for_groups(const struct frame *f)
{
	const struct bth *h = f->head[0] & 1 ? steer_bth(f, NULL) : NULL;

	return h && bth_dest_qpn(h) == BTH_QPN_MASK;
}

unsigned own_frames_take(struct own_frames *o, struct socket_port *p, struct frame **f, unsigned n)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		struct frame *one = f[i];

		if (memcmp(one->head, p->port.mac, 6) != 0) {
			if (own_frames_is_for_groups(one))
				copy_to_members(o, p, one);
			f[left++] = one;
			continue;
		}
		socket_port_count(&p->count.tx_packets, 1);
		socket_port_count(&p->count.tx_bytes, frame_len(one));
		if (socket_port_sort(p, &one, 1))
			keep(o, p, one);
	}
	return left;
}

unsigned own_frames_give(struct own_frames *o, struct frame **f, unsigned n)
{
	unsigned k = n < o->n ? n : o->n;

	memcpy(f, o->f, k * sizeof(f[0]));
	o->n -= k;
	memmove(o->f, o->f + k, o->n * sizeof(o->f[0]));
	return k;
}

void own_frames_drain(struct own_frames *o, const struct socket_port *p)
{
	frame_pool_put(p->pool, FRAME_POOL_NO_WORKER, o->f, o->n);
	o->n = 0;
}
