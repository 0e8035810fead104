/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device on a DPDK ethdev, by its devargs: one receive and one transmit queue, both worker 0's;
 * other workers' frames go through it. Payload is copied between frames and the driver's mbufs: so
 * any driver will do, whatever it wants of its buffers.
 *
 * Addresses: where a kernel owns them it answers ARP and finds neighbours (conf.neigh). Where
 * nobody does, the link does both, and answers echo requests.
 *
 * Threads: create and destroy belong to the control thread, the ops of a port to its worker.
 */
#pragma once

#include "fabric/addr/neigh_table.h"
#include "fabric/link/frame_pool.h"
#include "fabric/link/link.h"

struct link_dpdk;

struct link_dpdk_conf {
	const char *devargs;
	unsigned n_workers;
	struct frame_pool *pool; /* may be shared with other links */
	unsigned pool_size;      /* frames in it */
	uint8_t mac[6];
	uint16_t mtu;
	uint16_t vlan;             /* id of the tag that frames carry; 0: none */
	struct neigh_table *neigh; /* the kernel's; NULL: the addresses are ours alone */
	unsigned interface;        /* the kernel's, its index; 0: there is none */
	const uint8_t (*addr)[GID_LEN];
	unsigned n_addrs;
	void (*wake)(void *ctx, unsigned worker); /* as in link_switch.h */
	void *wake_ctx;
};

/*
 * ports[w] is the port for worker w, until destroy. The EAL must run. 0 or a negative errno: that
 * of the driver, or -ENODEV where it made no port. The ports' mtu is never more than
 * link_dpdk_mtu.
 */
int link_dpdk_create(struct link_dpdk **out, const struct link_dpdk_conf *conf,
		     struct link_port **ports);

/* The largest IP packet that the driver's buffers hold: no port's mtu may become more. */
uint32_t link_dpdk_mtu(const struct link_dpdk *l);

/* Somebody will send to gid: asks where it is, if that is ours to find out. By worker 0. */
void link_dpdk_ask(struct link_dpdk *l, uint64_t now, const uint8_t gid[GID_LEN]);

/*
 * The interface got an address, or lost one. First by the control thread, for the kernel not to
 * answer packets to it; then by worker 0, for the host that we are where no kernel is.
 */
void link_dpdk_add_guard(struct link_dpdk *l, const uint8_t gid[GID_LEN]);
void link_dpdk_del_guard(struct link_dpdk *l, const uint8_t gid[GID_LEN]);
void link_dpdk_add_addr(struct link_dpdk *l, const uint8_t gid[GID_LEN]);
void link_dpdk_del_addr(struct link_dpdk *l, const uint8_t gid[GID_LEN]);

/* No worker may use the ports any more. */
void link_dpdk_destroy(struct link_dpdk *l);
