/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet socket into frames. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/link/packet_port.h"

#define READS 4u /* calls in one turn when all they bring is for other workers */
#define CUT   32u

struct in {
	struct mmsghdr msg[PACKET_RX_MSGS];
	struct iovec iov[PACKET_RX_MSGS][2];
	struct packet_vnet vnet[PACKET_RX_MSGS];
};

static void prepare(struct in *in, uint8_t *bytes)
{
	for (unsigned i = 0; i < PACKET_RX_MSGS; i++) {
		in->iov[i][0] = (struct iovec) { &in->vnet[i], sizeof(in->vnet[i]) };
		in->iov[i][1] =
			(struct iovec) { bytes + (size_t)i * PACKET_RX_BYTES, PACKET_RX_BYTES };
		in->msg[i].msg_hdr = (struct msghdr) { .msg_iov = in->iov[i], .msg_iovlen = 2 };
	}
}

static bool read_one(struct packet_port *u, const struct in *in, unsigned i, struct raw_frame *r)
{
	uint32_t len = in->msg[i].msg_len;
	const struct packet_vnet *v = &in->vnet[i];
	enum link_drop why = LINK_DROP_RUNT;

	if (in->msg[i].msg_hdr.msg_flags & MSG_TRUNC)
		why = LINK_DROP_TOO_LONG;
	else if (len > sizeof(*v) &&
		 raw_frame_read(r, in->iov[i][1].iov_base, len - (uint32_t)sizeof(*v),
				v->gso_type == PACKET_VNET_GSO_UDP_L4 ? v->gso_size : 0))
		return true;
	socket_port_count(&u->base.count.drop[why], 1);
	return false;
}

/* false: there is nothing. */
static bool read_some(struct packet_port *u)
{
	struct packet_rx *rx = &u->rx;
	struct in in;
	int n;

	prepare(&in, rx->bytes);
	n = recvmmsg(u->fd, in.msg, PACKET_RX_MSGS, MSG_DONTWAIT, NULL);
	rx->n = rx->cur = rx->packet = 0;
	for (int i = 0; i < n; i++)
		if (read_one(u, &in, (unsigned)i, &rx->in[rx->n]))
			rx->n++;
	if (n > 0)
		return true;
	/* A super-frame of a kind that this kernel cannot describe; it is used up. */
	if (errno == EINVAL)
		socket_port_count(&u->base.count.drop[LINK_DROP_TOO_LONG], 1);
	return false;
}

/* Cuts packets of one message into at most n frames; fewer when the pool is dry. */
static unsigned cut(struct packet_port *u, struct frame **f, unsigned n)
{
	struct packet_rx *rx = &u->rx;
	const struct raw_frame *r = &rx->in[rx->cur];
	unsigned room = socket_port_alloc(&u->base.port, f, n), got = 0;

	while (got < room && rx->packet < raw_frame_count(r)) {
		if (raw_frame_cut(r, rx->packet++, f[got]))
			got++;
		else
			socket_port_count(&u->base.count.drop[LINK_DROP_TOO_LONG], 1);
	}
	socket_port_free(&u->base.port, f + got, room - got);
	if (rx->packet == raw_frame_count(r)) {
		rx->packet = 0;
		rx->cur++;
	}
	return room ? got : UINT32_MAX;
}

unsigned packet_port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	struct packet_port *u = packet_port(p);
	unsigned got, reads = 0;

	packet_port_flush(u, now);
	got = own_frames_give(&u->own, f, n);
	got += socket_port_take(&u->base, f + got, n - got);
	while (got < n) {
		unsigned k = n - got < CUT ? n - got : CUT;
		bool is_group;

		if (u->rx.cur == u->rx.n && (reads++ == READS || !read_some(u)))
			break;
		if (u->rx.cur == u->rx.n)
			continue; /* nothing of it was good */
		is_group = u->rx.in[u->rx.cur].is_group;
		k = cut(u, f + got, k);
		if (k == UINT32_MAX)
			break; /* no frames: deadline says that there is more */
		/* Every worker gets what is for groups from a socket of its own. */
		got += is_group ? socket_port_keep(&u->base, f + got, k)
				: socket_port_sort(&u->base, f + got, k);
	}
	return got;
}
