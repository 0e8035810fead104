/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of a network interface. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/addr/gid.h"

#define NETDEV_MAX_ADDRS (GID_TABLE_LEN - 1u)

struct netdev {
	char name[IF_NAMESIZE];
	unsigned index;
	uint8_t mac[6]; /* zero: an interface without (lo, tunnels) */
	uint32_t mtu;
	bool is_up; /* administratively, and with a carrier */
	unsigned n_addrs;
	uint8_t addr[NETDEV_MAX_ADDRS][GID_LEN]; /* IPv4 first, then IPv6, link-local ones last */
};

/* What has changed between two looks. */
struct netdev_diff {
	unsigned n_gone, n_new;
	uint8_t gone[NETDEV_MAX_ADDRS][GID_LEN];
	uint8_t added[NETDEV_MAX_ADDRS][GID_LEN];
};
void netdev_compare(struct netdev_diff *diff, const struct netdev *before,
		    const struct netdev *now);

/* As if it did not have this address. */
void netdev_drop_addr(struct netdev *n, const uint8_t gid[GID_LEN]);

/* 0; -ENODEV: no such interface; or another negative errno. */
int netdev_read(struct netdev *n, const char *name);

/*
 * The interface of a local address, and of all that it has only this address. -EADDRNOTAVAIL: this
 * host does not have it.
 */
int netdev_read_addr(struct netdev *n, const uint8_t gid[GID_LEN]);
