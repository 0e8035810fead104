/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's port of a DPDK link. Private to fabric/link. */
#pragma once

#include "fabric/addr/ether_host.h"
#include "fabric/link/ethdev.h"
#include "fabric/link/link_dpdk.h"
#include "fabric/link/next_hop.h"
#include "fabric/link/own_frames.h"
#include "fabric/link/packet_socket.h"
#include "fabric/link/socket_port.h"

#define DPDK_OUT   0u        /* where frames for worker 0 to send wait in link_dpdk.out */
#define DPDK_STUCK 10000000u /* ns without a packet sent until what waits is given up */

struct link_dpdk {
	struct ethdev eth;
	struct ether_host host; /* table NULL: a kernel is the host */
	uint16_t vlan;
	unsigned interface; /* the kernel's, whose addresses are guarded; 0: ours alone */
	struct packet_guards guards;
	struct handoff *handoff; /* received, to their workers */
	struct handoff *out;     /* to be sent, from other workers */
	unsigned n_workers;
	struct dpdk_port *port[];
};

/* mbufs that were received and found no frame yet. */
struct dpdk_in {
	struct rte_mbuf *m[ETHDEV_BURST];
	unsigned n, cur;
};

struct dpdk_port {
	struct socket_port base;
	struct link_dpdk *link;
	struct next_hop hop;
	struct own_frames own;
	struct dpdk_in in;
	uint64_t last_seen; /* when something came or went */
	uint64_t last_sent; /* or when what waits began to wait */
	uint64_t next_look; /* when the driver shall be asked again at the latest */
	uint64_t next_tick; /* of the host that we are */
	uint8_t flat[ETHDEV_BYTES];
};

static inline struct dpdk_port *dpdk_port(const struct link_port *p)
{
	return (struct dpdk_port *)p;
}

unsigned dpdk_port_tx_room(struct link_port *p);
void dpdk_port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n);
unsigned dpdk_port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n);

/* Sends what waits, for a neighbour or for room. By rx. */
void dpdk_port_flush(struct dpdk_port *u, uint64_t now);

/* A frame that the host that we are has to say; by worker 0. */
void dpdk_port_say(struct dpdk_port *u, const uint8_t *bytes, uint32_t len);

/* What the driver lost for want of room or buffers; any thread. */
uint64_t dpdk_overruns(const struct link_dpdk *l);
