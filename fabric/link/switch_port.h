/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the switch: its devices and their ports. Private to fabric/link. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/link/link_switch.h"

struct rte_ring;

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
	struct link_port *uplink; /* NULL: none */
	bool uplink_loops_groups;
	bool is_uplink_next; /* who is asked for frames first: in turns, so that none starves */
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

static inline uint64_t switch_mac_key(const uint8_t *mac)
{
	return (uint64_t)mac[0] << 56 | (uint64_t)mac[1] << 48 | (uint64_t)mac[2] << 40 |
	       (uint64_t)mac[3] << 32 | (uint64_t)mac[4] << 24 | (uint64_t)mac[5] << 16;
}

#define KEY_MAC(key) ((key) & ~(uint64_t)0xffff)
#define KEY_MTU(key) ((uint32_t)((key)&0xffff))

static inline bool switch_is_group(const uint8_t *mac)
{
	return mac[0] & 1;
}

static inline struct switch_port *to_switch_port(const struct link_port *p)
{
	return (struct switch_port *)p;
}

static inline uint64_t switch_device_key(const struct link_switch *sw, unsigned i)
{
	return atomic_load_explicit(&sw->dev[i].key, memory_order_acquire);
}

static inline unsigned switch_slots(const struct link_switch *sw)
{
	return atomic_load_explicit(&sw->n_slots, memory_order_acquire);
}

/* Only the owner writes, so load and store need not be one step. */
static inline void switch_count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* The device with that MAC; max_devices: none. */
static inline unsigned switch_find(const struct link_switch *sw, const uint8_t *mac)
{
	uint64_t want = switch_mac_key(mac);

	for (unsigned i = 0; i < switch_slots(sw); i++) {
		uint64_t key = switch_device_key(sw, i);

		if (key && KEY_MAC(key) == want)
			return i;
	}
	return sw->max_devices;
}

/* Loses a frame and says why. */
void switch_drop(struct switch_port *sp, struct frame *f, enum link_drop why);

/* Sends up to SWITCH_OUT frames by the uplink of a port that has one. */
#define SWITCH_OUT 64u
void switch_uplink_tx(struct switch_port *sp, uint64_t now, struct frame *const *f, unsigned n);

/* What the uplink brought. */
unsigned switch_uplink_rx(struct switch_port *sp, uint64_t now, struct frame **f, unsigned n);

/* Adds what the uplink counted. */
void switch_uplink_count(const struct switch_port *sp, struct link_counters *out);

extern const struct link_ops switch_ops;
