/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/device_event.h"

#include "dataplane/daemon/classtree.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/daemon/worker.h"

#define THE_PORT 1u
#define QP_STATE 1u /* of enum ibv_qp_attr_mask */

static struct session *client_of(const struct device *dev, uint32_t i)
{
	struct session *s = dev->daemon->session[i];

	return s && s->role == SESSION_CLIENT && s->dev == dev ? s : NULL;
}

void device_event(const struct device *dev, uint32_t type)
{
	uint64_t element = type == UROCE_EVENT_DEVICE_FATAL ? 0 : THE_PORT;

	for (uint32_t i = 0; i < DAEMON_MAX_SESSIONS; i++)
		if (client_of(dev, i))
			session_event(client_of(dev, i), element, type);
}

void device_event_port(const struct device *dev)
{
	bool is_up = device_is_up(dev);

	log_info("device %s: the port is %s", dev->name, is_up ? "active" : "down");
	classtree_update(dev->daemon, dev);
	device_event(dev, is_up ? UROCE_EVENT_PORT_ACTIVE : UROCE_EVENT_PORT_ERR);
}

void device_event_gids(const struct device *dev)
{
	log_info("device %s: the GID table changed", dev->name);
	classtree_update(dev->daemon, dev);
	device_event(dev, UROCE_EVENT_GID_CHANGE);
}

struct stop_call {
	struct session *s;
	unsigned worker;
};

static void stop_qps(struct worker *w, uint64_t now, void *arg)
{
	const struct stop_call *c = arg;
	struct cmd cmd = { .op = ENGINE_QP_MODIFY,
			   .qp_modify = { .mask = QP_STATE, .attr.qp_state = UROCE_QPS_ERR } };
	struct cmd_reply unused;
	const struct qp *qp;
	uint32_t pos = 0;

	/* What is posted from now on the provider gives back by itself, once it sees the word. */
	worker_del_doorbells(w, session_uar_worker(c->s, c->worker));
	while ((qp = handles_next(&c->s->qps, &pos))) {
		if (qp->worker != c->worker)
			continue;
		cmd.qp_modify.qpn = qp->qpn;
		/* One in RESET has nothing to give back, and says so. */
		engine_command(c->s->dev->engine[c->worker], now, &cmd, &unused);
	}
}

void device_event_removed(struct device *dev)
{
	const struct daemon *d = dev->daemon;

	dev->is_gone = true;
	for (uint32_t i = 0; i < DAEMON_MAX_SESSIONS; i++) {
		struct session *s = client_of(dev, i);

		for (unsigned w = 0; s && w < d->n_workers; w++) {
			struct stop_call c = { s, w };

			worker_call(d->worker[w], stop_qps, &c);
		}
		if (s)
			__atomic_store_n(&session_uar(s)->fatal, UROCE_UAR_REMOVED,
					 __ATOMIC_RELEASE);
	}
	device_event(dev, UROCE_EVENT_DEVICE_FATAL);
}
