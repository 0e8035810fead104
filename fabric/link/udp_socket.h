/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets on UDP port 4791 for one local address or group. Private to fabric/link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "fabric/link/link_udp.h"

struct udp_socket {
	int fd;
	uint8_t addr[16];  /* as a GID: IPv4 is ::ffff:a.b.c.d */
	uint32_t scope_id; /* interface of a link-local address, else 0 */
	bool is_ipv4;
	bool is_group;
};

/*
 * Makes one socket for each worker on addr, sharing the port; a datagram goes to the worker of the
 * QP its BTH names, one to a group to each. 0 or a negative errno (-EADDRINUSE: another daemon or
 * kernel device has it).
 */
int udp_socket_open(struct udp_socket *s, unsigned n_workers, const struct link_udp_addr *a);

/* What to give sendmsg for that destination; its length. */
socklen_t udp_socket_peer(const struct udp_socket *s, const uint8_t *ip_dst,
			  struct sockaddr_storage *to);
