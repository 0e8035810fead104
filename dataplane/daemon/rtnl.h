/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel's routing knows of an address: questions over rtnetlink, answered at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/addr/gid.h"

struct mnl_socket;
struct nlmsghdr;

/* Where a packet goes first. */
struct rtnl_route {
	uint8_t next_hop[GID_LEN];
	bool is_local; /* the address is this host's own */
};

struct rtnl_neigh {
	unsigned interface;
	uint8_t addr[GID_LEN];
	bool has_mac;  /* and it may be used */
	bool is_fresh; /* the kernel heard of it lately, or need not */
	bool is_gone;  /* it does not answer */
	uint8_t mac[6];
};

/* A socket to ask with, or one that hears of every change of neighbours; NULL: errno. */
struct mnl_socket *rtnl_open(bool listens);

/* 0; -ENETUNREACH or another negative errno of the kernel's. */
int rtnl_get_route(struct mnl_socket *s, unsigned interface, const uint8_t dst[GID_LEN],
		   struct rtnl_route *out);

/* 0; -ENOENT: the kernel never asked for that address. */
int rtnl_get_neigh(struct mnl_socket *s, unsigned interface, const uint8_t addr[GID_LEN],
		   struct rtnl_neigh *out);

/* Reads a message about a neighbour; false: it is none. */
bool rtnl_read_neigh(const struct nlmsghdr *h, struct rtnl_neigh *out);
