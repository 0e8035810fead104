/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's port of a packet link. Private to fabric/link. */
#pragma once

#include "fabric/link/gso.h"
#include "fabric/link/link_packet.h"
#include "fabric/link/next_hop.h"
#include "fabric/link/own_frames.h"
#include "fabric/link/packet_socket.h"
#include "fabric/link/raw_frame.h"
#include "fabric/link/socket_port.h"

#define PACKET_TX_MSGS  8u /* frames and super-frames for one call */
#define PACKET_RX_MSGS  8u
#define PACKET_RX_BYTES (65536u + 64u) /* of an IP packet with Ethernet */

/* What was read and is being cut into frames. */
struct packet_rx {
	uint8_t *bytes; /* PACKET_RX_MSGS times PACKET_RX_BYTES */
	struct raw_frame in[PACKET_RX_MSGS];
	unsigned n, cur; /* messages, and which is being cut */
	unsigned packet; /* its next packet */
};

struct packet_port {
	struct socket_port base;
	int fd;
	bool has_gso;      /* until the kernel says that it cannot */
	unsigned n_single; /* frames at the head of the queue that must go one by one */
	struct gso_icrc icrc;
	struct next_hop hop;
	struct own_frames own;
	struct packet_rx rx;
	_Atomic uint64_t overruns; /* any thread adds */
};

static inline struct packet_port *packet_port(const struct link_port *p)
{
	return (struct packet_port *)p;
}

unsigned packet_port_tx_room(struct link_port *p);
void packet_port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n);
unsigned packet_port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n);

/* What rx does for tx: sends what waits. */
void packet_port_flush(struct packet_port *u, uint64_t now);
