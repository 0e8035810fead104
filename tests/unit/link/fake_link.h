/* SPDX-License-Identifier: BSD-3-Clause */
/* A link in plain memory for tests of what wraps one. One a program; frames come from the heap. */
#pragma once

#include <stdlib.h>

#include "fabric/link/link.h"
#include "tests/support/ck_main.h"
#include "tests/support/frame_make.h"

/* The link below: what was sent lies in out, what shall arrive in in; memory comes from the heap.
 */
struct pipe {
	unsigned n;
	struct frame *f[4096];
};

static struct fake {
	struct link_port port;
	struct pipe out, in;
	unsigned room, live, alloc_limit;
} below;

struct fake_frame {
	struct frame f;
	struct frame_room room;
};

static unsigned fake_alloc(struct link_port *p, struct frame **f, unsigned n)
{
	(void)p;
	for (unsigned i = 0; i < n; i++) {
		struct fake_frame *x;

		if (below.live == below.alloc_limit)
			return i;
		x = aligned_alloc(64, (sizeof(*x) + 63) / 64 * 64);
		x->f = frame_empty(&x->room);
		x->f.owner = x;
		f[i] = &x->f;
		below.live++;
	}
	return n;
}

static void fake_free(struct link_port *p, struct frame *const *f, unsigned n)
{
	(void)p;
	for (unsigned i = 0; i < n; i++)
		free(f[i]->owner);
	below.live -= n;
}

static unsigned fake_room(struct link_port *p)
{
	(void)p;
	return below.room;
}

static void fake_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n)
{
	(void)p;
	(void)now;
	ck_assert_uint_le(n, below.room);
	below.room -= n;
	for (unsigned i = 0; i < n; i++)
		below.out.f[below.out.n++] = f[i];
}

static unsigned fake_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	unsigned got = below.in.n < n ? below.in.n : n;

	(void)p;
	(void)now;
	memcpy(f, below.in.f, got * sizeof(*f));
	below.in.n -= got;
	memmove(below.in.f, below.in.f + got, below.in.n * sizeof(*f));
	return got;
}

static uint64_t fake_deadline(const struct link_port *p)
{
	(void)p;
	return UINT64_MAX;
}

static int fake_wait_fd(const struct link_port *p)
{
	(void)p;
	return 42;
}

static const struct link_ops fake_ops = { fake_alloc, fake_free, fake_room, fake_tx,
					  fake_rx,    fake_deadline, fake_wait_fd };

static inline void free_pipe(struct pipe *p)
{
	fake_free(NULL, p->f, p->n);
	p->n = 0;
}
