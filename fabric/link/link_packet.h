/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device on an interface of the kernel, through packet sockets (CAP_NET_RAW): Ethernet frames as
 * the engine made them, also many packets of one flow as one super-frame, both ways. The kernel
 * goes on using the interface; the filter of the sockets takes nothing but UDP port 4791.
 *
 * What this device sends to itself does not leave the link: an interface brings nothing back.
 *
 * Threads: create and destroy belong to the control thread, the ops of a port to its worker.
 */
#pragma once

#include "fabric/addr/neigh_table.h"
#include "fabric/link/frame_pool.h"
#include "fabric/link/link.h"

struct link_packet;

struct link_packet_conf {
	unsigned n_workers;
	struct frame_pool *pool; /* may be shared with other links */
	unsigned pool_size;      /* frames in it */
	unsigned interface;      /* index */
	uint8_t mac[6];          /* the interface's */
	uint16_t mtu;
	uint16_t vlan;                  /* id of the tag that frames carry; 0: none */
	struct neigh_table *neigh;      /* where destinations are; outlives the link */
	const uint8_t (*addr)[GID_LEN]; /* the interface's: see packet_socket.h, packet_guards */
	unsigned n_addrs;
	void (*wake)(void *ctx, unsigned worker); /* as in link_switch.h */
	void *wake_ctx;
};

/* ports[w] is the port for worker w, until destroy. 0 or a negative errno: -EPERM (CAP_NET_RAW). */
int link_packet_create(struct link_packet **out, const struct link_packet_conf *conf,
		       struct link_port **ports);

/* The interface got an address, or lost one. Control thread. */
void link_packet_add_addr(struct link_packet *l, const uint8_t addr[GID_LEN]);
void link_packet_del_addr(struct link_packet *l, const uint8_t addr[GID_LEN]);

/*
 * The interface was removed, and one of its name made: goes on with that one, whose addresses are
 * told as before. Control thread. 0 or a negative errno.
 */
int link_packet_move(struct link_packet *l, unsigned interface);

/* No worker may use the ports any more. */
void link_packet_destroy(struct link_packet *l);
