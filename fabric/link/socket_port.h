/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ports over sockets of the kernel have in common: frames from a pool, a queue of frames that
 * wait for room in the socket, frames for other workers, counters. Private to fabric/link.
 */
#pragma once

#include <stdatomic.h>

#include "fabric/link/frame_pool.h"
#include "fabric/link/handoff.h"
#include "fabric/link/link.h"

#define SOCKET_PORT_QUEUE 64u    /* frames that may wait to be sent */
#define SOCKET_PORT_RETRY 20000u /* ns until a full socket is tried again */

struct socket_counters {
	_Atomic uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	_Atomic uint64_t drop[LINK_N_DROPS];
};

struct socket_port {
	struct link_port port; /* first: a link_port of ours is one of these */
	struct frame_pool *pool;
	struct handoff *handoff; /* the device's */
	unsigned worker;
	struct frame *queue[SOCKET_PORT_QUEUE];
	unsigned n_queue;
	uint64_t retry_at; /* with a queue: when to try again */
	struct socket_counters count;
};

static inline struct socket_port *socket_port(const struct link_port *p)
{
	return (struct socket_port *)p;
}

/* Only the owner writes, so load and store need not be one step. */
static inline void socket_port_count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Ops that are the same for all. */
unsigned socket_port_alloc(struct link_port *p, struct frame **f, unsigned n);
void socket_port_free(struct link_port *p, struct frame *const *f, unsigned n);
void socket_port_counters(const struct link_port *p, struct link_counters *out);

/* Loses these frames for this reason. */
void socket_port_drop(struct socket_port *p, struct frame *const *f, unsigned n,
		      enum link_drop why);

/* Appends to the queue and counts them as sent; what does not fit is dropped. */
void socket_port_enqueue(struct socket_port *p, struct frame *const *f, unsigned n);

/* The first n of the queue were sent: frees them. */
void socket_port_sent(struct socket_port *p, unsigned n);

/* Frames read from the wire: keeps and counts what is for this worker; returns how many. */
unsigned socket_port_sort(struct socket_port *p, struct frame **f, unsigned n);

/* The same when all of it is for this worker, whatever the QPN says. */
unsigned socket_port_keep(struct socket_port *p, struct frame *const *f, unsigned n);

/* Frames that other workers read for this one, counted. */
unsigned socket_port_take(struct socket_port *p, struct frame **f, unsigned n);

/* By the control thread, when no worker uses the port any more: frees all frames it holds. */
void socket_port_drain(struct socket_port *p);
