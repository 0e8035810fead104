/* SPDX-License-Identifier: BSD-3-Clause */
/* A device's network changes while it runs. */
#include <errno.h>
#include <string.h>

#include "dataplane/daemon/device_net.h"

int device_net_look(struct netdev *now, const struct config_device *c)
{
	uint8_t gid[GID_LEN];
	int err;

	if (*c->addr)
		err = gid_parse(c->addr, gid) ? -EINVAL : netdev_read_addr(now, gid);
	else
		err = netdev_read(now, c->interface);
	if (err != -ENODEV && err != -EADDRNOTAVAIL)
		return err;
	memset(now, 0, sizeof(*now));
	return 0;
}

bool device_net_take_mac(struct device_net *n, const struct netdev *now)
{
	static const uint8_t none[6];
	uint8_t gid[GID_LEN];

	if (n->link != LINK_PACKET || n->is_switched || !memcmp(now->mac, none, sizeof(none)) ||
	    !memcmp(now->mac, n->mac, sizeof(n->mac)))
		return false;
	memcpy(n->mac, now->mac, sizeof(n->mac));
	memcpy(n->gids.mac, now->mac, sizeof(n->gids.mac));
	gid_from_mac(gid, n->mac);
	gid_table_del(&n->gids, 0);
	n->kernel_gids &= ~1u;
	gid_table_add(&n->gids, gid);
	return true;
}

bool device_net_take(struct device_net *n, const struct netdev *now)
{
	struct netdev_diff diff;
	bool changed = false;
	char name[IF_NAMESIZE];

	netdev_compare(&diff, &n->dev, now);
	for (unsigned i = 0; i < diff.n_gone; i++) {
		int at = gid_table_find(&n->gids, diff.gone[i]);

		if (at < 0)
			continue;
		n->kernel_gids &= ~(1u << at);
		if (at > 0) {
			gid_table_del(&n->gids, (uint32_t)at);
			changed = true;
		}
	}
	for (unsigned i = 0; i < diff.n_new; i++) {
		int at = gid_table_find(&n->gids, diff.added[i]);

		if (at < 0) {
			at = gid_table_add(&n->gids, diff.added[i]);
			changed |= at >= 0;
		}
		if (at >= 0)
			n->kernel_gids |= 1u << at;
	}
	n->is_up = now->is_up;
	memcpy(name, n->dev.name, sizeof(name));
	n->dev = *now;
	memcpy(n->dev.name, name, sizeof(name)); /* it may come back */
	return changed;
}

bool device_net_take_mtu(struct device_net *n, const struct config_device *c,
			 const struct netdev *now)
{
	uint32_t mtu = c->mtu && c->mtu < now->mtu ? c->mtu : now->mtu;

	if (n->link_mtu && n->link_mtu < mtu)
		mtu = n->link_mtu;
	if (mtu == n->ip_mtu || !device_path_mtu(mtu))
		return false;
	n->ip_mtu = mtu;
	n->path_mtu = device_path_mtu(mtu);
	return true;
}
