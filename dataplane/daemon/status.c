/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state as JSON: what `uroce status` shows. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dataplane/daemon/admin.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/metrics.h"
#include "dataplane/daemon/worker.h"
#include "dataplane/host/clock.h"

/* Enum numbers of libibverbs, by name; what is not there is a number. */
static json_t *named(const char *const *name, unsigned n, unsigned v)
{
	char text[16];

	if (v < n && name[v])
		return json_string(name[v]);
	snprintf(text, sizeof(text), "%u", v);
	return json_string(text);
}

static json_t *workers_json(const struct daemon *d)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < d->n_workers; i++) {
		struct worker_status s;

		worker_get_status(d->worker[i], &s);
		json_array_append_new(list, json_pack("{s:i, s:s, s:I, s:I}", "id", (int)i, "state",
						      s.is_asleep ? "asleep" : "awake", "turns",
						      (json_int_t)s.turns, "sleeps",
						      (json_int_t)s.sleeps));
	}
	return list;
}

static json_t *gids_json(const struct device *dev)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < GID_TABLE_LEN; i++) {
		const uint8_t *gid = gid_table_get(&dev->gids, i);
		char text[GID_TEXT_LEN];

		if (gid)
			json_array_append_new(list, json_string(gid_format(gid, text)));
	}
	return list;
}

static json_t *counters_json(const struct device *dev)
{
	json_t *o = json_object();
	struct metrics_port m;

	metrics_port(dev, &m);
	json_object_set_new(o, "link_tx_packets", json_integer((json_int_t)m.tx_packets));
	json_object_set_new(o, "link_tx_bytes", json_integer((json_int_t)m.tx_bytes));
	json_object_set_new(o, "link_rx_packets", json_integer((json_int_t)m.rx_packets));
	json_object_set_new(o, "link_rx_bytes", json_integer((json_int_t)m.rx_bytes));
	json_object_set_new(o, "link_drops", json_integer((json_int_t)m.drops));
	for (unsigned i = 0; i < engine_n_counters(); i++)
		json_object_set_new(o, engine_counter_name(i),
				    json_integer((json_int_t)metrics_engine(dev, i)));
	return o;
}

static json_t *devices_json(const struct daemon *d)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < d->n_devices; i++) {
		const struct device *dev = d->device[i];
		const uint8_t *m = dev->mac, *g = dev->guid;
		const char *link = device_link_name[dev->net.link], *uplink = NULL;
		char mac[24], guid[24];

		if (dev->net.is_switched) {
			uplink = link;
			link = device_link_name[LINK_SWITCH];
		}
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3],
			 m[4], m[5]);
		snprintf(guid, sizeof(guid), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1],
			 g[2], g[3], g[4], g[5], g[6], g[7]);
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s*, s:o, s:o}", "name",
					dev->name, "node_guid", guid, "state",
					device_is_up(dev) ? "ACTIVE" : "DOWN", "mac", mac, "mtu",
					(int)dev->net.path_mtu, "link", link, "uplink", uplink,
					"gids", gids_json(dev), "counters", counters_json(dev)));
	}
	return list;
}

static json_t *clients_json(const struct daemon *d)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < DAEMON_MAX_SESSIONS; i++) {
		const struct session *s = d->session[i];

		if (!s || s->role != SESSION_CLIENT)
			continue;
		json_array_append_new(
			list,
			json_pack("{s:i, s:i, s:I, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I}",
				  "id", (int)s->id, "pid", (int)s->pid, "uid", (json_int_t)s->uid,
				  "comm", s->comm, "device", s->dev->name, "pds", (int)s->pds.count,
				  "mrs", (int)s->mrs.count, "cqs", (int)s->cqs.count, "qps",
				  (int)s->qps.count, "ahs", (int)s->ahs.count, "channels",
				  (int)s->channels.count, "shared_bytes", (json_int_t)s->bytes));
	}
	return list;
}

/* A QP and what its engine said of it. */
struct qp_row {
	const struct session *s;
	const struct qp *qp;
	struct engine_qp_info info;
	int err;
};

/* The QPs of one worker, asked in its thread at once. */
struct qp_query {
	unsigned worker;
	struct qp_row *row;
	size_t n;
};

static json_t *qp_json(const struct session *s, const struct qp *qp, const struct engine_qp_info *i)
{
	static const char *const type[] = {
		[UROCE_QPT_RC] = "RC", [UROCE_QPT_UC] = "UC", [UROCE_QPT_UD] = "UD"
	};
	static const char *const state[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return json_pack("{s:s, s:I, s:o, s:o, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "device", s->dev->name, "qpn", (json_int_t)qp->qpn, "type",
			 named(type, sizeof(type) / sizeof(*type), i->type), "state",
			 named(state, sizeof(state) / sizeof(*state), i->state), "pid", (int)s->pid,
			 "comm", s->comm, "remote_qpn", (json_int_t)i->dest_qpn, "mtu",
			 (json_int_t)i->mtu, "nxt_psn", (json_int_t)i->nxt_psn, "una_psn",
			 (json_int_t)i->una_psn, "epsn", (json_int_t)i->epsn, "sq_pending",
			 (json_int_t)i->sq_pending, "retries", (json_int_t)i->retries,
			 "rnr_retries", (json_int_t)i->rnr_retries);
}

static size_t find_qps(const struct daemon *d, unsigned worker, struct qp_row *row)
{
	size_t n = 0;

	for (unsigned i = 0; i < DAEMON_MAX_SESSIONS; i++) {
		const struct session *s = d->session[i];
		const struct qp *qp;
		uint32_t pos = 0;

		if (!s || s->role != SESSION_CLIENT)
			continue;
		while ((qp = handles_next(&s->qps, &pos))) {
			if (qp->worker != worker)
				continue;
			if (row)
				row[n] = (struct qp_row) { .s = s, .qp = qp };
			n++;
		}
	}
	return n;
}

static void query_qps(struct worker *w, uint64_t now, void *arg)
{
	struct qp_query *q = arg;

	(void)w;
	(void)now;
	for (size_t i = 0; i < q->n; i++) {
		struct qp_row *r = &q->row[i];

		r->err = engine_qp_info(r->s->dev->engine[q->worker], r->qp->qpn, &r->info);
	}
}

static json_t *qps_json(const struct daemon *d)
{
	json_t *list = json_array();

	for (unsigned w = 0; w < d->n_workers; w++) {
		struct qp_query q = { .worker = w, .n = find_qps(d, w, NULL) };

		q.row = calloc(q.n + 1, sizeof(*q.row));
		if (!q.row)
			continue;
		find_qps(d, w, q.row);
		worker_call(d->worker[w], query_qps, &q);
		for (size_t i = 0; i < q.n; i++)
			if (!q.row[i].err)
				json_array_append_new(
					list, qp_json(q.row[i].s, q.row[i].qp, &q.row[i].info));
		free(q.row);
	}
	return list;
}

char *status_json(struct daemon *d)
{
	json_t *root = json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o, s:o}", "version",
				 UROCE_VERSION, "pid", (int)getpid(), "run_dir", d->dir.path,
				 "uptime_s", (json_int_t)((clock_now() - d->started) / 1000000000u),
				 "workers", workers_json(d), "devices", devices_json(d), "clients",
				 clients_json(d), "qps", qps_json(d));
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}
