/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device sends to itself, and to groups it may be in: an interface brings nothing of it
 * back, so it goes straight to whom it is for. Private to fabric/link.
 */
#pragma once

#include "fabric/link/socket_port.h"

#define OWN_FRAMES 128u

struct own_frames {
	struct frame *f[OWN_FRAMES]; /* for this worker */
	unsigned n;
};

/*
 * Takes what is for the port's own MAC out of f[0..n), and copies of datagrams for groups of QPs.
 * Returns how many are left.
 */
unsigned own_frames_take(struct own_frames *o, struct socket_port *p, struct frame **f, unsigned n);

/* A datagram for groups of QPs, of which every worker may have some. */
bool own_frames_is_for_groups(const struct frame *f);

/* Copies of one that arrived, to all workers but this port's. */
void own_frames_copy_to_others(struct socket_port *p, const struct frame *f);

/* Up to n of them, in order. */
unsigned own_frames_give(struct own_frames *o, struct frame **f, unsigned n);

/* By the control thread: frees them. */
void own_frames_drain(struct own_frames *o, const struct socket_port *p);
