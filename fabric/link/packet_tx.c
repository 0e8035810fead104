/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames into a packet socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/link/gso_head.h"
#include "fabric/link/packet_port.h"
#include "fabric/wire/hdr.h"

/* What one call sends: the head of the queue. */
struct batch {
	unsigned n, n_iov;
	unsigned frames[PACKET_TX_MSGS]; /* in each message */
	struct gso_outer outer[PACKET_TX_MSGS];
	struct packet_vnet vnet[PACKET_TX_MSGS];
	struct gso_head head[PACKET_TX_MSGS];
	struct mmsghdr msg[PACKET_TX_MSGS];
	struct iovec iov[SOCKET_PORT_QUEUE * (2 + FRAME_SEGS) + 2 * PACKET_TX_MSGS];
};

static void add_iov(struct batch *b, const void *base, uint32_t len)
{
	if (len)
		b->iov[b->n_iov++] = (struct iovec) { (void *)base, len };
}

/* All of a frame from this byte of its head on. */
static void add_frame(struct batch *b, const struct frame *f, uint32_t from)
{
	add_iov(b, f->head + from, f->head_len - from);
	for (uint32_t i = 0; i < f->n_segs; i++)
		add_iov(b, f->seg[i].base, f->seg[i].len);
	add_iov(b, f->trailer, f->trailer_len);
}

/* One message of the first n frames at f; a super-frame if there are several. */
static void add_message(struct packet_port *u, struct batch *b, struct frame *const *f, unsigned n,
			const struct gso_outer *outer)
{
	struct packet_vnet *v = &b->vnet[b->n];
	struct msghdr *m = &b->msg[b->n].msg_hdr;
	uint32_t skip = 0;

	*m = (struct msghdr) { .msg_iov = b->iov + b->n_iov };
	*v = (struct packet_vnet) { 0 };
	add_iov(b, v, sizeof(*v));
	if (n > 1) {
		skip = outer->payload_off;
		gso_head_make(&b->head[b->n], f, n, outer);
		*v = (struct packet_vnet) {
			.flags = PACKET_VNET_NEEDS_CSUM,
			.gso_type = PACKET_VNET_GSO_UDP_L4,
			.hdr_len = (uint16_t)skip,
			.gso_size = (uint16_t)(frame_len(f[0]) - skip),
			.csum_start = (uint16_t)(skip - sizeof(struct udp_hdr)),
			.csum_offset = offsetof(struct udp_hdr, checksum),
		};
		add_iov(b, b->head[b->n].bytes, skip);
		gso_change_icrc(&u->icrc, f, n, outer);
	}
	for (unsigned i = 0; i < n; i++)
		add_frame(b, f[i], skip);
	m->msg_iovlen = (size_t)(b->iov + b->n_iov - m->msg_iov);
	b->outer[b->n] = *outer;
	b->frames[b->n++] = n;
}

static void fill(struct packet_port *u, struct batch *b)
{
	struct frame *const *f = u->base.queue;
	unsigned left = u->base.n_queue, single = u->n_single;

	b->n = b->n_iov = 0;
	while (left && b->n < PACKET_TX_MSGS) {
		struct gso_outer outer = { 0 };
		unsigned n = 1;

		if (gso_outer(f[0], &outer) && u->has_gso && !single)
			n = gso_run(f, left, &outer);
		single -= single ? 1 : 0;
		add_message(u, b, f, n, &outer);
		f += n;
		left -= n;
	}
}

static void take_off(struct packet_port *u, unsigned n)
{
	u->n_single -= n < u->n_single ? n : u->n_single;
	socket_port_sent(&u->base, n);
}

/* The kernel refused the first message for good. */
static void refused(struct packet_port *u, unsigned n, int err)
{
	enum link_drop why = LINK_DROP_SEND_FAILED;

	if (n > 1 && err != ENETDOWN && err != ENXIO) {
		/* It may be the way of sending or one of the packets: they go one by one. */
		u->n_single = n;
		if (err == EINVAL || err == EIO || err == EOPNOTSUPP)
			u->has_gso = false;
		return;
	}
	if (err == EMSGSIZE)
		why = LINK_DROP_TOO_LONG;
	else if (err == ENETDOWN || err == ENXIO)
		why = LINK_DROP_NO_ROUTE;
	socket_port_count(&u->base.count.drop[why], n);
	take_off(u, n);
}

/* ICRCs of what was not sent become again those that the engine made. */
static void put_back(struct packet_port *u, const struct batch *b, unsigned sent)
{
	struct frame *const *f = u->base.queue;

	for (unsigned i = 0; i < b->n; i++) {
		if (i >= sent && b->frames[i] > 1)
			gso_change_icrc(&u->icrc, f, b->frames[i], &b->outer[i]);
		f += b->frames[i];
	}
}

/* One call. false: the socket is full. */
static bool send_some(struct packet_port *u, struct batch *b)
{
	unsigned n_frames = 0, sent;
	int n, err;

	fill(u, b);
	n = sendmmsg(u->fd, b->msg, b->n, MSG_DONTWAIT);
	err = errno;
	sent = n > 0 ? (unsigned)n : 0;
	put_back(u, b, sent);
	for (unsigned i = 0; i < sent; i++)
		n_frames += b->frames[i];
	take_off(u, n_frames);
	if (n >= 0 || err == EINTR)
		return true;
	if (err == EAGAIN || err == ENOBUFS || err == ENOMEM)
		return false;
	refused(u, b->frames[0], err);
	return true;
}

static void send_all(struct packet_port *u, uint64_t now)
{
	struct batch b;

	while (u->base.n_queue) {
		if (send_some(u, &b))
			continue;
		u->base.retry_at = now + SOCKET_PORT_RETRY;
		return;
	}
}

static uint32_t l3_len(const struct frame *f)
{
	uint32_t l2 = sizeof(struct eth_hdr);

	if (be16_get(((const struct eth_hdr *)f->head)->type) == ETH_TYPE_VLAN)
		l2 += (uint32_t)sizeof(struct vlan_tag);
	return frame_len(f) - l2;
}

/* Gives frames their next hop; those that have one are left in f. */
static unsigned route(struct packet_port *u, uint64_t now, struct frame **f, unsigned n)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		/* The kernel compares the packets of a super-frame with no MTU. */
		if (l3_len(f[i]) > u->base.port.mtu) {
			socket_port_drop(&u->base, &f[i], 1, LINK_DROP_TOO_LONG);
			continue;
		}
		switch (next_hop_set(&u->hop, f[i])) {
		case NEXT_HOP_GO:
			f[left++] = f[i];
			break;
		case NEXT_HOP_WAIT:
			if (!next_hop_wait(&u->hop, now, f[i]))
				socket_port_drop(&u->base, &f[i], 1, LINK_DROP_NO_NEIGHBOUR);
			break;
		case NEXT_HOP_NONE:
			socket_port_drop(&u->base, &f[i], 1, LINK_DROP_NO_ROUTE);
			break;
		}
	}
	return left;
}

/* Those whose neighbour answered, or did not in time. */
static void release(struct packet_port *u, uint64_t now)
{
	struct frame *go[NEXT_HOP_WAITING], *lost[NEXT_HOP_WAITING];
	unsigned n_go, n_lost;

	next_hop_take(&u->hop, now, go, &n_go, lost, &n_lost);
	socket_port_drop(&u->base, lost, n_lost, LINK_DROP_NO_NEIGHBOUR);
	n_go = own_frames_take(&u->own, &u->base, go, n_go);
	socket_port_enqueue(&u->base, go, n_go);
	send_all(u, now);
}

void packet_port_flush(struct packet_port *u, uint64_t now)
{
	if (u->base.n_queue && u->base.retry_at <= now)
		send_all(u, now);
	if (!u->base.n_queue && next_hop_is_due(&u->hop, now))
		release(u, now);
}

/* A full socket is not tried again by asking: rx does that when it is time. */
unsigned packet_port_tx_room(struct link_port *p)
{
	return packet_port(p)->base.n_queue ? 0 : SOCKET_PORT_QUEUE;
}

void packet_port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n)
{
	struct packet_port *u = packet_port(p);
	struct frame *left[SOCKET_PORT_QUEUE];
	unsigned n_left = n < SOCKET_PORT_QUEUE ? n : SOCKET_PORT_QUEUE;

	memcpy(left, f, n_left * sizeof(f[0]));
	socket_port_drop(&u->base, f + n_left, n - n_left, LINK_DROP_RING_FULL);
	n_left = route(u, now, left, n_left);
	n_left = own_frames_take(&u->own, &u->base, left, n_left);
	socket_port_enqueue(&u->base, left, n_left);
	send_all(u, now);
}
