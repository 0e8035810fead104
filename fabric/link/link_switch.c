/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_switch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fabric/link/frame_copy.h"
#include "fabric/link/frame_pool.h"
#include "fabric/link/handover.h"
#include "fabric/link/steer.h"
#include "fabric/wire/hdr.h"

#include <rte_ring.h>

#define MAX_WORKERS 64u /* one bit each in the set to wake */
#define MAX_DEVICES 1024u
#define BURST       32u
#define MCAST_QPN   0xffffffu /* a datagram for the members of its group */

struct switch_counters {
	_Atomic uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	_Atomic uint64_t drop[LINK_N_DROPS];
};

struct switch_port {
	struct link_port port;
	struct link_switch *sw;
	struct rte_ring *ring; /* frames for this port */
	unsigned worker;
	unsigned device;
	struct switch_counters count;
};

/*
 * Slots are used again but never freed while the switch lives: a worker that found a device may
 * still enqueue to it while the control thread deletes it.
 */
struct switch_device {
	_Atomic uint64_t key; /* MAC << 16 | MTU, read by all workers at once; 0: free */
	struct switch_port *ports;
};

struct link_switch {
	struct frame_pool *pool;
	unsigned n_workers, max_devices, pool_size, depth;
	void (*wake)(void *ctx, unsigned worker);
	void *wake_ctx;
	atomic_uint n_slots; /* devices beyond were never used */
	struct switch_device dev[];
};

/* Only the owner writes, so load and store need not be one step. */
static void count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static uint64_t mac_key(const uint8_t *mac)
{
	return (uint64_t)mac[0] << 56 | (uint64_t)mac[1] << 48 | (uint64_t)mac[2] << 40 |
	       (uint64_t)mac[3] << 32 | (uint64_t)mac[4] << 24 | (uint64_t)mac[5] << 16;
}

#define KEY_MAC(key) ((key) & ~(uint64_t)0xffff)
#define KEY_MTU(key) ((uint32_t)((key) & 0xffff))

static unsigned worker_of(const struct link_switch *sw, uint32_t qpn)
{
	return (qpn & 0xffffu) % sw->n_workers;
}

static bool is_group(const uint8_t *mac)
{
	return mac[0] & 1;
}

static struct switch_port *to_switch_port(const struct link_port *p)
{
	return (struct switch_port *)p;
}

static uint64_t device_key(const struct link_switch *sw, unsigned i)
{
	return atomic_load_explicit(&sw->dev[i].key, memory_order_acquire);
}

static unsigned n_slots(const struct link_switch *sw)
{
	return atomic_load_explicit(&sw->n_slots, memory_order_acquire);
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

static void drop(struct switch_port *sp, struct frame *f, enum link_drop why)
{
	count(&sp->count.drop[why], 1);
	port_free(&sp->port, &f, 1);
}

/* The queue that is nearest to its depth decides: nobody knows yet where the frames will go. */
static unsigned port_tx_room(struct link_port *p)
{
	const struct link_switch *sw = to_switch_port(p)->sw;
	unsigned room = sw->depth;

	for (unsigned i = 0; i < n_slots(sw); i++) {
		if (!device_key(sw, i))
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

/* Frames on their way to one port, so that a ring is touched once for a run of them. */
struct run {
	struct switch_port *from, *to;
	uint64_t wake; /* workers that got something */
	unsigned n;
	struct frame *f[BURST];
};

static void run_flush(struct run *r)
{
	unsigned sent;

	if (!r->n)
		return;
	handover_give(r->to->ring);
	sent = rte_ring_enqueue_burst(r->to->ring, (void *const *)r->f, r->n, NULL);
	for (unsigned i = sent; i < r->n; i++)
		drop(r->from, r->f[i], LINK_DROP_RING_FULL);
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
		count(&from->count.drop[LINK_DROP_TOO_LONG], 1);
	} else if (!port_alloc(&from->port, &copy, 1)) {
		count(&from->count.drop[LINK_DROP_NO_BUFFER], 1);
	} else if (!frame_copy(copy, f)) {
		drop(from, copy, LINK_DROP_TOO_LONG);
	} else {
		run_add(r, to, copy);
	}
}

/*
 * A copy to every other device; the frame itself is used up. A datagram to a group of QPs goes to
 * all workers, for each has QPs of its own, and to the sender's device too: an HCA loops it back.
 */
static void flood(struct run *r, struct frame *f, uint32_t qpn)
{
	const struct switch_port *from = r->from;
	struct link_switch *sw = from->sw;
	bool is_for_groups = qpn == MCAST_QPN;

	for (unsigned i = 0; i < n_slots(sw); i++) {
		uint64_t key = device_key(sw, i);

		if (!key || (i == from->device && !is_for_groups))
			continue;
		if (!is_for_groups)
			flood_to(r, f, &sw->dev[i].ports[worker_of(sw, qpn)], KEY_MTU(key));
		for (unsigned w = 0; is_for_groups && w < sw->n_workers; w++)
			flood_to(r, f, &sw->dev[i].ports[w], KEY_MTU(key));
	}
	port_free(&r->from->port, &f, 1);
}

static void forward(struct run *r, struct frame *f)
{
	struct switch_port *from = r->from;
	struct link_switch *sw = from->sw;
	uint32_t qpn = 0;
	uint64_t mac;
	unsigned worker;

	if (!steer_qpn(f, &qpn)) {
		drop(from, f, LINK_DROP_RUNT);
		return;
	}
	if (is_group(f->head)) {
		flood(r, f, qpn);
		return;
	}
	worker = worker_of(sw, qpn);
	mac = mac_key(f->head);
	for (unsigned i = 0; i < n_slots(sw); i++) {
		uint64_t key = device_key(sw, i);

		if (!key || KEY_MAC(key) != mac)
			continue;
		if (l3_len(f) > KEY_MTU(key))
			drop(from, f, LINK_DROP_TOO_LONG);
		else
			run_add(r, &sw->dev[i].ports[worker], f);
		return;
	}
	drop(from, f, LINK_DROP_UNKNOWN_MAC);
}

static void port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n)
{
	struct run r = { .from = to_switch_port(p) };
	struct link_switch *sw = r.from->sw;
	uint64_t bytes = 0;

	(void)now;
	for (unsigned i = 0; i < n; i++) {
		bytes += frame_len(f[i]);
		forward(&r, f[i]);
	}
	run_flush(&r);
	count(&r.from->count.tx_packets, n);
	count(&r.from->count.tx_bytes, bytes);
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
static unsigned port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	struct switch_port *sp = to_switch_port(p);
	unsigned got = rte_ring_dequeue_burst(sp->ring, (void **)f, n, NULL);
	unsigned kept = 0;
	uint64_t bytes = 0;

	(void)now;
	handover_take(sp->ring);
	for (unsigned i = 0; i < got; i++) {
		if (!is_group(f[i]->head) && memcmp(f[i]->head, p->mac, 6) != 0) {
			drop(sp, f[i], LINK_DROP_WRONG_MAC);
			continue;
		}
		bytes += frame_len(f[i]);
		f[kept++] = f[i];
	}
	if (kept) {
		count(&sp->count.rx_packets, kept);
		count(&sp->count.rx_bytes, bytes);
	}
	return kept;
}

static uint64_t port_deadline(const struct link_port *p)
{
	(void)p;
	return UINT64_MAX;
}

static int port_wait_fd(const struct link_port *p)
{
	(void)p;
	return -1; /* conf.wake tells */
}

static const struct link_ops switch_ops = {
	.alloc = port_alloc,
	.free = port_free,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.rx = port_rx,
	.deadline = port_deadline,
	.wait_fd = port_wait_fd,
	.counters = link_switch_counters,
};

static struct rte_ring *make_ring(const struct link_switch *sw)
{
	unsigned sync = sw->n_workers == 1 ? RING_F_SP_ENQ : RING_F_MP_RTS_ENQ;
	ssize_t size = rte_ring_get_memsize(rte_align32pow2(sw->pool_size + 1));
	struct rte_ring *ring;

	if (size < 0)
		return NULL;
	ring = aligned_alloc(RTE_CACHE_LINE_SIZE,
			     RTE_ALIGN_CEIL((size_t)size, RTE_CACHE_LINE_SIZE));
	if (ring && rte_ring_init(ring, "switch", sw->pool_size,
				  sync | RING_F_SC_DEQ | RING_F_EXACT_SZ) != 0) {
		free(ring);
		ring = NULL;
	}
	return ring;
}

static void free_ports(const struct link_switch *sw, struct switch_port *ports)
{
	for (unsigned w = 0; w < sw->n_workers; w++)
		free(ports[w].ring);
	free(ports);
}

static struct switch_port *make_ports(struct link_switch *sw, unsigned device)
{
	struct switch_port *ports = calloc(sw->n_workers, sizeof(*ports));

	if (!ports)
		return NULL;
	for (unsigned w = 0; w < sw->n_workers; w++) {
		ports[w].port.ops = &switch_ops;
		ports[w].sw = sw;
		ports[w].worker = w;
		ports[w].device = device;
		ports[w].ring = make_ring(sw);
		if (!ports[w].ring) {
			free_ports(sw, ports);
			return NULL;
		}
	}
	return ports;
}

/* By the control thread: the workers' caches are not its to use. */
static void drain(const struct link_switch *sw, const struct switch_port *port)
{
	struct frame *f[BURST];
	unsigned n;

	while ((n = rte_ring_dequeue_burst(port->ring, (void **)f, BURST, NULL)))
		frame_pool_put(sw->pool, FRAME_POOL_NO_WORKER, f, n);
}

struct link_switch *link_switch_create(const struct link_switch_conf *conf)
{
	struct link_switch *sw;

	if (!conf->n_workers || conf->n_workers > MAX_WORKERS || !conf->max_devices ||
	    conf->max_devices > MAX_DEVICES) {
		errno = EINVAL;
		return NULL;
	}
	sw = calloc(1, sizeof(*sw) + conf->max_devices * sizeof(sw->dev[0]));
	if (!sw)
		return NULL;
	sw->n_workers = conf->n_workers;
	sw->max_devices = conf->max_devices;
	sw->pool_size = conf->pool_size ? conf->pool_size : LINK_SWITCH_POOL;
	sw->depth = conf->depth ? conf->depth : LINK_SWITCH_DEPTH;
	sw->wake = conf->wake;
	sw->wake_ctx = conf->wake_ctx;
	sw->pool = frame_pool_create(sw->pool_size, sw->n_workers);
	if (!sw->pool) {
		free(sw);
		errno = ENOMEM;
		return NULL;
	}
	return sw;
}

void link_switch_destroy(struct link_switch *sw)
{
	if (!sw)
		return;
	for (unsigned i = 0; i < sw->max_devices; i++) {
		if (!sw->dev[i].ports)
			continue;
		for (unsigned w = 0; w < sw->n_workers; w++)
			drain(sw, &sw->dev[i].ports[w]);
		free_ports(sw, sw->dev[i].ports);
	}
	frame_pool_destroy(sw->pool);
	free(sw);
}

/* The slot of mac, or else the first free one; max_devices when there is neither. */
static unsigned find_slot(const struct link_switch *sw, const uint8_t mac[6], bool *taken)
{
	unsigned free_slot = sw->max_devices;

	*taken = false;
	for (unsigned i = 0; i < sw->max_devices; i++) {
		uint64_t key = device_key(sw, i);

		if (key && KEY_MAC(key) == mac_key(mac)) {
			*taken = true;
			return i;
		}
		if (!key && free_slot == sw->max_devices)
			free_slot = i;
	}
	return free_slot;
}

int link_switch_add_device(struct link_switch *sw, const uint8_t mac[6], uint16_t mtu,
			   struct link_port **ports)
{
	struct switch_device *dev;
	unsigned slot;
	bool taken;

	if (is_group(mac) || !mac_key(mac) || !mtu)
		return -EINVAL;
	slot = find_slot(sw, mac, &taken);
	if (taken)
		return -EEXIST;
	if (slot == sw->max_devices)
		return -ENOSPC;
	dev = &sw->dev[slot];
	if (!dev->ports && !(dev->ports = make_ports(sw, slot)))
		return -ENOMEM;
	for (unsigned w = 0; w < sw->n_workers; w++) {
		struct switch_port *sp = &dev->ports[w];

		drain(sw, sp);
		memset(&sp->count, 0, sizeof(sp->count));
		memcpy(sp->port.mac, mac, 6);
		sp->port.mtu = mtu;
		ports[w] = &sp->port;
	}
	atomic_store_explicit(&dev->key, mac_key(mac) | mtu, memory_order_release);
	if (slot >= n_slots(sw))
		atomic_store_explicit(&sw->n_slots, slot + 1, memory_order_release);
	return 0;
}

int link_switch_del_device(struct link_switch *sw, const uint8_t mac[6])
{
	bool taken;
	unsigned slot = find_slot(sw, mac, &taken);

	if (!taken)
		return -ENOENT;
	atomic_store(&sw->dev[slot].key, 0);
	for (unsigned w = 0; w < sw->n_workers; w++)
		drain(sw, &sw->dev[slot].ports[w]);
	return 0;
}

void link_switch_counters(const struct link_port *port, struct link_counters *out)
{
	const struct switch_counters *c = &to_switch_port(port)->count;

	out->tx_packets = atomic_load_explicit(&c->tx_packets, memory_order_relaxed);
	out->tx_bytes = atomic_load_explicit(&c->tx_bytes, memory_order_relaxed);
	out->rx_packets = atomic_load_explicit(&c->rx_packets, memory_order_relaxed);
	out->rx_bytes = atomic_load_explicit(&c->rx_bytes, memory_order_relaxed);
	for (unsigned i = 0; i < LINK_N_DROPS; i++)
		out->drop[i] = atomic_load_explicit(&c->drop[i], memory_order_relaxed);
}
