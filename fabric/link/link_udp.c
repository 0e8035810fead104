/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fabric/link/udp_port.h"

struct link_udp {
	unsigned n_workers;
	struct handoff *handoff;
	struct udp_port *port[];
};

static uint64_t port_deadline(const struct link_port *p)
{
	const struct udp_port *u = udp_port(p);

	/* Datagrams that were read but found no frame, or not all of them asked for. */
	if (u->rx.cur < u->rx.n)
		return 0;
	return u->base.n_queue ? u->base.retry_at : UINT64_MAX;
}

static int port_wait_fd(const struct link_port *p)
{
	return udp_port(p)->epoll_fd;
}

static const struct link_ops udp_ops = {
	.alloc = socket_port_alloc,
	.free = socket_port_free,
	.tx_room = udp_port_tx_room,
	.tx = udp_port_tx,
	.rx = udp_port_rx,
	.deadline = port_deadline,
	.wait_fd = port_wait_fd,
	.counters = socket_port_counters,
};

static void free_port(struct udp_port *u)
{
	for (unsigned i = 0; i < u->n_socks; i++)
		if (u->sock[i].fd >= 0)
			close(u->sock[i].fd);
	if (u->epoll_fd >= 0)
		close(u->epoll_fd);
	socket_port_drain(&u->base);
	free(u->rx.bytes);
	free(u);
}

static struct udp_port *make_port(struct link_udp *l, const struct link_udp_conf *conf,
				  unsigned worker)
{
	struct udp_port *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->base = (struct socket_port) { .port = { .ops = &udp_ops, .mtu = conf->mtu },
					 .pool = conf->pool,
					 .handoff = l->handoff,
					 .worker = worker };
	memcpy(u->base.port.mac, conf->mac, 6);
	u->has_gso = true;
	u->rx.bytes = malloc((size_t)UDP_RX_MSGS * UDP_RX_BYTES);
	/* Which of several sockets has something: one descriptor and one call to ask them all. */
	u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (u->rx.bytes && u->epoll_fd >= 0)
		return u;
	if (u->epoll_fd >= 0)
		close(u->epoll_fd);
	free(u->rx.bytes);
	free(u);
	return NULL;
}

/* The event of socket i says i. */
static int watch(struct udp_port *u, unsigned i, int op)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = i };

	return epoll_ctl(u->epoll_fd, op, u->sock[i].fd, &ev) ? -errno : 0;
}

struct link_udp_socks {
	unsigned n;
	struct udp_socket sock[];
};

static const struct udp_socket *find(const struct udp_port *u, const uint8_t gid[16])
{
	for (unsigned i = 0; i < u->n_socks; i++)
		if (!memcmp(u->sock[i].addr, gid, sizeof(u->sock[i].addr)))
			return &u->sock[i];
	return NULL;
}

int link_udp_open(struct link_udp *l, const struct link_udp_addr *a, struct link_udp_socks **out)
{
	struct link_udp_socks *s;
	int err;

	if (find(l->port[0], a->gid))
		return -EEXIST;
	s = calloc(1, sizeof(*s) + l->n_workers * sizeof(s->sock[0]));
	if (!s)
		return -ENOMEM;
	s->n = l->n_workers;
	err = udp_socket_open(s->sock, s->n, a);
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

int link_udp_attach(struct link_port *port, struct link_udp_socks *s)
{
	struct udp_port *u = udp_port(port);
	struct udp_socket *own = &s->sock[u->base.worker];
	int err;

	if (u->n_socks == LINK_UDP_MAX_SOCKS)
		return -ENOSPC;
	u->sock[u->n_socks] = *own;
	err = watch(u, u->n_socks, EPOLL_CTL_ADD);
	if (err)
		return err;
	own->fd = -1;
	u->n_socks++;
	return 0;
}

void link_udp_opened(struct link_udp_socks *s)
{
	for (unsigned w = 0; w < s->n; w++)
		if (s->sock[w].fd >= 0)
			close(s->sock[w].fd);
	free(s);
}

void link_udp_detach(struct link_port *port, const uint8_t gid[16])
{
	struct udp_port *u = udp_port(port);
	const struct udp_socket *s = find(u, gid);
	unsigned i = s ? (unsigned)(s - u->sock) : 0;

	if (!s)
		return;
	close(s->fd); /* leaves the epoll set by itself */
	u->sock[i] = u->sock[--u->n_socks];
	if (i < u->n_socks)
		watch(u, i, EPOLL_CTL_MOD);
}

static int add_address(struct link_udp *l, const struct link_udp_addr *a)
{
	struct link_udp_socks *s;
	int err = link_udp_open(l, a, &s);

	if (err)
		return err;
	for (unsigned w = 0; !err && w < l->n_workers; w++)
		err = link_udp_attach(&l->port[w]->base.port, s);
	link_udp_opened(s);
	return err;
}

static int make_ports(struct link_udp *l, const struct link_udp_conf *conf)
{
	int err = 0;

	l->handoff = handoff_create(conf->n_workers, conf->pool_size, conf->wake, conf->wake_ctx);
	if (!l->handoff)
		return -ENOMEM;
	for (unsigned w = 0; w < conf->n_workers; w++, l->n_workers++) {
		l->port[w] = make_port(l, conf, w);
		if (!l->port[w])
			return -ENOMEM;
	}
	for (unsigned i = 0; !err && i < conf->n_addrs; i++)
		err = add_address(l, &conf->addr[i]);
	return err;
}

int link_udp_create(struct link_udp **out, const struct link_udp_conf *conf,
		    struct link_port **ports)
{
	struct link_udp *l;
	int err;

	if (!conf->n_workers || !conf->n_addrs || conf->n_addrs > LINK_UDP_MAX_ADDRS)
		return -EINVAL;
	l = calloc(1, sizeof(*l) + conf->n_workers * sizeof(l->port[0]));
	if (!l)
		return -ENOMEM;
	err = make_ports(l, conf);
	if (err) {
		link_udp_destroy(l);
		return err;
	}
	for (unsigned w = 0; w < conf->n_workers; w++)
		ports[w] = &l->port[w]->base.port;
	*out = l;
	return 0;
}

void link_udp_destroy(struct link_udp *l)
{
	for (unsigned w = 0; w < l->n_workers; w++)
		free_port(l->port[w]);
	handoff_destroy(l->handoff);
	free(l);
}
