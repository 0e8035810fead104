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
	const struct udp_port *u = udp_port(p);

	return u->epoll_fd >= 0 ? u->epoll_fd : u->sock[0].fd;
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
	u->epoll_fd = -1;
	u->has_gso = true;
	u->rx.bytes = malloc((size_t)UDP_RX_MSGS * UDP_RX_BYTES);
	if (!u->rx.bytes) {
		free(u);
		return NULL;
	}
	return u;
}

static int add_address(struct link_udp *l, const struct link_udp_addr *a)
{
	struct udp_socket s[l->n_workers];
	int err = udp_socket_open(s, l->n_workers, a->gid, a->scope_id);

	for (unsigned w = 0; !err && w < l->n_workers; w++)
		l->port[w]->sock[l->port[w]->n_socks++] = s[w];
	return err;
}

/* Which of several sockets has something: one descriptor and one call to ask them all. */
static int watch_all(struct udp_port *u)
{
	if (u->n_socks == 1)
		return 0;
	u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (u->epoll_fd < 0)
		return -errno;
	for (unsigned i = 0; i < u->n_socks; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = i };

		if (epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, u->sock[i].fd, &ev))
			return -errno;
	}
	return 0;
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
	for (unsigned w = 0; !err && w < conf->n_workers; w++)
		err = watch_all(l->port[w]);
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
