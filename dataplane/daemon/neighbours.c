/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/neighbours.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "dataplane/daemon/netdev.h"
#include "dataplane/daemon/rtnl.h"
#include "fabric/addr/neigh_table.h"

#define ROUND_S      5 /* between two looks at the neighbours in use */
#define ROUND_LOST_S 1 /* while some in use are not known */
#define DISCARD_PORT 9

struct neighbours {
	unsigned interface;
	uint8_t mac[6]; /* our own */
	void (*changed)(void *ctx);
	void *ctx;
	struct mnl_socket *asks, *hears;
	int probe4, probe6;
	int timer_fd, epoll_fd;
	unsigned round_s; /* 0: the timer is off */
	struct neigh_table table;
	uint8_t next_hop[NEIGH_SLOTS][GID_LEN];
};

static void set_round(struct neighbours *n, unsigned seconds)
{
	const struct itimerspec t = { { seconds, 0 }, { seconds, 0 } };

	if (n->round_s == seconds)
		return;
	n->round_s = seconds;
	timerfd_settime(n->timer_fd, 0, &t, NULL);
}

/*
 * The kernel asks for a neighbour, or makes sure of it, when it has a packet for it: here is one.
 * It ends at the next hop.
 */
static void probe(const struct neighbours *n, const uint8_t gid[GID_LEN])
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(DISCARD_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(DISCARD_PORT),
				    .sin6_scope_id = gid_is_link_local(gid) ? n->interface : 0 };

	memcpy(&in.sin_addr, gid + 12, 4);
	memcpy(&in6.sin6_addr, gid, GID_LEN);
	/* What comes of it comes as an event. */
	if (gid_is_ipv4(gid))
		sendto(n->probe4, NULL, 0, MSG_DONTWAIT, (struct sockaddr *)&in, sizeof(in));
	else
		sendto(n->probe6, NULL, 0, MSG_DONTWAIT, (struct sockaddr *)&in6, sizeof(in6));
}

static void bind_probe(int fd, const char *interface)
{
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface));
}

static int open_probe(int family, const char *interface)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

	if (fd < 0)
		return -1;
	if (family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_TTL, &one, sizeof(one));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &one, sizeof(one));
	bind_probe(fd, interface);
	return fd;
}

/* Looks a slot's address up from the beginning. 0 or why there is no way. */
static int look_up(struct neighbours *n, unsigned slot, const uint8_t gid[GID_LEN])
{
	struct rtnl_neigh found = { 0 };
	struct rtnl_route route;
	int err = rtnl_get_route(n->asks, n->interface, gid, &route);
	bool news = false;

	if (err)
		return err;
	memcpy(n->next_hop[slot], route.next_hop, GID_LEN);
	if (route.is_local) {
		news = neigh_set(&n->table, slot, n->mac);
	} else {
		rtnl_get_neigh(n->asks, n->interface, route.next_hop, &found);
		if (found.has_mac)
			news = neigh_set(&n->table, slot, found.mac);
		if (!found.has_mac || !found.is_fresh)
			probe(n, route.next_hop);
	}
	if (news)
		n->changed(n->ctx);
	return 0;
}

int neighbours_want(struct neighbours *n, const uint8_t gid[GID_LEN])
{
	unsigned slot = neigh_add(&n->table, gid, NULL);
	uint8_t own[GID_LEN];
	bool is_known;
	int err = look_up(n, slot, gid);

	neigh_get(&n->table, slot, own, &is_known);
	if (is_known && !n->round_s)
		set_round(n, ROUND_S);
	else if (!is_known)
		set_round(n, ROUND_LOST_S);
	return err;
}

static void heard(struct neighbours *n, const struct rtnl_neigh *of)
{
	bool news = false;

	if (of->interface != n->interface || (!of->has_mac && !of->is_gone))
		return;
	for (unsigned i = 0; i < NEIGH_SLOTS; i++) {
		uint8_t gid[GID_LEN];
		bool is_known;

		if (memcmp(n->next_hop[i], of->addr, GID_LEN) == 0 &&
		    neigh_get(&n->table, i, gid, &is_known))
			news |= neigh_set(&n->table, i, of->has_mac ? of->mac : NULL);
	}
	if (news)
		n->changed(n->ctx);
}

/* Those that workers used since the last round; asks again for those that do not answer. */
static void do_round(struct neighbours *n)
{
	bool is_lost = false;

	for (unsigned i = 0; i < NEIGH_SLOTS; i++) {
		uint8_t gid[GID_LEN];
		bool is_known;

		if (!neigh_get(&n->table, i, gid, &is_known) || !neigh_take_used(&n->table, i))
			continue;
		look_up(n, i, gid);
		is_lost |= !is_known;
	}
	set_round(n, is_lost ? ROUND_LOST_S : ROUND_S);
}

void neighbours_move(struct neighbours *n, const struct netdev *dev, const uint8_t mac[6])
{
	n->interface = dev->index;
	memcpy(n->mac, mac, sizeof(n->mac));
	bind_probe(n->probe4, dev->name);
	bind_probe(n->probe6, dev->name);
	for (unsigned i = 0; i < NEIGH_SLOTS; i++) {
		uint8_t gid[GID_LEN];
		bool is_known;

		if (neigh_get(&n->table, i, gid, &is_known))
			look_up(n, i, gid);
	}
	/* Its addresses may still be on their way. */
	set_round(n, ROUND_LOST_S);
}

static void listen_to_kernel(struct neighbours *n)
{
	_Alignas(struct nlmsghdr) char buf[8192];
	ssize_t got;

	while ((got = mnl_socket_recvfrom(n->hears, buf, sizeof(buf))) > 0) {
		struct nlmsghdr *h = (struct nlmsghdr *)buf;
		int left = (int)got;

		for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
			struct rtnl_neigh of;

			if (rtnl_read_neigh(h, &of))
				heard(n, &of);
		}
	}
	/* ENOBUFS: there was more than the socket holds. The next round looks at all in use. */
}

void neighbours_serve(struct neighbours *n)
{
	uint64_t times;

	listen_to_kernel(n);
	if (read(n->timer_fd, &times, sizeof(times)) == sizeof(times))
		do_round(n);
}

int neighbours_fd(const struct neighbours *n)
{
	return n->epoll_fd;
}

struct neigh_table *neighbours_table(struct neighbours *n)
{
	return &n->table;
}

static int watch(const struct neighbours *n, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_all(struct neighbours *n, const char *interface)
{
	int err;

	n->asks = rtnl_open(false);
	n->hears = rtnl_open(true);
	if (!n->asks || !n->hears)
		return -errno;
	n->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (n->timer_fd < 0 || n->epoll_fd < 0)
		return -errno;
	/* A host without IPv6 has none to ask for. */
	n->probe4 = open_probe(AF_INET, interface);
	n->probe6 = open_probe(AF_INET6, interface);
	err = watch(n, mnl_socket_get_fd(n->hears));
	return err ? err : watch(n, n->timer_fd);
}

int neighbours_create(struct neighbours **out, const struct netdev *dev, void (*changed)(void *ctx),
		      void *ctx)
{
	struct neighbours *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	n->interface = dev->index;
	memcpy(n->mac, dev->mac, sizeof(n->mac));
	n->changed = changed;
	n->ctx = ctx;
	n->probe4 = n->probe6 = n->timer_fd = n->epoll_fd = -1;
	err = open_all(n, dev->name);
	if (err)
		neighbours_destroy(n);
	else
		*out = n;
	return err;
}

void neighbours_destroy(struct neighbours *n)
{
	int fds[] = { n->probe4, n->probe6, n->timer_fd, n->epoll_fd };

	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (n->asks)
		mnl_socket_close(n->asks);
	if (n->hears)
		mnl_socket_close(n->hears);
	free(n);
}
