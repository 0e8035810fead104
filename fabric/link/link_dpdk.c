/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_dpdk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>

#include "fabric/link/dpdk_port.h"
#include "fabric/wire/hdr.h"

static uint64_t port_deadline(const struct link_port *p)
{
	const struct dpdk_port *u = dpdk_port(p);
	uint64_t at = UINT64_MAX, hop = next_hop_deadline(&u->hop);

	if (u->own.n || u->in.cur < u->in.n)
		return 0;
	if (u->base.n_queue)
		at = u->base.retry_at;
	/* Nothing tells when a driver has packets: worker 0 looks, less and less often. */
	if (u->base.worker == 0 && u->next_look < at)
		at = u->next_look;
	return hop < at ? hop : at;
}

static int port_wait_fd(const struct link_port *p)
{
	(void)p;
	return -1;
}

static void port_counters(const struct link_port *p, struct link_counters *out)
{
	socket_port_counters(p, out);
	if (dpdk_port(p)->base.worker == 0)
		out->drop[LINK_DROP_OVERRUN] = dpdk_overruns(dpdk_port(p)->link);
}

static const struct link_ops dpdk_ops = {
	.alloc = socket_port_alloc,
	.free = socket_port_free,
	.tx_room = dpdk_port_tx_room,
	.tx = dpdk_port_tx,
	.rx = dpdk_port_rx,
	.deadline = port_deadline,
	.wait_fd = port_wait_fd,
	.counters = port_counters,
};

static void free_port(struct dpdk_port *u)
{
	frame_pool_put(u->base.pool, FRAME_POOL_NO_WORKER, u->hop.f, u->hop.n);
	own_frames_drain(&u->own, &u->base);
	socket_port_drain(&u->base);
	free(u);
}

static int make_port(struct link_dpdk *l, const struct link_dpdk_conf *conf, unsigned worker)
{
	struct dpdk_port *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->base = (struct socket_port) { .port = { .ops = &dpdk_ops, .mtu = conf->mtu },
					 .pool = conf->pool,
					 .handoff = l->handoff,
					 .worker = worker };
	memcpy(u->base.port.mac, conf->mac, 6);
	u->link = l;
	u->hop.table = l->host.table ? l->host.table : conf->neigh;
	l->port[l->n_workers++] = u;
	return 0;
}

static int make_host(struct link_dpdk *l, const struct link_dpdk_conf *conf)
{
	if (conf->neigh)
		return 0;
	l->host.table = calloc(1, sizeof(*l->host.table));
	if (!l->host.table)
		return -ENOMEM;
	memcpy(l->host.mac, conf->mac, 6);
	l->host.vlan = conf->vlan;
	for (unsigned i = 0; i < conf->n_addrs; i++)
		link_dpdk_add_addr(l, conf->addr[i]);
	return 0;
}

void link_dpdk_add_addr(struct link_dpdk *l, const uint8_t gid[GID_LEN])
{
	struct ether_host *h = &l->host;

	for (unsigned i = 0; i < h->n_addrs; i++)
		if (!memcmp(h->addr[i], gid, GID_LEN))
			return;
	if (h->table && h->n_addrs < ETHER_HOST_ADDRS)
		memcpy(h->addr[h->n_addrs++], gid, GID_LEN);
}

/* The first is made from the MAC, and stays. */
void link_dpdk_del_addr(struct link_dpdk *l, const uint8_t gid[GID_LEN])
{
	struct ether_host *h = &l->host;

	for (unsigned i = 1; i < h->n_addrs; i++) {
		if (memcmp(h->addr[i], gid, GID_LEN))
			continue;
		memmove(h->addr[i], h->addr[i + 1], (--h->n_addrs - i) * sizeof(h->addr[0]));
		return;
	}
}

/* As for a packet link: the kernel sees the packets too. */
void link_dpdk_add_guard(struct link_dpdk *l, const uint8_t gid[GID_LEN])
{
	if (l->interface)
		packet_guards_add(&l->guards, gid, l->interface);
}

void link_dpdk_del_guard(struct link_dpdk *l, const uint8_t gid[GID_LEN])
{
	packet_guards_del(&l->guards, gid);
}

uint32_t link_dpdk_mtu(const struct link_dpdk *l)
{
	uint32_t l2 = sizeof(struct eth_hdr) + (l->vlan ? sizeof(struct vlan_tag) : 0);

	return l->eth.longest > l2 ? l->eth.longest - l2 : 0;
}

static void limit_mtu(struct link_dpdk *l)
{
	uint32_t most = link_dpdk_mtu(l);

	for (unsigned w = 0; w < l->n_workers; w++)
		if (l->port[w]->base.port.mtu > most)
			l->port[w]->base.port.mtu = (uint16_t)most;
}

static int make_all(struct link_dpdk *l, const struct link_dpdk_conf *conf)
{
	int err = make_host(l, conf);

	l->vlan = conf->vlan;
	l->handoff = handoff_create(conf->n_workers, conf->pool_size, conf->wake, conf->wake_ctx);
	l->out = handoff_create(2, conf->pool_size, conf->wake, conf->wake_ctx);
	if (!l->handoff || !l->out)
		err = -ENOMEM;
	for (unsigned w = 0; !err && w < conf->n_workers; w++)
		err = make_port(l, conf, w);
	if (err)
		return err;
	l->interface = conf->neigh ? conf->interface : 0;
	for (unsigned i = 0; i < conf->n_addrs; i++)
		link_dpdk_add_guard(l, conf->addr[i]);
	err = ethdev_open(&l->eth, conf->devargs, conf->mtu, !conf->interface);
	if (!err)
		limit_mtu(l);
	return err;
}

int link_dpdk_create(struct link_dpdk **out, const struct link_dpdk_conf *conf,
		     struct link_port **ports)
{
	struct link_dpdk *l;
	int err;

	if (!conf->n_workers)
		return -EINVAL;
	l = calloc(1, sizeof(*l) + conf->n_workers * sizeof(l->port[0]));
	if (!l)
		return -ENOMEM;
	err = make_all(l, conf);
	if (err) {
		link_dpdk_destroy(l);
		return err;
	}
	for (unsigned w = 0; w < conf->n_workers; w++)
		ports[w] = &l->port[w]->base.port;
	*out = l;
	return 0;
}

void link_dpdk_ask(struct link_dpdk *l, uint64_t now, const uint8_t gid[GID_LEN])
{
	uint8_t question[ETHER_HOST_BYTES];
	uint32_t len;

	if (!l->host.table)
		return;
	len = ether_host_ask(&l->host, now, gid, question);
	if (len)
		dpdk_port_say(l->port[0], question, len);
}

void link_dpdk_destroy(struct link_dpdk *l)
{
	struct frame *f[ETHDEV_BURST];
	unsigned n;

	ethdev_close(&l->eth);
	while (l->n_workers && l->out && (n = handoff_take(l->out, DPDK_OUT, f, ETHDEV_BURST)))
		frame_pool_put(l->port[0]->base.pool, FRAME_POOL_NO_WORKER, f, n);
	for (unsigned w = 0; w < l->n_workers; w++)
		free_port(l->port[w]);
	packet_guards_close(&l->guards);
	handoff_destroy(l->handoff);
	handoff_destroy(l->out);
	free(l->host.table);
	free(l);
}
