/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames through the switch. */
#include <string.h>

#include "fabric/link/frame_copy.h"
#include "fabric/link/frame_pool.h"
#include "fabric/link/handover.h"
#include "fabric/link/steer.h"
#include "fabric/link/switch_port.h"
#include "fabric/wire/hdr.h"

#include <rte_ring.h>

#define BURST     32u
#define MCAST_QPN 0xffffffu /* a datagram for the members of its group */

static unsigned worker_of(const struct link_switch *sw, uint32_t qpn)
{
	return (qpn & 0xffffu) % sw->n_workers;
}

static unsigned port_alloc(struct link_port *p, struct frame **f, unsigned n)
{
	struct switch_port *sp = to_switch_port(p);

	n = frame_pool_get(sp->sw->pool, sp->worker, f, n);
	for (unsigned i = 0; i < n; i++)
		f[i]->is_open = true;
	return n;
}

static void port_free(struct link_port *p, struct frame *const *f, unsigned n)
{
	struct switch_port *sp = to_switch_port(p);

	frame_pool_put(sp->sw->pool, sp->worker, f, n);
}

void switch_drop(struct switch_port *sp, struct frame *f, enum link_drop why)
{
	switch_count(&sp->count.drop[why], 1);
	port_free(&sp->port, &f, 1);
}

/* The queue that is nearest to its depth decides: nobody knows yet where the frames will go. */
static unsigned port_tx_room(struct link_port *p)
{
	const struct link_switch *sw = to_switch_port(p)->sw;
	struct link_port *up = to_switch_port(p)->uplink;
	unsigned room = sw->depth, up_room = up ? up->ops->tx_room(up) : room;

	if (room > up_room)
		room = up_room;
	for (unsigned i = 0; i < switch_slots(sw); i++) {
		if (!switch_device_key(sw, i))
			continue;
		for (unsigned w = 0; w < sw->n_workers; w++) {
			unsigned used = rte_ring_count(sw->dev[i].ports[w].ring);

			if (used >= sw->depth)
				return 0;
			if (room > sw->depth - used)
				room = sw->depth - used;
		}
	}
	return room;
}

/*
 * Frames on their way to one port, so that a ring is touched once for a run of them, and those for
 * the uplink.
 */
struct run {
	struct switch_port *from, *to;
	uint64_t wake; /* workers that got something */
	unsigned n, n_out;
	struct frame *f[BURST];
	struct frame **out;
};

static void run_flush(struct run *r)
{
	unsigned sent;

	if (!r->n)
		return;
	handover_give(r->to->ring);
	sent = rte_ring_enqueue_burst(r->to->ring, (void *const *)r->f, r->n, NULL);
	for (unsigned i = sent; i < r->n; i++)
		switch_drop(r->from, r->f[i], LINK_DROP_RING_FULL);
	r->wake |= 1ull << r->to->worker;
	r->n = 0;
}

static void run_add(struct run *r, struct switch_port *to, struct frame *f)
{
	if (r->to != to || r->n == BURST) {
		run_flush(r);
		r->to = to;
	}
	r->f[r->n++] = f;
}

/* For whom is not on the switch. */
static void run_out(struct run *r, struct frame *f)
{
	if (r->n_out < SWITCH_OUT)
		r->out[r->n_out++] = f;
	else
		switch_drop(r->from, f, LINK_DROP_RING_FULL);
}

/* Steps over a tag when it compares with the MTU, as a NIC does. */
static uint32_t l3_len(const struct frame *f)
{
	const struct eth_hdr *eth = (const struct eth_hdr *)f->head;
	uint32_t l2 = sizeof(*eth);

	if (be16_get(eth->type) == ETH_TYPE_VLAN)
		l2 += (uint32_t)sizeof(struct vlan_tag);
	return frame_len(f) - l2;
}

static void flood_to(struct run *r, const struct frame *f, struct switch_port *to, uint32_t mtu)
{
	struct switch_port *from = r->from;
	struct frame *copy;

	if (l3_len(f) > mtu) {
		switch_count(&from->count.drop[LINK_DROP_TOO_LONG], 1);
	} else if (!port_alloc(&from->port, &copy, 1)) {
		switch_count(&from->count.drop[LINK_DROP_NO_BUFFER], 1);
	} else if (!frame_copy(copy, f)) {
		switch_drop(from, copy, LINK_DROP_TOO_LONG);
	} else {
		run_add(r, to, copy);
	}
}

/*
 * A copy to every other device; the frame itself is used up, or leaves by the uplink. A datagram to
 * a group of QPs goes to all workers, for each has QPs of its own, and to the sender's device too:
 * an HCA loops it back.
 */
static void flood(struct run *r, struct frame *f, uint32_t qpn)
{
	const struct switch_port *from = r->from;
	struct link_switch *sw = from->sw;
	bool is_for_groups = qpn == MCAST_QPN;
	bool is_for_own = is_for_groups && !(from->uplink && from->uplink_loops_groups);

	for (unsigned i = 0; i < switch_slots(sw); i++) {
		uint64_t key = switch_device_key(sw, i);

		if (!key || (i == from->device && !is_for_own))
			continue;
		if (!is_for_groups)
			flood_to(r, f, &sw->dev[i].ports[worker_of(sw, qpn)], KEY_MTU(key));
		for (unsigned w = 0; is_for_groups && w < sw->n_workers; w++)
			flood_to(r, f, &sw->dev[i].ports[w], KEY_MTU(key));
	}
	if (from->uplink)
		run_out(r, f);
	else
		port_free(&r->from->port, &f, 1);
}

static void forward(struct run *r, struct frame *f)
{
	struct switch_port *from = r->from;
	struct link_switch *sw = from->sw;
	uint32_t qpn = 0;
	unsigned to;

	if (!steer_qpn(f, &qpn)) {
		switch_drop(from, f, LINK_DROP_RUNT);
		return;
	}
	if (switch_is_group(f->head)) {
		flood(r, f, qpn);
		return;
	}
	to = switch_find(sw, f->head);
	if (to == sw->max_devices && from->uplink)
		run_out(r, f);
	else if (to == sw->max_devices)
		switch_drop(from, f, LINK_DROP_UNKNOWN_MAC);
	else if (l3_len(f) > KEY_MTU(switch_device_key(sw, to)))
		switch_drop(from, f, LINK_DROP_TOO_LONG);
	else
		run_add(r, &sw->dev[to].ports[worker_of(sw, qpn)], f);
}

/* The uplink counts what leaves by it. */
static void send_out(struct run *r, uint64_t now, uint64_t *packets, uint64_t *bytes)
{
	if (!r->n_out)
		return;
	*packets -= r->n_out;
	for (unsigned i = 0; i < r->n_out; i++)
		*bytes -= frame_len(r->out[i]);
	switch_uplink_tx(r->from, now, r->out, r->n_out);
}

static void port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n)
{
	struct frame *out[SWITCH_OUT];
	struct run r = { .from = to_switch_port(p), .out = out };
	struct link_switch *sw = r.from->sw;
	uint64_t bytes = 0, packets = n;

	for (unsigned i = 0; i < n; i++) {
		bytes += frame_len(f[i]);
		forward(&r, f[i]);
	}
	run_flush(&r);
	send_out(&r, now, &packets, &bytes);
	switch_count(&r.from->count.tx_packets, packets);
	switch_count(&r.from->count.tx_bytes, bytes);
	r.wake &= ~(1ull << r.from->worker);
	if (!r.wake || !sw->wake)
		return;
	atomic_thread_fence(memory_order_seq_cst); /* frames before the look at a sleeping flag */
	for (; r.wake; r.wake &= r.wake - 1)
		sw->wake(sw->wake_ctx, (unsigned)__builtin_ctzll(r.wake));
}

/*
 * A sender that was slow while our slot changed hands may have sent to the device before us: so the
 * address is looked at again, as by any NIC.
 */
static unsigned ring_rx(struct switch_port *sp, struct frame **f, unsigned n)
{
	unsigned got = rte_ring_dequeue_burst(sp->ring, (void **)f, n, NULL);
	unsigned kept = 0;
	uint64_t bytes = 0;

	handover_take(sp->ring);
	for (unsigned i = 0; i < got; i++) {
		if (!switch_is_group(f[i]->head) && memcmp(f[i]->head, sp->port.mac, 6) != 0) {
			switch_drop(sp, f[i], LINK_DROP_WRONG_MAC);
			continue;
		}
		bytes += frame_len(f[i]);
		f[kept++] = f[i];
	}
	if (kept) {
		switch_count(&sp->count.rx_packets, kept);
		switch_count(&sp->count.rx_bytes, bytes);
	}
	return kept;
}

static unsigned port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	struct switch_port *sp = to_switch_port(p);
	unsigned got = 0;

	if (!sp->uplink)
		return ring_rx(sp, f, n);
	sp->is_uplink_next = !sp->is_uplink_next;
	if (!sp->is_uplink_next)
		got = switch_uplink_rx(sp, now, f, n);
	if (got < n)
		got += ring_rx(sp, f + got, n - got);
	if (sp->is_uplink_next && got < n)
		got += switch_uplink_rx(sp, now, f + got, n - got);
	return got;
}

static uint64_t port_deadline(const struct link_port *p)
{
	const struct link_port *up = to_switch_port(p)->uplink;

	return up ? up->ops->deadline(up) : UINT64_MAX;
}

/* Of frames on the switch conf.wake tells. */
static int port_wait_fd(const struct link_port *p)
{
	const struct link_port *up = to_switch_port(p)->uplink;

	return up ? up->ops->wait_fd(up) : -1;
}

const struct link_ops switch_ops = {
	.alloc = port_alloc,
	.free = port_free,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.rx = port_rx,
	.deadline = port_deadline,
	.wait_fd = port_wait_fd,
	.counters = link_switch_counters,
};

void link_switch_counters(const struct link_port *port, struct link_counters *out)
{
	const struct switch_counters *c = &to_switch_port(port)->count;

	out->tx_packets = atomic_load_explicit(&c->tx_packets, memory_order_relaxed);
	out->tx_bytes = atomic_load_explicit(&c->tx_bytes, memory_order_relaxed);
	out->rx_packets = atomic_load_explicit(&c->rx_packets, memory_order_relaxed);
	out->rx_bytes = atomic_load_explicit(&c->rx_bytes, memory_order_relaxed);
	for (unsigned i = 0; i < LINK_N_DROPS; i++)
		out->drop[i] = atomic_load_explicit(&c->drop[i], memory_order_relaxed);
	if (to_switch_port(port)->uplink)
		switch_uplink_count(to_switch_port(port), out);
}
