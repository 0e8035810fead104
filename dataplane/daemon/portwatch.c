/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/portwatch.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/daemon/control.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/device_event.h"
#include "dataplane/daemon/links.h"
#include "dataplane/daemon/log.h"

struct portwatch {
	struct daemon *d;
	struct links *l;
	int fd;
	struct watch watch;
};

/* The messages only say that there is news; what it is, the kernel is asked. */
static void swallow(int fd)
{
	char buf[8192];
	ssize_t n;

	do
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	while (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)));
}

/* Sockets follow the addresses. An address that cannot be served does not get into the table. */
static void apply(struct portwatch *p, struct device *dev, struct netdev *now)
{
	struct netdev_diff diff;

	netdev_compare(&diff, &dev->net.dev, now);
	for (unsigned i = 0; i < diff.n_gone; i++)
		links_del_addr(p->l, dev->index, diff.gone[i]);
	for (unsigned i = 0; i < diff.n_new; i++)
		if (links_add_addr(p->l, dev->index, diff.added[i], now->index))
			netdev_drop_addr(now, diff.added[i]);
}

static void look(struct portwatch *p, struct device *dev)
{
	bool was_up = device_is_up(dev), is_new, has_mac = false, has_gids;
	struct netdev now;

	/* Out of descriptors, say: better what was than nothing. */
	if (device_net_look(&now, &dev->asked))
		return;
	is_new = now.index && now.index != dev->net.dev.index;
	if (is_new) {
		has_mac = device_net_take_mac(&dev->net, &now);
		memcpy(dev->mac, dev->net.mac, sizeof(dev->mac));
		links_move(p->l, dev->index, &now, dev->mac);
	}
	apply(p, dev, &now);
	if (is_new)
		device_rejoin_groups(dev);
	if (device_net_take_mtu(&dev->net, &dev->asked, &now)) {
		log_info("device %s: the path MTU is %u", dev->name, dev->net.path_mtu);
		links_set_mtu(p->l, dev->index, dev->net.ip_mtu);
	}
	has_gids = device_net_take(&dev->net, &now) || has_mac;
	dev->gids = dev->net.gids;
	if (device_is_up(dev) != was_up)
		device_event_port(dev);
	if (has_gids)
		device_event_gids(dev);
}

static void look_at_all(void *ctx)
{
	struct portwatch *p = ctx;

	swallow(p->fd);
	for (unsigned i = 0; i < p->d->n_devices; i++)
		if (*p->d->device[i]->net.dev.name)
			look(p, p->d->device[i]);
}

int portwatch_open(struct portwatch **out, struct daemon *d, struct links *l)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK,
				    .nl_groups =
					    RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	struct portwatch *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	*out = p;
	p->d = d;
	p->l = l;
	p->watch = (struct watch) { WATCH_NETLINK, p };
	d->look_at_net = look_at_all;
	d->look_at_net_ctx = p;
	p->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	if (!err)
		err = control_watch(d->control, p->fd, EPOLLIN, &p->watch);
	/* Some sandboxes have no netlink; then what the interfaces were at start has to do. */
	if (err) {
		log_info("changes of interfaces are not followed: %s", strerror(-err));
		return 0;
	}
	/* What happened since the devices were made. */
	look_at_all(p);
	return 0;
}

void portwatch_close(struct portwatch *p)
{
	if (!p)
		return;
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}
