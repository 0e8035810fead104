/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The embedded switch: joins the devices of this daemon, with no kernel and no NIC between them.
 * A device has one MAC and one port for each worker; a frame goes to the device with its
 * destination MAC (loopback to the own MAC included), there to the worker that owns the QP its BTH
 * names (QPN index % n_workers; what is no RoCEv2 goes to worker 0). Frames with a group address
 * are copied to every other device; an unknown address is dropped and counted, since the switch
 * knows all addresses there are. Frames move by reference: their payload must lie in their own buf.
 * They are given out open, since nothing between two ports can damage one.
 *
 * A device may have an uplink: ports of a real link, with the same MAC, by which it reaches
 * whatever is not on the switch. Frames that leave by it are sealed first; what arrives by it is
 * the device's. A datagram to a group goes both ways, and one that comes back is dropped.
 *
 * Nothing is lost for want of room: a ring holds as many frames as the pool has, and tx_room keeps
 * queues short by telling senders to wait. Between tx_room and tx a worker must not send on another
 * port of the switch what tx_room allowed on this one, or queues grow (they still lose nothing).
 *
 * Threads: create, destroy, add and del belong to one control thread, counters to anyone, the ops
 * of a port to its worker. The EAL must be up. Workers need not be lcores.
 */
#pragma once

#include <stdint.h>

#include "fabric/link/link.h"
#include "fabric/link/link_counters.h"

#define LINK_SWITCH_POOL  2048u /* default pool_size: 9 MiB */
#define LINK_SWITCH_DEPTH 256u  /* default depth: stays in a core's cache */

struct link_switch;

struct link_switch_conf {
	unsigned n_workers;
	unsigned max_devices;
	unsigned pool_size; /* frames of the whole switch; 0: default */
	unsigned depth;     /* queue length at which senders to a port wait; 0: default */
	/*
	 * Called by a sending worker once per burst for each other worker that got frames, after a
	 * full fence: so it may look at a relaxed "sleeping" flag and wake only who sleeps, if the
	 * sleeper sets its flag, fences, and looks at its ports once more. NULL: nobody sleeps.
	 */
	void (*wake)(void *ctx, unsigned worker);
	void *wake_ctx;
};

struct frame_pool;

/* NULL with errno set: EINVAL, ENOMEM. */
struct link_switch *link_switch_create(const struct link_switch_conf *conf);

/* All devices must be gone, or no worker may run any more. */
void link_switch_destroy(struct link_switch *sw);

/*
 * Puts a device on the switch; ports[w] is its port for worker w, valid until the device is
 * deleted. mtu: largest IP packet it takes. 0, -EINVAL (group or zero address), -EEXIST (address
 * taken), -ENOSPC (max_devices), -ENOMEM.
 */
int link_switch_add_device(struct link_switch *sw, const uint8_t mac[6], uint16_t mtu,
			   struct link_port **ports);

/* What an uplink must take its frames from. */
struct frame_pool *link_switch_pool(const struct link_switch *sw);

/*
 * Gives a device that was just added, and whose ports no worker uses yet, its uplink: one port for
 * each worker. They are used with the device's ports and must outlive them; they are the caller's
 * to destroy, after link_switch_del_device. loops_groups: the uplink itself gives what its device
 * sends to a group back to that device.
 */
void link_switch_set_uplink(struct link_port *const *ports, struct link_port *const *uplink,
			    bool loops_groups);

/* The largest IP packet that other devices may send to this one. -ENOENT: no such device. */
int link_switch_set_mtu(struct link_switch *sw, const uint8_t mac[6], uint16_t mtu);

/*
 * Takes a device off the switch and frees what is queued for it. Its own workers must have stopped
 * using its ports; others may be sending to it. -ENOENT: no such device.
 */
int link_switch_del_device(struct link_switch *sw, const uint8_t mac[6]);

/* The counters of one port of a switch, since its device was added, with those of its uplink. */
void link_switch_counters(const struct link_port *port, struct link_counters *out);
