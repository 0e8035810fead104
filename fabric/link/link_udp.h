/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device on plain UDP sockets, port 4791: no privilege, any interface, the kernel routes. Bursts
 * to one destination leave as one UDP_SEGMENT datagram, and come as one through UDP_GRO.
 *
 * The kernel writes and reads the headers: so the source port is always 4791, VLAN and MAC
 * addresses of frames mean nothing (those of received frames are made up), the identification of
 * IPv4 is what docs/decisions/0010-icrc-behind-a-udp-socket.md says. TOS, traffic class and ECN
 * bits pass both ways. A group is one more address, that the kernel joins; what the device sends to
 * it comes back by the kernel's own loop.
 *
 * Threads: create and destroy belong to the control thread, the ops of a port to its worker.
 */
#pragma once

#include "fabric/link/frame_pool.h"
#include "fabric/link/link.h"

#define LINK_UDP_MAX_ADDRS 16u /* at first */
#define LINK_UDP_MAX_SOCKS 96u /* with those that come later, and groups */

struct link_udp;

struct link_udp_addr {
	uint8_t gid[16];
	uint32_t scope_id;  /* interface index of a link-local address, else 0 */
	uint32_t interface; /* where a group is joined, and what is sent to groups leaves */
	bool loops_groups;  /* what is sent to a group from here is for this host too */
};

struct link_udp_conf {
	unsigned n_workers;
	struct frame_pool *pool; /* may be shared with other links */
	unsigned pool_size;      /* frames in it */
	uint8_t mac[6];          /* of frames that are handed out */
	uint16_t mtu;
	const struct link_udp_addr *addr; /* local ones: a frame's source must be among them */
	unsigned n_addrs;
	void (*wake)(void *ctx, unsigned worker); /* as in link_switch.h */
	void *wake_ctx;
};

/*
 * ports[w] is the port for worker w, until destroy. 0 or a negative errno: -EADDRNOTAVAIL (not an
 * address of this host), -EADDRINUSE (somebody else has port 4791 there).
 */
int link_udp_create(struct link_udp **out, const struct link_udp_conf *conf,
		    struct link_port **ports);

/*
 * One more local address, or group: the control thread opens its sockets, each worker attaches its
 * port's, then the control thread ends it with link_udp_opened, which closes what nobody took.
 * Errors as of link_udp_create, -ENOSPC, -EEXIST.
 */
struct link_udp_socks;
int link_udp_open(struct link_udp *l, const struct link_udp_addr *a, struct link_udp_socks **out);
int link_udp_attach(struct link_port *port, struct link_udp_socks *s);
void link_udp_opened(struct link_udp_socks *s);

/* A worker: its port has that address, or group, no more. */
void link_udp_detach(struct link_port *port, const uint8_t gid[16]);

/* No worker may use the ports any more. */
void link_udp_destroy(struct link_udp *l);
