/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames into datagrams. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include "fabric/addr/gid.h"
#include "fabric/link/udp_port.h"
#include "fabric/wire/hdr.h"
#include "fabric/wire/icrc.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define CTRL_BYTES (CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t)))

/* A datagram being made: a run of frames of one flow. */
struct out {
	const struct udp_socket *sock;
	struct gso_outer outer;
	unsigned n; /* frames */
	struct sockaddr_storage to;
	_Alignas(struct cmsghdr) uint8_t ctrl[CTRL_BYTES];
};

/* What one call sends: the head of the queue. */
struct batch {
	unsigned n, n_iov;
	struct out out[UDP_TX_MSGS];
	struct mmsghdr msg[UDP_TX_MSGS];
	struct iovec iov[SOCKET_PORT_QUEUE * (2 + FRAME_SEGS)];
};

static void add_iov(struct batch *b, const void *base, uint32_t len)
{
	if (len)
		b->iov[b->n_iov++] = (struct iovec) { (void *)base, len };
}

static void add_frame(struct batch *b, const struct frame *f, uint32_t payload_off)
{
	add_iov(b, f->head + payload_off, f->head_len - payload_off);
	for (uint32_t i = 0; i < f->n_segs; i++)
		add_iov(b, f->seg[i].base, f->seg[i].len);
	add_iov(b, f->trailer, f->trailer_len);
}

static void add_ctrl(struct out *o, struct msghdr *m, int level, int type, const void *value,
		     uint32_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(o->ctrl + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	m->msg_control = o->ctrl;
	m->msg_controllen += CMSG_SPACE(len);
}

/* The socket whose address is the frame's source; NULL: none. */
static const struct udp_socket *source_of(const struct udp_port *u, const struct frame *f,
					  const struct gso_outer *o)
{
	const uint8_t *ip = f->head + o->l3_off;
	uint8_t gid[16];

	if (o->is_ipv4)
		gid_from_ipv4(gid, ((const struct ipv4_hdr *)ip)->src);
	else
		memcpy(gid, ((const struct ipv6_hdr *)ip)->src, sizeof(gid));
	for (unsigned i = 0; i < u->n_socks; i++)
		if (!memcmp(u->sock[i].addr, gid, sizeof(gid)))
			return &u->sock[i];
	return NULL;
}

/* The source port of a frame is what we are bound to; an ICRC made for another is made anew. */
static void set_source_port(struct frame *f)
{
	struct gso_outer o;
	struct udp_hdr *udp;
	uint32_t icrc;

	if (!gso_outer(f, &o))
		return;
	udp = (struct udp_hdr *)(f->head + o.payload_off) - 1;
	if (be16_get(udp->sport) == ROCE_UDP_PORT)
		return;
	udp->sport = be16_make(ROCE_UDP_PORT);
	icrc = icrc_frame(f, o.l3_off, frame_len(f) - o.l3_off - ICRC_LEN);
	for (unsigned i = 0; i < ICRC_LEN; i++)
		f->trailer[f->trailer_len - ICRC_LEN + i] = (uint8_t)(icrc >> (8 * i));
}

/* A datagram of the first n frames at f. */
static void add_datagram(struct udp_port *u, struct batch *b, struct frame *const *f,
			 const struct out *of)
{
	struct out *o = &b->out[b->n];
	struct msghdr *m = &b->msg[b->n++].msg_hdr;
	const uint8_t *ip = f[0]->head + of->outer.l3_off;
	int tos;

	*o = *of;
	*m = (struct msghdr) { .msg_iov = b->iov + b->n_iov, .msg_name = &o->to };
	if (o->outer.is_ipv4) {
		const struct ipv4_hdr *h = (const struct ipv4_hdr *)ip;

		m->msg_namelen = udp_socket_peer(o->sock, h->dst, &o->to);
		tos = h->tos;
	} else {
		const struct ipv6_hdr *h = (const struct ipv6_hdr *)ip;

		m->msg_namelen = udp_socket_peer(o->sock, h->dst, &o->to);
		tos = (int)(be32_get(h->ver_tc_fl) >> 20 & 0xff);
	}
	if (tos)
		add_ctrl(o, m, o->outer.is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			 o->outer.is_ipv4 ? IP_TOS : IPV6_TCLASS, &tos, sizeof(tos));
	if (o->n > 1) {
		uint16_t segment = (uint16_t)(frame_len(f[0]) - o->outer.payload_off);

		add_ctrl(o, m, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
		gso_change_icrc(&u->icrc, f, o->n, &o->outer);
	}
	for (unsigned i = 0; i < o->n; i++)
		add_frame(b, f[i], o->outer.payload_off);
	m->msg_iovlen = (size_t)(b->iov + b->n_iov - m->msg_iov);
}

/* Takes frames from the head of the queue, as far as one socket sends them. */
static void fill(struct udp_port *u, struct batch *b)
{
	struct frame *const *f = u->base.queue;
	unsigned left = u->base.n_queue, single = u->n_single;

	b->n = b->n_iov = 0;
	while (left && b->n < UDP_TX_MSGS) {
		struct out o;

		if (!gso_outer(f[0], &o.outer))
			return;
		o.sock = source_of(u, f[0], &o.outer);
		if (!o.sock || (b->n && o.sock != b->out[0].sock))
			return;
		o.n = u->has_gso && !single ? gso_run(f, left, &o.outer) : 1;
		single -= single ? 1 : 0;
		add_datagram(u, b, f, &o);
		f += o.n;
		left -= o.n;
	}
}

static void take_off(struct udp_port *u, unsigned n)
{
	u->n_single -= n < u->n_single ? n : u->n_single;
	socket_port_sent(&u->base, n);
}

static void drop_first(struct udp_port *u, enum link_drop why)
{
	socket_port_count(&u->base.count.drop[why], 1);
	take_off(u, 1);
}

/* The kernel refused the first datagram for good. */
static void refused(struct udp_port *u, unsigned n, int err)
{
	if (n > 1) {
		/* It may be the way of sending or one of the packets: they go one by one. */
		u->n_single = n;
		if (err == EIO || err == EOPNOTSUPP)
			u->has_gso = false;
		return;
	}
	switch (err) {
	case EMSGSIZE:
		drop_first(u, LINK_DROP_TOO_LONG);
		return;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EACCES:
	case EPERM:
	case EADDRNOTAVAIL:
		drop_first(u, LINK_DROP_NO_ROUTE);
		return;
	default:
		drop_first(u, LINK_DROP_SEND_FAILED);
		return;
	}
}

/* ICRCs of what was not sent become again those that the engine made. */
static void put_back(struct udp_port *u, const struct batch *b, unsigned sent)
{
	struct frame *const *f = u->base.queue;

	for (unsigned i = 0; i < b->n; i++) {
		if (i >= sent)
			gso_change_icrc(&u->icrc, f, b->out[i].n, &b->out[i].outer);
		f += b->out[i].n;
	}
}

/* One call. false: the socket is full. */
static bool send_some(struct udp_port *u, struct batch *b)
{
	unsigned n_frames = 0, sent;
	int n, err;

	fill(u, b);
	if (!b->n) {
		drop_first(u, LINK_DROP_NO_ROUTE);
		return true;
	}
	n = sendmmsg(b->out[0].sock->fd, b->msg, b->n, MSG_DONTWAIT);
	err = errno;
	sent = n > 0 ? (unsigned)n : 0;
	put_back(u, b, sent);
	for (unsigned i = 0; i < sent; i++)
		n_frames += b->out[i].n;
	take_off(u, n_frames);
	if (n >= 0 || err == EINTR)
		return true;
	if (err == EAGAIN || err == ENOBUFS || err == ENOMEM)
		return false;
	refused(u, b->out[0].n, err);
	return true;
}

void udp_port_flush(struct udp_port *u, uint64_t now)
{
	struct batch b;

	while (u->base.n_queue) {
		if (send_some(u, &b))
			continue;
		u->base.retry_at = now + SOCKET_PORT_RETRY;
		return;
	}
}

/* A full socket is not tried again by asking: rx does that when it is time. */
unsigned udp_port_tx_room(struct link_port *p)
{
	return udp_port(p)->base.n_queue ? 0 : SOCKET_PORT_QUEUE;
}

void udp_port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n)
{
	struct udp_port *u = udp_port(p);

	for (unsigned i = 0; i < n; i++)
		set_source_port(f[i]);
	socket_port_enqueue(&u->base, f, n);
	udp_port_flush(u, now);
}
