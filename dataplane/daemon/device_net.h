/* SPDX-License-Identifier: BSD-3-Clause */
/* Who a device is on its network: made from what the user said and what the kernel says. */
#pragma once

#include "dataplane/daemon/config_device.h"
#include "dataplane/daemon/netdev.h"
#include "fabric/addr/gid.h"

struct device_net {
	char name[UROCE_DEV_NAME_MAX];
	enum device_link link;
	uint8_t mac[6];
	struct gid_table gids;
	uint32_t kernel_gids; /* bit i: the kernel's interface has GID i as an address */
	uint32_t ip_mtu;      /* largest IP packet */
	uint32_t link_mtu;    /* the link carries none that is larger; 0: any */
	uint32_t path_mtu;    /* of RoCE, what fits into it: 256 to 4096 */
	bool congestion;      /* DCQCN */
	bool is_switched;     /* the link is the uplink of a port of the switch */
	bool is_up;
	uint16_t vlan;     /* id of the tag on its frames; 0: none */
	bool asks_kernel;  /* for its neighbours: packets to its addresses reach the kernel too */
	char devargs[256]; /* dpdk */
	struct netdev dev; /* index 0: none stands behind the device */
};

/* 0 or a negative errno, logged. index: the device's, for what nobody else decides. */
int device_net_make(struct device_net *n, const struct config_device *c, unsigned index);

/*
 * What the kernel says now of the interface behind a device that has one. Of an interface or an
 * address that is gone: down, and without addresses. 0, or a negative errno: it cannot be asked.
 */
int device_net_look(struct netdev *now, const struct config_device *c);

/*
 * The interface was made anew: with it a packet device gets another MAC, and GID 0 that is made of
 * it. On the switch it keeps its own, by which the others know it. True: the table changed.
 */
bool device_net_take_mac(struct device_net *n, const struct netdev *now);

/*
 * Takes that over: state and GIDs. Entries of the table that stay keep their index, and the first
 * stays always. True: the table changed.
 */
bool device_net_take(struct device_net *n, const struct netdev *now);

/* And the MTU; one that is too small for RoCE is left alone. True: it changed. */
bool device_net_take_mtu(struct device_net *n, const struct config_device *c,
			 const struct netdev *now);

/* The link carries no larger IP packets, whatever its interface becomes. 0 or -EMSGSIZE, logged. */
int device_net_limit(struct device_net *n, uint32_t link_mtu);

/* The path MTU of RoCE for IP packets of this size; 0: not even the smallest fits. */
uint32_t device_path_mtu(uint32_t ip_mtu);
