/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/link/frame_pool.h"
#include "fabric/link/switch_port.h"

#include <rte_ring.h>

#define MAX_WORKERS 64u /* one bit each in the set to wake */
#define MAX_DEVICES 1024u
#define BURST       32u

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
		uint64_t key = switch_device_key(sw, i);

		if (key && KEY_MAC(key) == switch_mac_key(mac)) {
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

	if (switch_is_group(mac) || !switch_mac_key(mac) || !mtu)
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
		sp->uplink = NULL;
		memcpy(sp->port.mac, mac, 6);
		sp->port.mtu = mtu;
		ports[w] = &sp->port;
	}
	atomic_store_explicit(&dev->key, switch_mac_key(mac) | mtu, memory_order_release);
	if (slot >= switch_slots(sw))
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
