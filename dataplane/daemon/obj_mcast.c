/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: which QPs take part. The engine that has a QP delivers to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/objects.h"

/* A group that some QP of a device is attached to. */
struct device_group {
	uint8_t mgid[16];
	unsigned n_qps;
	struct device_group *next;
};

static struct device_group **find_of_device(struct device *dev, const uint8_t mgid[16])
{
	struct device_group **g = &dev->groups;

	while (*g && memcmp((*g)->mgid, mgid, sizeof((*g)->mgid)))
		g = &(*g)->next;
	return g;
}

static unsigned count_of_device(const struct device *dev)
{
	unsigned n = 0;

	for (const struct device_group *g = dev->groups; g; g = g->next)
		n++;
	return n;
}

/*
 * The first QP of a group takes the device into it, the last one out. No more groups than programs
 * are told: over udp each has sockets, which other programs and addresses need as well.
 */
static int join(struct device *dev, const uint8_t mgid[16])
{
	struct device_group *g = *find_of_device(dev, mgid);
	int err;

	if (g) {
		g->n_qps++;
		return 0;
	}
	if (count_of_device(dev) >= DEVICE_MAX_MCAST_GROUP)
		return -ENOMEM;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	err = dev->group ? dev->group(dev->ask_ctx, dev->index, mgid, true) : 0;
	if (err) {
		free(g);
		return err;
	}
	memcpy(g->mgid, mgid, sizeof(g->mgid));
	g->n_qps = 1;
	g->next = dev->groups;
	dev->groups = g;
	return 0;
}

static void leave(struct device *dev, const uint8_t mgid[16])
{
	struct device_group **at = find_of_device(dev, mgid), *g = *at;

	if (!g || --g->n_qps)
		return;
	if (dev->group)
		dev->group(dev->ask_ctx, dev->index, mgid, false);
	*at = g->next;
	free(g);
}

void device_rejoin_groups(struct device *dev)
{
	for (const struct device_group *g = dev->groups; g && dev->group; g = g->next) {
		char text[GID_TEXT_LEN];
		int err;

		dev->group(dev->ask_ctx, dev->index, g->mgid, false);
		err = dev->group(dev->ask_ctx, dev->index, g->mgid, true);
		if (err)
			log_error("device %s: group %s cannot be joined again: %s", dev->name,
				  gid_format(g->mgid, text), strerror(-err));
	}
}

static struct mcast_group **find(struct qp *qp, const uint8_t mgid[16])
{
	struct mcast_group **g = &qp->groups;

	while (*g && memcmp((*g)->mgid, mgid, sizeof((*g)->mgid)))
		g = &(*g)->next;
	return g;
}

static int tell_engine(struct session *s, const struct qp *qp, enum engine_op op,
		       const uint8_t mgid[16])
{
	struct cmd cmd = { .op = op, .mcast = { .qpn = qp->qpn } };

	memcpy(cmd.mcast.mgid, mgid, sizeof(cmd.mcast.mgid));
	return device_command(s->dev, qp->worker, &cmd, NULL);
}

int request_attach_mcast(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_mcast *req = body;
	struct qp *qp = handles_get(&s->qps, req->handle);
	struct mcast_group *g;
	int err;

	(void)r;
	if (!qp)
		return -EINVAL;
	if (*find(qp, req->mgid))
		return 0; /* IBA vol. 1, 11.2.14.1: attaching twice is attaching once */
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	err = tell_engine(s, qp, ENGINE_MCAST_ADD, req->mgid);
	if (!err) {
		err = join(s->dev, req->mgid);
		if (err)
			tell_engine(s, qp, ENGINE_MCAST_DEL, req->mgid);
	}
	if (err) {
		free(g);
		return err;
	}
	memcpy(g->mgid, req->mgid, sizeof(g->mgid));
	g->next = qp->groups;
	qp->groups = g;
	return 0;
}

int request_detach_mcast(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_mcast *req = body;
	struct qp *qp = handles_get(&s->qps, req->handle);
	struct mcast_group **at, *g;

	(void)r;
	if (!qp)
		return -EINVAL;
	at = find(qp, req->mgid);
	g = *at;
	if (!g)
		return -EINVAL;
	*at = g->next;
	free(g);
	leave(s->dev, req->mgid);
	return tell_engine(s, qp, ENGINE_MCAST_DEL, req->mgid);
}

void mcast_free(struct session *s, struct qp *qp)
{
	while (qp->groups) {
		struct mcast_group *g = qp->groups;

		qp->groups = g->next;
		leave(s->dev, g->mgid);
		free(g);
	}
}
