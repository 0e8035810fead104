/* SPDX-License-Identifier: BSD-3-Clause */
/* How a device reaches an address. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/neighbours.h"
#include "fabric/addr/ah.h"
#include "fabric/addr/neigh_table.h"

static bool is_on_switch(const struct device *dev)
{
	return dev->net.link == LINK_SWITCH || dev->net.is_switched;
}

/* The embedded switch knows all its devices, so nobody has to ask for a MAC. */
static bool find_on_switch(void *ctx, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	const struct daemon *d = ((const struct device *)ctx)->daemon;

	for (unsigned i = 0; i < d->n_devices; i++) {
		const struct device *dev = d->device[i];

		if (!is_on_switch(dev) || gid_table_find(&dev->gids, gid) < 0)
			continue;
		memcpy(mac, dev->mac, 6);
		return true;
	}
	return false;
}

/* The kernel routes, and sees no MAC of ours: locally administered, from the address. */
static bool invent(void *ctx, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	(void)ctx;
	mac[0] = 0x02;
	mac[1] = 0;
	memcpy(mac + 2, gid + 12, 4);
	return true;
}

static int resolve_on_switch(const struct device *dev, const struct ah_attr *attr,
			     struct net_path *path)
{
	uint8_t mac[6];
	int err = ah_resolve(path, attr, &dev->gids, find_on_switch, (void *)dev);

	if (err)
		return err == -EHOSTUNREACH ? -ENETUNREACH : err;
	/* A link-local GID tells its MAC, but nobody here may have it. */
	if (!gid_is_multicast(attr->dgid) && !find_on_switch((void *)dev, attr->dgid, mac))
		return -ENETUNREACH;
	return 0;
}

static int resolve_by_udp(const struct device *dev, const struct ah_attr *attr,
			  struct net_path *path)
{
	int err = ah_resolve(path, attr, &dev->gids, invent, NULL);

	/* A socket sends from addresses of the kernel only. */
	if (!err && !(dev->net.kernel_gids >> attr->sgid_index & 1))
		err = -ENETUNREACH;
	return err;
}

/*
 * The link writes the destination's MAC when a frame leaves; until it is known there is none. A
 * link-local GID that tells its MAC is taken by its word, as Linux does: the peer's kernel may not
 * have that address.
 */
static bool leave_to_link(void *ctx, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	(void)ctx;
	if (!gid_mac(gid, mac))
		memset(mac, 0, 6);
	return true;
}

static int resolve_by_link(const struct device *dev, const struct ah_attr *attr,
			   struct net_path *path)
{
	uint8_t mac[6];
	int err = ah_resolve(path, attr, &dev->gids, leave_to_link, NULL);

	if (!err && dev->net.vlan)
		path->vlan = dev->net.vlan;
	if (err || gid_is_multicast(attr->dgid) || gid_mac(attr->dgid, mac))
		return err;
	if (gid_table_find(&dev->gids, attr->dgid) >= 0) {
		memcpy(path->dmac, dev->mac, sizeof(path->dmac));
		return 0;
	}
	if (dev->ask)
		dev->ask(dev->ask_ctx, dev->index, attr->dgid);
	if (!dev->neighbours)
		return 0;
	err = neighbours_want(dev->neighbours, attr->dgid);
	if (err)
		return -ENETUNREACH;
	neigh_lookup(neighbours_table(dev->neighbours), attr->dgid, path->dmac);
	return 0;
}

int device_watch_neighbours(struct device *dev)
{
	if (!dev->neighbours)
		return 0;
	dev->neighbours_watch = (struct watch) { WATCH_NEIGHBOURS, dev->neighbours };
	return control_watch(dev->daemon->control, neighbours_fd(dev->neighbours), EPOLLIN,
			     &dev->neighbours_watch);
}

static int resolve_by_wire(const struct device *dev, const struct ah_attr *attr,
			   struct net_path *path)
{
	switch (dev->net.link) {
	case LINK_UDP:
		return resolve_by_udp(dev, attr, path);
	case LINK_PACKET:
	case LINK_DPDK:
		return resolve_by_link(dev, attr, path);
	case LINK_SWITCH:
	case N_DEVICE_LINKS:
		break;
	}
	return -EOPNOTSUPP;
}

/* By the switch to its own, by the uplink to all others. */
static int resolve(const struct device *dev, const struct ah_attr *attr, struct net_path *path)
{
	uint8_t mac[6];

	if (dev->net.link == LINK_SWITCH ||
	    (dev->net.is_switched && find_on_switch((void *)dev, attr->dgid, mac)))
		return resolve_on_switch(dev, attr, path);
	return resolve_by_wire(dev, attr, path);
}

int device_resolve(const struct device *dev, const struct uroce_ah_attr *ah, uint32_t local_qpn,
		   uint32_t remote_qpn, struct net_path *path)
{
	struct ah_attr attr = { .flow_label = ah->flow_label,
				.sgid_index = ah->sgid_index,
				.tclass = ah->traffic_class,
				.hop_limit = ah->hop_limit };
	int err;

	/* RoCE has no addresses but GIDs. */
	if (!ah->is_global || ah->port_num != 1)
		return -EINVAL;
	memcpy(attr.dgid, ah->dgid, sizeof(attr.dgid));
	err = resolve(dev, &attr, path);
	if (err)
		return err;
	path->udp_sport = dev->net.link == LINK_UDP
				  ? ROCE_UDP_PORT
				  : roce_udp_sport(path->flow_label, local_qpn, remote_qpn);
	return 0;
}
