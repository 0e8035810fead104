/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's port of a UDP link: one socket for each local address and group. Private to
 * fabric/link. */
#pragma once

#include <sys/socket.h>

#include "fabric/link/gso.h"
#include "fabric/link/link_udp.h"
#include "fabric/link/socket_port.h"
#include "fabric/link/udp_socket.h"

#define UDP_TX_MSGS  8u /* datagrams for one call */
#define UDP_RX_MSGS  8u
#define UDP_RX_BYTES 65536u /* of one datagram, coalesced or not */

/* Datagrams that were read and are being cut into frames. */
struct udp_rx {
	uint8_t *bytes; /* UDP_RX_MSGS times UDP_RX_BYTES */
	struct gso_super msg[UDP_RX_MSGS];
	unsigned n, cur; /* messages, and which is being cut */
	unsigned packet; /* its next packet */
	bool is_group;   /* all of it, and every worker got it */
};

struct udp_port {
	struct socket_port base;
	unsigned n_socks;
	struct udp_socket sock[LINK_UDP_MAX_SOCKS];
	int epoll_fd;      /* over all sockets */
	bool has_gso;      /* until the kernel says that this path cannot */
	unsigned n_single; /* frames at the head of the queue that must go one by one */
	struct gso_icrc icrc;
	struct udp_rx rx;
};

static inline struct udp_port *udp_port(const struct link_port *p)
{
	return (struct udp_port *)p;
}

unsigned udp_port_tx_room(struct link_port *p);
void udp_port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n);
void udp_port_flush(struct udp_port *u, uint64_t now); /* sends of the queue what it can */
unsigned udp_port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n);
