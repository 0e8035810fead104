/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams into frames. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>

#include "fabric/addr/ah.h"
#include "fabric/addr/gid.h"
#include "fabric/link/udp_port.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define READS      4u /* calls in one turn when all they bring is for other workers */
#define CUT        32u
#define CTRL_BYTES (CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int)))

struct in {
	struct mmsghdr msg[UDP_RX_MSGS];
	struct iovec iov[UDP_RX_MSGS];
	struct sockaddr_storage from[UDP_RX_MSGS];
	_Alignas(struct cmsghdr) uint8_t ctrl[UDP_RX_MSGS][CTRL_BYTES];
};

static void prepare(struct in *in, uint8_t *bytes)
{
	for (unsigned i = 0; i < UDP_RX_MSGS; i++) {
		in->iov[i] = (struct iovec) { bytes + (size_t)i * UDP_RX_BYTES, UDP_RX_BYTES };
		in->msg[i].msg_hdr = (struct msghdr) { .msg_name = &in->from[i],
						       .msg_namelen = sizeof(in->from[i]),
						       .msg_iov = &in->iov[i],
						       .msg_iovlen = 1,
						       .msg_control = in->ctrl[i],
						       .msg_controllen = CTRL_BYTES };
	}
}

/* An int, or the one byte that IP_TOS comes as. */
static int ctrl_value(const struct cmsghdr *c)
{
	int v = 0;

	if (c->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(&v, CMSG_DATA(c), sizeof(v));
	else if (c->cmsg_len >= CMSG_LEN(1))
		v = *CMSG_DATA(c);
	return v;
}

static void read_ctrl(struct msghdr *m, struct net_path *path, uint32_t *packet_len)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int v = ctrl_value(c);

		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			*packet_len = (uint32_t)v & 0xffff;
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
			path->tclass = (uint8_t)v;
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
			path->hop_limit = (uint8_t)v;
	}
}

static void read_source(const struct sockaddr_storage *from, struct net_path *path)
{
	if (path->is_ipv4) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;

		gid_from_ipv4(path->sgid, (const uint8_t *)&in->sin_addr);
		path->udp_sport = ntohs(in->sin_port);
	} else {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

		memcpy(path->sgid, &in6->sin6_addr, sizeof(path->sgid));
		path->udp_sport = ntohs(in6->sin6_port);
	}
	/* Nobody saw the sender's MAC: locally administered, from the end of the address. */
	path->smac[0] = 0x02;
	memcpy(path->smac + 2, path->sgid + 12, 4);
}

static void describe(struct udp_port *u, const struct udp_socket *s, struct mmsghdr *m,
		     const uint8_t *bytes, struct gso_super *out)
{
	struct net_path path = { .vlan = NET_NO_VLAN, .hop_limit = 64, .is_ipv4 = s->is_ipv4 };

	*out = (struct gso_super) { .payload = bytes,
				    .len = m->msg_len,
				    .packet_len = m->msg_len,
				    .is_ip_id_guessed = s->is_ipv4 };
	if (s->is_group)
		ah_group_mac(s->addr, path.dmac);
	else
		memcpy(path.dmac, u->base.port.mac, 6);
	memcpy(path.dgid, s->addr, sizeof(path.dgid));
	read_source(m->msg_hdr.msg_name, &path);
	read_ctrl(&m->msg_hdr, &path, &out->packet_len);
	net_template_build(&out->net, &path);
}

/* Reads datagrams of one socket. false: there are none. */
static bool read_socket(struct udp_port *u, const struct udp_socket *s)
{
	struct udp_rx *rx = &u->rx;
	struct in in;
	int n;

	prepare(&in, rx->bytes);
	n = recvmmsg(s->fd, in.msg, UDP_RX_MSGS, MSG_DONTWAIT, NULL);
	rx->n = rx->cur = rx->packet = 0;
	rx->is_group = s->is_group;
	for (int i = 0; i < n; i++) {
		struct gso_super *m = &rx->msg[rx->n];

		describe(u, s, &in.msg[i], in.iov[i].iov_base, m);
		if (in.msg[i].msg_hdr.msg_flags & MSG_TRUNC)
			socket_port_count(&u->base.count.drop[LINK_DROP_TOO_LONG], 1);
		else if (!m->len || !m->packet_len)
			socket_port_count(&u->base.count.drop[LINK_DROP_RUNT], 1);
		else
			rx->n++;
	}
	return n > 0;
}

static bool read_any(struct udp_port *u)
{
	struct epoll_event ev;

	if (u->n_socks == 1)
		return read_socket(u, &u->sock[0]);
	/* Level-triggered events go to the end of the kernel's list: all sockets get their turn. */
	return epoll_wait(u->epoll_fd, &ev, 1, 0) == 1 && read_socket(u, &u->sock[ev.data.u32]);
}

/* Cuts what was read into at most n frames; fewer when the pool is dry. */
static unsigned cut(struct udp_port *u, struct frame **f, unsigned n)
{
	struct udp_rx *rx = &u->rx;
	unsigned room = socket_port_alloc(&u->base.port, f, n), got = 0;

	while (got < room && rx->cur < rx->n) {
		const struct gso_super *m = &rx->msg[rx->cur];

		if (gso_cut(m, rx->packet, f[got]))
			got++;
		else
			socket_port_count(&u->base.count.drop[LINK_DROP_TOO_LONG], 1);
		if (++rx->packet == gso_super_count(m)) {
			rx->packet = 0;
			rx->cur++;
		}
	}
	socket_port_free(&u->base.port, f + got, room - got);
	return got;
}

unsigned udp_port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	struct udp_port *u = udp_port(p);
	unsigned got, reads = 0;

	if (u->base.n_queue && u->base.retry_at <= now)
		udp_port_flush(u, now);
	got = socket_port_take(&u->base, f, n);
	while (got < n) {
		unsigned k = n - got < CUT ? n - got : CUT;

		if (u->rx.cur == u->rx.n && (reads++ == READS || !read_any(u)))
			break;
		k = cut(u, f + got, k);
		if (!k && u->rx.cur < u->rx.n)
			break; /* no frames: deadline says that there is more */
		got += u->rx.is_group ? socket_port_keep(&u->base, f + got, k)
				      : socket_port_sort(&u->base, f + got, k);
	}
	return got;
}
