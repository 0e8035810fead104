/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames into an ethdev's mbufs. */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "fabric/link/dpdk_port.h"
#include "fabric/wire/hdr.h"

static struct rte_mbuf *to_mbuf(const struct ethdev *e, const struct frame *f)
{
	struct ethdev_out o;
	bool ok;

	if (!ethdev_out_start(e, &o))
		return NULL;
	ok = ethdev_out_add(e, &o, f->head, f->head_len);
	for (uint32_t i = 0; ok && i < f->n_segs; i++)
		ok = ethdev_out_add(e, &o, f->seg[i].base, f->seg[i].len);
	if (ok && ethdev_out_add(e, &o, f->trailer, f->trailer_len))
		return o.first;
	rte_pktmbuf_free(o.first);
	return NULL;
}

/* One burst from the head of the queue. false: the driver, or its mbufs, have no room. */
static bool send_some(struct dpdk_port *u)
{
	const struct ethdev *e = &u->link->eth;
	struct rte_mbuf *m[ETHDEV_BURST];
	unsigned n = 0, sent;

	while (n < u->base.n_queue && n < ETHDEV_BURST) {
		m[n] = to_mbuf(e, u->base.queue[n]);
		if (!m[n])
			break;
		n++;
	}
	sent = n ? rte_eth_tx_burst(e->port, 0, m, (uint16_t)n) : 0;
	rte_pktmbuf_free_bulk(m + sent, n - sent);
	socket_port_sent(&u->base, sent);
	return sent != 0;
}

static void send_all(struct dpdk_port *u, uint64_t now)
{
	while (u->base.n_queue) {
		if (send_some(u)) {
			u->last_seen = u->last_sent = now;
			continue;
		}
		u->base.retry_at = now + SOCKET_PORT_RETRY;
		if (now - u->last_sent < DPDK_STUCK)
			return;
		/* Nobody at the other end: what waits would be old when somebody comes. */
		socket_port_count(&u->base.count.drop[LINK_DROP_SEND_FAILED], u->base.n_queue);
		socket_port_sent(&u->base, u->base.n_queue);
	}
}

void dpdk_port_say(struct dpdk_port *u, const uint8_t *bytes, uint32_t len)
{
	const struct ethdev *e = &u->link->eth;
	struct ethdev_out o;

	/* Nobody relies on an answer: who needs it asks again. */
	if (!ethdev_out_start(e, &o))
		return;
	if (!ethdev_out_add(e, &o, bytes, len) || !rte_eth_tx_burst(e->port, 0, &o.first, 1))
		rte_pktmbuf_free(o.first);
}

/* The next hop; where we find neighbours ourselves, a question may go out. */
static enum next_hop_verdict find(struct dpdk_port *u, uint64_t now, struct frame *f)
{
	enum next_hop_verdict v = next_hop_set(&u->hop, f);
	uint8_t gid[GID_LEN], bytes[ETHER_HOST_BYTES];
	uint32_t len;

	if (v == NEXT_HOP_GO || !u->link->host.table || !next_hop_destination(f, gid))
		return v;
	len = ether_host_ask(&u->link->host, now, gid, bytes);
	if (!len)
		return v;
	dpdk_port_say(u, bytes, len);
	return NEXT_HOP_WAIT;
}

static uint32_t l3_len(const struct frame *f)
{
	uint32_t l2 = sizeof(struct eth_hdr);

	if (be16_get(((const struct eth_hdr *)f->head)->type) == ETH_TYPE_VLAN)
		l2 += (uint32_t)sizeof(struct vlan_tag);
	return frame_len(f) - l2;
}

/* Gives frames their next hop; those that have one are left in f. */
static unsigned route(struct dpdk_port *u, uint64_t now, struct frame **f, unsigned n)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		if (l3_len(f[i]) > u->base.port.mtu) {
			socket_port_drop(&u->base, &f[i], 1, LINK_DROP_TOO_LONG);
			continue;
		}
		switch (find(u, now, f[i])) {
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

static void append(struct dpdk_port *u, uint64_t now, struct frame *const *f, unsigned n)
{
	if (!u->base.n_queue)
		u->last_sent = now;
	socket_port_enqueue(&u->base, f, n);
}

/* By worker 0, whose the queue is. */
static void enqueue(struct dpdk_port *u, uint64_t now, struct frame **f, unsigned n)
{
	n = route(u, now, f, n);
	/* A kernel may have said that a neighbour is this host. */
	n = own_frames_take(&u->own, &u->base, f, n);
	append(u, now, f, n);
}

/* Those whose neighbour answered, or did not in time. */
static void release(struct dpdk_port *u, uint64_t now)
{
	struct frame *go[NEXT_HOP_WAITING], *lost[NEXT_HOP_WAITING];
	unsigned n_go, n_lost;

	next_hop_take(&u->hop, now, go, &n_go, lost, &n_lost);
	socket_port_drop(&u->base, lost, n_lost, LINK_DROP_NO_NEIGHBOUR);
	n_go = own_frames_take(&u->own, &u->base, go, n_go);
	append(u, now, go, n_go);
}

void dpdk_port_flush(struct dpdk_port *u, uint64_t now)
{
	struct frame *f[ETHDEV_BURST];
	unsigned n;

	if (u->base.n_queue && u->base.retry_at <= now)
		send_all(u, now);
	if (!u->base.n_queue && next_hop_is_due(&u->hop, now)) {
		release(u, now);
		send_all(u, now);
	}
	while (!u->base.n_queue && (n = handoff_take(u->link->out, DPDK_OUT, f, ETHDEV_BURST))) {
		enqueue(u, now, f, n);
		send_all(u, now);
	}
}

unsigned dpdk_port_tx_room(struct link_port *p)
{
	return dpdk_port(p)->base.n_queue ? 0 : SOCKET_PORT_QUEUE;
}

/* Worker 0 counts them, when it takes them over. */
static void give_to_first(struct dpdk_port *u, struct frame **f, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!handoff_give(u->link->out, DPDK_OUT, f[i]))
			socket_port_drop(&u->base, &f[i], 1, LINK_DROP_RING_FULL);
}

void dpdk_port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n)
{
	struct dpdk_port *u = dpdk_port(p);
	struct frame *left[SOCKET_PORT_QUEUE];
	unsigned n_left = n < SOCKET_PORT_QUEUE ? n : SOCKET_PORT_QUEUE;

	memcpy(left, f, n_left * sizeof(f[0]));
	socket_port_drop(&u->base, f + n_left, n - n_left, LINK_DROP_RING_FULL);
	if (u->base.worker != 0) {
		n_left = own_frames_take(&u->own, &u->base, left, n_left);
		give_to_first(u, left, n_left);
		return;
	}
	enqueue(u, now, left, n_left);
	send_all(u, now);
}
