/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device_list.h"
#include "dataplane/daemon/event.h"
#include "dataplane/daemon/worker.h"
#include "dataplane/host/appmem.h"

static void set_identity(struct device *dev, const struct device_net *net)
{
	uint8_t gid[GID_LEN];

	dev->net = *net;
	memcpy(dev->name, net->name, sizeof(dev->name));
	memcpy(dev->mac, net->mac, sizeof(dev->mac));
	dev->gids = net->gids;
	gid_from_mac(gid, dev->mac);
	memcpy(dev->guid, gid + 8, sizeof(dev->guid));
}

/* Zeroed, and costs nothing before it is touched. */
static void *make_memory(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static int make_engine(struct device *dev, unsigned worker)
{
	struct engine_conf conf = dev->conf;
	void *arena = make_memory(dev->arena_size);

	if (!arena)
		return -ENOMEM;
	conf.worker = worker;
	conf.n_workers = dev->daemon->n_workers;
	conf.shared = dev->shared;
	conf.seed = dev->conf.seed + worker;
	dev->arena[worker] = arena;
	dev->engine[worker] = engine_create(&conf, &dev->ports, arena);
	return dev->engine[worker] ? 0 : -ENOMEM;
}

static int make_numbers(struct device *dev)
{
	/* QPN 0, 1 and 0xffffff are no QPs of ours; programs take key 0 for none. */
	int err = numbers_init(&dev->qpns, 2, DEVICE_MAX_QP - 3);

	if (!err)
		err = numbers_init(&dev->cqns, 1, DEVICE_MAX_CQ - 1);
	if (!err)
		err = numbers_init(&dev->keys, 1, DEVICE_MAX_MR - 1);
	if (!err)
		err = numbers_init(&dev->ahs, 1, DEVICE_MAX_AH - 1);
	if (!err)
		err = numbers_init(&dev->srqns, 1, DEVICE_MAX_SRQ - 1);
	return err;
}

int device_create(struct device **out, struct daemon *d, unsigned index,
		  const struct device_net *net, struct link_port *const *ports)
{
	struct device *dev = calloc(1, sizeof(*dev));
	int err;

	if (!dev)
		return -ENOMEM;
	dev->daemon = d;
	dev->index = index;
	dev->uverbs = device_list_take_node(d);
	set_identity(dev, net);
	dev->ports = (struct ports){ .ctx = d, .mem_read = appmem_read, .mem_write = appmem_write,
				     .mem_atomic = appmem_atomic, .cq_notify = event_completion,
				     .event = event_async };
	dev->conf = (struct engine_conf) { .max_qp = DEVICE_MAX_QP,
					   .max_cq = DEVICE_MAX_CQ,
					   .max_mr = DEVICE_MAX_MR,
					   .max_ah = DEVICE_MAX_AH,
					   .max_srq = DEVICE_MAX_SRQ,
					   .max_mcast = DEVICE_MAX_MCAST,
					   .check_icrc = d->conf.check_icrc,
					   .seed = d->boot_id + index * UROCE_MAX_WORKERS };
	dev->conf.ud_mtu = net->path_mtu;
	dev->conf.congestion = net->congestion;
	dev->arena_size = engine_size(&dev->conf);
	err = make_numbers(dev);
	dev->shared_size = engine_shared_size(&dev->conf);
	dev->shared = make_memory(dev->shared_size);
	if (!dev->shared)
		err = -ENOMEM;
	for (unsigned w = 0; !err && w < d->n_workers; w++) {
		dev->port[w] = ports[w];
		err = make_engine(dev, w);
	}
	if (err)
		device_destroy(dev);
	else
		*out = dev;
	return err;
}

void device_destroy(struct device *dev)
{
	for (unsigned w = 0; w < UROCE_MAX_WORKERS; w++)
		if (dev->arena[w])
			munmap(dev->arena[w], dev->arena_size);
	if (dev->shared)
		munmap(dev->shared, dev->shared_size);
	numbers_free(&dev->qpns);
	numbers_free(&dev->cqns);
	numbers_free(&dev->keys);
	numbers_free(&dev->ahs);
	numbers_free(&dev->srqns);
	free(dev);
}

void device_hold(struct device *dev)
{
	dev->n_sessions++;
}

void device_release(struct device *dev)
{
	if (!--dev->n_sessions && dev->is_gone)
		device_destroy(dev);
}

bool device_is_up(const struct device *dev)
{
	return dev->net.is_up && !dev->is_admin_down;
}

struct device *daemon_device(const struct daemon *d, const char *name)
{
	for (unsigned i = 0; i < d->n_devices; i++)
		if (!strcmp(d->device[i]->name, name))
			return d->device[i];
	return NULL;
}

struct engine_call {
	struct engine *engine;
	const struct cmd *cmd;
	unsigned n;
	struct cmd_reply *reply; /* of the last */
	int err;
};

static void run_commands(struct worker *w, uint64_t now, void *arg)
{
	struct engine_call *c = arg;

	(void)w;
	for (unsigned i = 0; i < c->n && !c->err; i++)
		c->err = engine_command(c->engine, now, &c->cmd[i], c->reply);
}

static int run_turn(struct device *dev, unsigned worker, const struct cmd *cmd, unsigned n,
		    struct cmd_reply *reply)
{
	struct cmd_reply unused;
	struct engine_call c = { dev->engine[worker], cmd, n, reply ? reply : &unused, 0 };

	memset(c.reply, 0, sizeof(*c.reply));
	worker_call(dev->daemon->worker[worker], run_commands, &c);
	return c.err;
}

int device_command(struct device *dev, unsigned worker, const struct cmd *cmd,
		   struct cmd_reply *reply)
{
	return run_turn(dev, worker, cmd, 1, reply);
}

int device_turn_all(struct device *dev, const struct cmd *cmd, unsigned n)
{
	int err = 0;

	for (unsigned w = 0; !err && w < dev->daemon->n_workers; w++)
		err = run_turn(dev, w, cmd, n, NULL);
	return err;
}

int device_command_all(struct device *dev, const struct cmd *cmd, struct cmd_reply *reply)
{
	uint32_t events_sent = 0;
	int err = 0;

	for (unsigned w = 0; w < dev->daemon->n_workers; w++) {
		struct cmd_reply r;
		int e = device_command(dev, w, cmd, &r);

		err = err ? err : e;
		events_sent += r.events_sent;
	}
	if (reply)
		reply->events_sent = events_sent;
	return err;
}
