/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/socket_port.h"

#include <string.h>

#define BURST 64u

unsigned socket_port_alloc(struct link_port *p, struct frame **f, unsigned n)
{
	return frame_pool_get(socket_port(p)->pool, socket_port(p)->worker, f, n);
}

void socket_port_free(struct link_port *p, struct frame *const *f, unsigned n)
{
	frame_pool_put(socket_port(p)->pool, socket_port(p)->worker, f, n);
}

static uint64_t value(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

void socket_port_counters(const struct link_port *p, struct link_counters *out)
{
	const struct socket_counters *c = &socket_port(p)->count;

	out->tx_packets = value(&c->tx_packets);
	out->tx_bytes = value(&c->tx_bytes);
	out->rx_packets = value(&c->rx_packets);
	out->rx_bytes = value(&c->rx_bytes);
	for (unsigned i = 0; i < LINK_N_DROPS; i++)
		out->drop[i] = value(&c->drop[i]);
}

void socket_port_drop(struct socket_port *p, struct frame *const *f, unsigned n, enum link_drop why)
{
	if (!n)
		return;
	socket_port_count(&p->count.drop[why], n);
	socket_port_free(&p->port, f, n);
}

void socket_port_enqueue(struct socket_port *p, struct frame *const *f, unsigned n)
{
	unsigned room = SOCKET_PORT_QUEUE - p->n_queue;
	unsigned fit = n < room ? n : room;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < fit; i++) {
		p->queue[p->n_queue++] = f[i];
		bytes += frame_len(f[i]);
	}
	socket_port_count(&p->count.tx_packets, fit);
	socket_port_count(&p->count.tx_bytes, bytes);
	socket_port_drop(p, f + fit, n - fit, LINK_DROP_RING_FULL);
}

void socket_port_sent(struct socket_port *p, unsigned n)
{
	socket_port_free(&p->port, p->queue, n);
	p->n_queue -= n;
	memmove(p->queue, p->queue + n, p->n_queue * sizeof(p->queue[0]));
}

static void count_rx(struct socket_port *p, struct frame *const *f, unsigned n)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += frame_len(f[i]);
	if (n) {
		socket_port_count(&p->count.rx_packets, n);
		socket_port_count(&p->count.rx_bytes, bytes);
	}
}

unsigned socket_port_sort(struct socket_port *p, struct frame **f, unsigned n)
{
	struct frame *lost[BURST];
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i += BURST) {
		unsigned k = n - i < BURST ? n - i : BURST, n_lost, mine;

		mine = handoff_sort(p->handoff, p->worker, f + i, k, lost, &n_lost);
		memmove(f + kept, f + i, mine * sizeof(f[0]));
		kept += mine;
		socket_port_drop(p, lost, n_lost, LINK_DROP_RUNT);
	}
	count_rx(p, f, kept);
	return kept;
}

unsigned socket_port_take(struct socket_port *p, struct frame **f, unsigned n)
{
	unsigned got = handoff_take(p->handoff, p->worker, f, n);

	count_rx(p, f, got);
	return got;
}

void socket_port_drain(struct socket_port *p)
{
	struct frame *f[BURST];
	unsigned n;

	frame_pool_put(p->pool, FRAME_POOL_NO_WORKER, p->queue, p->n_queue);
	p->n_queue = 0;
	while ((n = handoff_take(p->handoff, p->worker, f, BURST)))
		frame_pool_put(p->pool, FRAME_POOL_NO_WORKER, f, n);
}

unsigned socket_port_keep(struct socket_port *p, struct frame *const *f, unsigned n)
{
	count_rx(p, f, n);
	return n;
}
