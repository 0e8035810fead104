/* SPDX-License-Identifier: BSD-3-Clause */
/* What changes below a device while it runs: addresses, MTU, its interface. */
#include <string.h>

#include "dataplane/daemon/device_net.h"
#include "dataplane/daemon/links.h"
#include "dataplane/daemon/links_inner.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/neighbours.h"
#include "dataplane/daemon/worker.h"
#include "fabric/link/link_dpdk.h"
#include "fabric/link/link_packet.h"
#include "fabric/link/link_switch.h"
#include "fabric/link/link_udp.h"

struct addr_call {
	struct link_port *port;
	struct link_udp_socks *socks; /* to add, or NULL: to remove */
	const uint8_t *gid;
	int err;
};

static void change_addr(struct worker *w, uint64_t now, void *arg)
{
	struct addr_call *c = arg;

	(void)w;
	(void)now;
	if (c->socks)
		c->err = link_udp_attach(c->port, c->socks);
	else
		link_udp_detach(c->port, c->gid);
}

static int add_udp_addr(struct links *l, struct links_device *dev, const struct link_udp_addr *a)
{
	struct link_udp_socks *s;
	int err = link_udp_open(dev->udp, a, &s);

	if (err)
		return err;
	for (unsigned w = 0; w < l->d->n_workers; w++) {
		struct addr_call c = { dev->inner[w], s, NULL, 0 };

		worker_call(l->d->worker[w], change_addr, &c);
		err = err ? err : c.err;
	}
	link_udp_opened(s);
	return err;
}

struct host_call {
	struct link_dpdk *link;
	const uint8_t *gid;
	bool is_new;
};

static void change_host(struct worker *w, uint64_t now, void *arg)
{
	const struct host_call *c = arg;

	(void)w;
	(void)now;
	if (c->is_new)
		link_dpdk_add_addr(c->link, c->gid);
	else
		link_dpdk_del_addr(c->link, c->gid);
}

static void change_dpdk_addr(struct links *l, struct link_dpdk *link, const uint8_t *gid,
			     bool is_new)
{
	struct host_call c = { link, gid, is_new };

	if (is_new)
		link_dpdk_add_guard(link, gid);
	else
		link_dpdk_del_guard(link, gid);
	worker_call(l->d->worker[0], change_host, &c);
}

int links_add_addr(struct links *l, unsigned index, const uint8_t gid[GID_LEN], unsigned if_index)
{
	struct links_device *dev = &l->dev[index];
	struct link_udp_addr a = { .scope_id = gid_is_link_local(gid) ? if_index : 0,
				   .interface = if_index,
				   .loops_groups = !dev->is_switched };
	char text[GID_TEXT_LEN];
	int err;

	dev->interface = if_index;
	if (dev->kind == LINK_PACKET)
		link_packet_add_addr(dev->packet, gid);
	if (dev->kind == LINK_DPDK)
		change_dpdk_addr(l, dev->dpdk, gid, true);
	if (dev->kind != LINK_UDP)
		return 0;
	memcpy(a.gid, gid, GID_LEN);
	err = add_udp_addr(l, dev, &a);
	if (err)
		log_error("address %s cannot be served: %s", gid_format(gid, text), strerror(-err));
	return err;
}

static void del_udp_addr(struct links *l, struct links_device *dev, const uint8_t gid[GID_LEN])
{
	for (unsigned w = 0; w < l->d->n_workers; w++) {
		struct addr_call c = { dev->inner[w], NULL, gid, 0 };

		worker_call(l->d->worker[w], change_addr, &c);
	}
}

int links_group(void *ctx, unsigned index, const uint8_t gid[GID_LEN], bool joins)
{
	struct links *l = ctx;
	struct links_device *dev = &l->dev[index];
	struct link_udp_addr a = { .interface = dev->interface };
	int err;

	/* Others get all groups that come. */
	if (dev->kind != LINK_UDP)
		return 0;
	if (!joins) {
		del_udp_addr(l, dev, gid);
		return 0;
	}
	memcpy(a.gid, gid, GID_LEN);
	err = add_udp_addr(l, dev, &a);
	if (err)
		del_udp_addr(l, dev, gid);
	return err;
}

void links_del_addr(struct links *l, unsigned index, const uint8_t gid[GID_LEN])
{
	struct links_device *dev = &l->dev[index];

	if (dev->kind == LINK_PACKET)
		link_packet_del_addr(dev->packet, gid);
	if (dev->kind == LINK_DPDK)
		change_dpdk_addr(l, dev->dpdk, gid, false);
	if (dev->kind == LINK_UDP)
		del_udp_addr(l, dev, gid);
}

struct mac_call {
	struct link_port *inner, *outer;
	const uint8_t *mac;
};

static void change_mac(struct worker *w, uint64_t now, void *arg)
{
	const struct mac_call *c = arg;

	(void)w;
	(void)now;
	memcpy(c->inner->mac, c->mac, 6);
	memcpy(c->outer->mac, c->mac, 6);
}

void links_move(struct links *l, unsigned index, const struct netdev *now, const uint8_t mac[6])
{
	struct links_device *dev = &l->dev[index];
	int err;

	dev->interface = now->index;
	if (dev->kind != LINK_PACKET)
		return;
	memcpy(dev->mac, mac, sizeof(dev->mac));
	for (unsigned w = 0; w < l->d->n_workers; w++) {
		struct mac_call c = { dev->inner[w], dev->outer[w], mac };

		worker_call(l->d->worker[w], change_mac, &c);
	}
	err = link_packet_move(dev->packet, now->index);
	if (err)
		log_error("interface %s was made anew, and its packets cannot be had: %s",
			  now->name, strerror(-err));
	neighbours_move(dev->neighbours, now, mac);
}

struct mtu_call {
	struct link_port *inner, *joint, *outer;
	uint16_t mtu;
};

static void change_mtu(struct worker *w, uint64_t now, void *arg)
{
	const struct mtu_call *c = arg;

	(void)w;
	(void)now;
	c->inner->mtu = c->joint->mtu = c->outer->mtu = c->mtu;
}

void links_set_mtu(struct links *l, unsigned index, uint32_t ip_mtu)
{
	struct links_device *dev = &l->dev[index];

	for (unsigned w = 0; w < l->d->n_workers; w++) {
		struct mtu_call c = { dev->inner[w], links_port(dev)[w], dev->outer[w],
				      (uint16_t)ip_mtu };

		worker_call(l->d->worker[w], change_mtu, &c);
	}
	if (dev->is_switched)
		link_switch_set_mtu(l->sw, dev->mac, (uint16_t)ip_mtu);
}
