/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/link/packet_port.h"

struct link_packet {
	unsigned n_workers;
	unsigned interface;
	struct packet_guards guards;
	struct handoff *handoff;
	struct packet_port *port[];
};

static uint64_t port_deadline(const struct link_port *p)
{
	const struct packet_port *u = packet_port(p);
	uint64_t hop = next_hop_deadline(&u->hop);

	/* What was read but found no frame, or not all of it was asked for. */
	if (u->rx.cur < u->rx.n || u->own.n)
		return 0;
	if (!u->base.n_queue)
		return hop;
	return u->base.retry_at < hop ? u->base.retry_at : hop;
}

static int port_wait_fd(const struct link_port *p)
{
	return packet_port(p)->fd;
}

/* The kernel forgets its count when it is asked. */
static void port_counters(const struct link_port *p, struct link_counters *out)
{
	struct packet_port *u = packet_port(p);
	uint32_t more = packet_socket_overruns(u->fd);

	socket_port_counters(p, out);
	out->drop[LINK_DROP_OVERRUN] = atomic_fetch_add(&u->overruns, more) + more;
}

static const struct link_ops packet_ops = {
	.alloc = socket_port_alloc,
	.free = socket_port_free,
	.tx_room = packet_port_tx_room,
	.tx = packet_port_tx,
	.rx = packet_port_rx,
	.deadline = port_deadline,
	.wait_fd = port_wait_fd,
	.counters = port_counters,
};

static void free_port(struct packet_port *u)
{
	if (u->fd >= 0)
		close(u->fd);
	frame_pool_put(u->base.pool, FRAME_POOL_NO_WORKER, u->hop.f, u->hop.n);
	own_frames_drain(&u->own, &u->base);
	socket_port_drain(&u->base);
	free(u->rx.bytes);
	free(u);
}

static int make_port(struct link_packet *l, const struct link_packet_conf *conf, unsigned worker)
{
	struct packet_filter filter = { .vlan = conf->vlan,
					.worker = worker,
					.n_workers = conf->n_workers };
	struct packet_port *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->base = (struct socket_port) { .port = { .ops = &packet_ops, .mtu = conf->mtu },
					 .pool = conf->pool,
					 .handoff = l->handoff,
					 .worker = worker };
	memcpy(u->base.port.mac, conf->mac, 6);
	u->fd = -1;
	u->has_gso = true;
	u->hop.table = conf->neigh;
	l->port[l->n_workers++] = u;
	u->rx.bytes = malloc((size_t)PACKET_RX_MSGS * PACKET_RX_BYTES);
	if (!u->rx.bytes)
		return -ENOMEM;
	u->fd = packet_socket_open(conf->interface, &filter);
	return u->fd < 0 ? u->fd : 0;
}

void link_packet_add_addr(struct link_packet *l, const uint8_t addr[GID_LEN])
{
	packet_guards_add(&l->guards, addr, l->interface);
}

void link_packet_del_addr(struct link_packet *l, const uint8_t addr[GID_LEN])
{
	packet_guards_del(&l->guards, addr);
}

int link_packet_move(struct link_packet *l, unsigned interface)
{
	int err = 0;

	l->interface = interface;
	for (unsigned w = 0; !err && w < l->n_workers; w++)
		err = packet_socket_move(l->port[w]->fd, interface);
	return err;
}

int link_packet_create(struct link_packet **out, const struct link_packet_conf *conf,
		       struct link_port **ports)
{
	struct link_packet *l;
	int err = 0;

	if (!conf->n_workers || !conf->interface)
		return -EINVAL;
	l = calloc(1, sizeof(*l) + conf->n_workers * sizeof(l->port[0]));
	if (!l)
		return -ENOMEM;
	l->handoff = handoff_create(conf->n_workers, conf->pool_size, conf->wake, conf->wake_ctx);
	if (!l->handoff)
		err = -ENOMEM;
	/* The guards first: no packet shall find the port without one. */
	l->interface = conf->interface;
	for (unsigned i = 0; i < conf->n_addrs; i++)
		link_packet_add_addr(l, conf->addr[i]);
	for (unsigned w = 0; !err && w < conf->n_workers; w++)
		err = make_port(l, conf, w);
	if (err) {
		link_packet_destroy(l);
		return err;
	}
	for (unsigned w = 0; w < conf->n_workers; w++)
		ports[w] = &l->port[w]->base.port;
	*out = l;
	return 0;
}

void link_packet_destroy(struct link_packet *l)
{
	for (unsigned w = 0; w < l->n_workers; w++)
		free_port(l->port[w]);
	packet_guards_close(&l->guards);
	handoff_destroy(l->handoff);
	free(l);
}
