/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/links_inner.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/neighbours.h"
#include "dataplane/daemon/sandbox.h"
#include "dataplane/daemon/worker.h"
#include "fabric/link/link_dpdk.h"
#include "fabric/link/link_fault.h"
#include "fabric/link/link_packet.h"
#include "fabric/link/link_switch.h"
#include "fabric/link/link_udp.h"

#define POOL_FRAMES 2048u

static void wake_worker(void *ctx, unsigned id)
{
	const struct daemon *d = ctx;

	worker_wake(d->worker[id]);
}

int links_create(struct links **out, struct daemon *d)
{
	struct link_switch_conf conf = { .n_workers = d->n_workers,
					 .max_devices = CONFIG_MAX_DEVICES,
					 .wake = wake_worker,
					 .wake_ctx = d };
	struct links *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->d = d;
	l->sw = link_switch_create(&conf);
	if (!l->sw) {
		free(l);
		return -errno;
	}
	*out = l;
	return 0;
}

static void forget_neighbours(struct links_device *dev)
{
	if (dev->neighbours)
		neighbours_destroy(dev->neighbours);
	dev->neighbours = NULL;
}

static void close_link(struct links *l, struct links_device *dev)
{
	if (dev->is_switched)
		link_switch_del_device(l->sw, dev->mac);
	switch (dev->kind) {
	case LINK_SWITCH:
		link_switch_del_device(l->sw, dev->mac);
		break;
	case LINK_UDP:
		link_udp_destroy(dev->udp);
		break;
	case LINK_PACKET:
		link_packet_destroy(dev->packet);
		break;
	case LINK_DPDK:
		link_dpdk_destroy(dev->dpdk);
		break;
	case N_DEVICE_LINKS:
		break;
	}
	forget_neighbours(dev);
}

void links_drain(struct link_port *port)
{
	link_fault_drain(port);
}

struct daemon *links_daemon(const struct links *l)
{
	return l->d;
}

uint32_t links_mtu(const struct links *l, unsigned index)
{
	return l->dev[index].kind == LINK_DPDK ? link_dpdk_mtu(l->dev[index].dpdk) : 0;
}

void links_del_device(struct links *l, unsigned index)
{
	struct links_device *dev = &l->dev[index];

	if (!dev->is_used)
		return;
	link_fault_destroy(dev->fault);
	close_link(l, dev);
	memset(dev, 0, sizeof(*dev));
}

int links_cut(struct links *l, unsigned index, bool is_cut)
{
	return link_fault_cut(l->dev[index].fault, is_cut);
}

void links_destroy(struct links *l)
{
	for (unsigned i = 0; i < CONFIG_MAX_DEVICES; i++) {
		for (unsigned w = 0; l->dev[i].is_used && w < l->d->n_workers; w++)
			links_drain(l->dev[i].outer[w]);
		links_del_device(l, i);
	}
	link_switch_destroy(l->sw);
	if (l->pool)
		frame_pool_destroy(l->pool);
	free(l);
}

/* NULL: no memory. An uplink has the switch's, for frames go from one to the other. */
static struct frame_pool *pool_for(struct links *l, const struct device_net *net)
{
	if (net->is_switched)
		return link_switch_pool(l->sw);
	if (!l->pool)
		l->pool = frame_pool_create(POOL_FRAMES, l->d->n_workers);
	return l->pool;
}

static int open_udp(struct links *l, struct links_device *dev, const struct device_net *net)
{
	struct link_udp_addr addr[NETDEV_MAX_ADDRS] = { 0 };
	struct link_udp_conf conf = { .n_workers = l->d->n_workers,
				      .pool = pool_for(l, net),
				      .pool_size = POOL_FRAMES,
				      .mtu = (uint16_t)net->ip_mtu,
				      .addr = addr,
				      .n_addrs = net->dev.n_addrs,
				      .wake = wake_worker,
				      .wake_ctx = l->d };

	if (!conf.pool)
		return -ENOMEM;
	memcpy(conf.mac, net->mac, sizeof(conf.mac));
	for (unsigned i = 0; i < net->dev.n_addrs; i++) {
		memcpy(addr[i].gid, net->dev.addr[i], GID_LEN);
		addr[i].scope_id = gid_is_link_local(addr[i].gid) ? net->dev.index : 0;
		addr[i].interface = net->dev.index;
		addr[i].loops_groups = !net->is_switched;
	}
	return link_udp_create(&dev->udp, &conf, dev->inner);
}

static void wake_all(void *ctx)
{
	const struct daemon *d = ctx;

	for (unsigned w = 0; w < d->n_workers; w++)
		worker_wake(d->worker[w]);
}

static int open_packet(struct links *l, struct links_device *dev, const struct device_net *net)
{
	struct link_packet_conf conf = { .n_workers = l->d->n_workers,
					 .pool = pool_for(l, net),
					 .pool_size = POOL_FRAMES,
					 .interface = net->dev.index,
					 .mtu = (uint16_t)net->ip_mtu,
					 .addr = net->dev.addr,
					 .n_addrs = net->dev.n_addrs,
					 .wake = wake_worker,
					 .wake_ctx = l->d };

	memcpy(conf.mac, net->mac, sizeof(conf.mac));
	conf.neigh = neighbours_table(dev->neighbours);
	return link_packet_create(&dev->packet, &conf, dev->inner);
}

static int open_dpdk(struct links *l, struct links_device *dev, const struct device_net *net)
{
	uint8_t addr[GID_TABLE_LEN][GID_LEN];
	struct link_dpdk_conf conf = { .devargs = net->devargs,
				       .n_workers = l->d->n_workers,
				       .pool = pool_for(l, net),
				       .pool_size = POOL_FRAMES,
				       .interface = net->dev.index,
				       .mtu = (uint16_t)net->ip_mtu,
				       .vlan = net->vlan,
				       .addr = addr,
				       .wake = wake_worker,
				       .wake_ctx = l->d };

	memcpy(conf.mac, net->mac, sizeof(conf.mac));
	if (dev->neighbours)
		conf.neigh = neighbours_table(dev->neighbours);
	for (uint32_t i = 0; i < GID_TABLE_LEN; i++) {
		const uint8_t *gid = gid_table_get(&net->gids, i);

		if (gid)
			memcpy(addr[conf.n_addrs++], gid, GID_LEN);
	}
	return link_dpdk_create(&dev->dpdk, &conf, dev->inner);
}

static bool needs_bpf(const struct device_net *net)
{
	return net->link == LINK_DPDK && !strncmp(net->devargs, "net_af_xdp", 10);
}

/* Of the links that may need to be told of neighbours. */
static int open_wire(struct links *l, struct links_device *dev, const struct device_net *net)
{
	int err = pool_for(l, net) ? 0 : -ENOMEM;

	if (!err && needs_bpf(net) && sandbox_is_entered())
		err = -EPERM;
	if (!err && net->asks_kernel)
		err = neighbours_create(&dev->neighbours, &net->dev, wake_all, l->d);
	if (err)
		return err;
	err = net->link == LINK_PACKET ? open_packet(l, dev, net) : open_dpdk(l, dev, net);
	if (err)
		forget_neighbours(dev);
	return err;
}

static int open_link(struct links *l, struct links_device *dev, const struct device_net *net)
{
	dev->kind = net->link;
	dev->interface = net->dev.index;
	memcpy(dev->mac, net->mac, sizeof(dev->mac));
	switch (net->link) {
	case LINK_SWITCH:
		return link_switch_add_device(l->sw, net->mac, (uint16_t)net->ip_mtu, dev->inner);
	case LINK_UDP:
		return open_udp(l, dev, net);
	case LINK_PACKET:
	case LINK_DPDK:
		return open_wire(l, dev, net);
	case N_DEVICE_LINKS:
		break;
	}
	return -EOPNOTSUPP;
}

/* Puts the device on the switch, with the link that is open as its uplink. */
static int join_switch(struct links *l, struct links_device *dev, const struct device_net *net)
{
	int err;

	if (!net->is_switched)
		return 0;
	err = link_switch_add_device(l->sw, net->mac, (uint16_t)net->ip_mtu, dev->joint);
	if (err)
		return err;
	link_switch_set_uplink(dev->joint, dev->inner, net->link != LINK_UDP);
	dev->is_switched = true;
	return 0;
}

static const char *why(const struct device_net *net, int err, char *text, size_t size)
{
	if (err == -EADDRINUSE)
		return "UDP port 4791 is taken on this address";
	if (err == -EPERM && net->link == LINK_PACKET)
		return "packet sockets need CAP_NET_RAW; a udp link needs no capability";
	if (err == -EEXIST && net->is_switched)
		return "another device on the switch has its MAC; give each an interface (a "
		       "macvlan, say) or an addr of its own";
	if (err == -EPERM && needs_bpf(net))
		return "its BPF program cannot be loaded any more; name the device when the daemon "
		       "starts, by --device or in its configuration file";
	if (net->link == LINK_DPDK)
		snprintf(text, size, "%s: %s; its driver's own words are above", net->devargs,
			 strerror(-err));
	else
		snprintf(text, size, "%s", strerror(-err));
	return text;
}

int links_add_device(struct links *l, unsigned index, const struct device_net *net,
		     struct link_port **ports)
{
	struct links_device *dev = &l->dev[index];
	int err = open_link(l, dev, net);
	char text[384];

	if (!err && (err = join_switch(l, dev, net)))
		close_link(l, dev);
	if (err) {
		memset(dev, 0, sizeof(*dev));
		log_error("device %s: the %s link does not open: %s", net->name,
			  device_link_name[net->link], why(net, err, text, sizeof(text)));
		return err;
	}
	dev->fault = link_fault_create(links_port(dev), l->d->n_workers, dev->outer);
	if (!dev->fault) {
		close_link(l, dev);
		memset(dev, 0, sizeof(*dev));
		return -ENOMEM;
	}
	memcpy(ports, dev->outer, l->d->n_workers * sizeof(*ports));
	dev->is_used = true;
	return 0;
}

struct neighbours *links_neighbours(const struct links *l, unsigned index)
{
	return l->dev[index].neighbours;
}

struct question {
	struct link_dpdk *link;
	const uint8_t *gid;
};

static void ask(struct worker *w, uint64_t now, void *arg)
{
	const struct question *q = arg;

	(void)w;
	link_dpdk_ask(q->link, now, q->gid);
}

void links_ask(void *ctx, unsigned index, const uint8_t gid[GID_LEN])
{
	const struct links *l = ctx;
	struct question q = { l->dev[index].dpdk, gid };

	if (q.link)
		worker_call(l->d->worker[0], ask, &q);
}

void links_count(const struct links *l, unsigned index, struct metrics_port *out)
{
	struct link_port *const *port = links_port(&l->dev[index]);

	for (unsigned w = 0; w < l->d->n_workers; w++) {
		struct link_counters c;

		port[w]->ops->counters(port[w], &c);
		out->tx_packets += c.tx_packets;
		out->tx_bytes += c.tx_bytes;
		out->rx_packets += c.rx_packets;
		out->rx_bytes += c.rx_bytes;
		for (unsigned i = 0; i < LINK_N_DROPS; i++)
			out->drops += c.drop[i];
	}
}
