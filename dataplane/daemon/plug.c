/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/plug.h"

#include <errno.h>
#include <string.h>

#include "dataplane/daemon/control.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/device_event.h"
#include "dataplane/daemon/device_list.h"
#include "dataplane/daemon/links.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/metrics.h"
#include "dataplane/daemon/neighbours.h"
#include "dataplane/daemon/worker.h"

struct port_call {
	struct engine *engine;
	struct link_port *port;
	int err;
};

static void join(struct worker *w, uint64_t now, void *arg)
{
	struct port_call *c = arg;

	(void)now;
	c->err = worker_add_device(w, c->engine, c->port);
}

static void leave(struct worker *w, uint64_t now, void *arg)
{
	const struct port_call *c = arg;

	(void)now;
	worker_del_device(w, c->port);
	links_drain(c->port);
}

static void leave_workers(const struct daemon *d, struct link_port *const *ports)
{
	for (unsigned w = 0; w < d->n_workers; w++) {
		struct port_call c = { .port = ports[w] };

		worker_call(d->worker[w], leave, &c);
	}
}

static int join_workers(const struct daemon *d, const struct device *dev)
{
	int err = 0;

	for (unsigned w = 0; !err && w < d->n_workers; w++) {
		struct port_call c = { dev->engine[w], dev->port[w], 0 };

		worker_call(d->worker[w], join, &c);
		err = c.err;
	}
	return err;
}

/* "eth0" of "net_af_packet0,iface=eth0,..."; its length in *len, 0: another driver. */
static const char *packet_interface(const char *devargs, size_t *len)
{
	const char *iface =
		strncmp(devargs, "net_af_packet", 13) ? NULL : strstr(devargs, ",iface=");

	*len = iface ? strcspn(iface + 7, ",") : 0;
	return iface ? iface + 7 : NULL;
}

/* DPDK's af_packet drivers of one process on one interface share its packets out among them. */
static int check_shared(const struct daemon *d, const struct config_device *c)
{
	size_t len, n;
	const char *ours = packet_interface(c->devargs, &len), *other;

	for (unsigned i = 0; len && i < d->n_devices; i++) {
		other = packet_interface(d->device[i]->asked.devargs, &n);
		if (n != len || memcmp(ours, other, len) != 0)
			continue;
		log_error("device %s: %s has a net_af_packet driver on this interface already, and "
			  "each would get half of the packets",
			  c->name, d->device[i]->name);
		return -EBUSY;
	}
	return 0;
}

int plug_in(struct daemon *d, struct links *l, const struct config_device *c, struct device **out)
{
	unsigned index = device_list_free_index(d);
	struct link_port *ports[UROCE_MAX_WORKERS];
	struct device_net net;
	int err = check_shared(d, c);

	if (!err)
		err = device_net_make(&net, c, index);
	if (!err)
		err = links_add_device(l, index, &net, ports);
	if (err)
		return err;
	if (links_mtu(l, index))
		err = device_net_limit(&net, links_mtu(l, index));
	if (!err)
		err = device_create(out, d, index, &net, ports);
	if (err)
		goto close_link;
	(*out)->neighbours = links_neighbours(l, index);
	(*out)->ask = links_ask;
	(*out)->ask_ctx = l;
	(*out)->group = links_group;
	err = join_workers(d, *out);
	if (!err)
		err = device_watch_neighbours(*out);
	if (err)
		goto destroy;
	(*out)->asked = *c;
	device_list_add(d, *out);
	return 0;
destroy:
	leave_workers(d, ports);
	device_destroy(*out);
close_link:
	links_del_device(l, index);
	return err;
}

void plug_out(struct links *l, struct device *dev)
{
	struct daemon *d = dev->daemon;

	device_hold(dev);
	device_list_del(d, dev);
	device_event_removed(dev);
	leave_workers(d, dev->port);
	if (dev->neighbours)
		control_unwatch(d->control, neighbours_fd(dev->neighbours));
	dev->neighbours = NULL;
	dev->ask = NULL;
	dev->group = NULL;
	links_del_device(l, dev->index);
	metrics_forget(dev);
	device_release(dev);
}

int plug_set_up(struct links *l, struct device *dev, bool is_up)
{
	bool was_up = device_is_up(dev);
	int err = links_cut(l, dev->index, !is_up);

	if (err)
		return err;
	dev->is_admin_down = !is_up;
	if (device_is_up(dev) != was_up)
		device_event_port(dev);
	return 0;
}
