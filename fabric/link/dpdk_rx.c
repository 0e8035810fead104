/* SPDX-License-Identifier: BSD-3-Clause */
/* An ethdev's mbufs into frames. */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "fabric/link/dpdk_port.h"
#include "fabric/link/raw_frame.h"
#include "fabric/link/steer.h"
#include "fabric/wire/hdr.h"

#define READS    4u         /* bursts in one turn when all they bring is for others */
#define LOOK_MIN 20000u     /* ns between two looks at the driver: just after traffic */
#define LOOK_MAX 1000000u   /* and long after */
#define TICK     250000000u /* ns between two looks at the neighbours we found ourselves */

/* The VLAN that a frame came in; 0: none. A driver may have taken the tag off. */
static uint16_t vlan_of(const struct rte_mbuf *m, const uint8_t *p, uint32_t len)
{
	const struct eth_hdr *eth = (const struct eth_hdr *)p;

	if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
		return m->vlan_tci & 0xfff;
	if (len < sizeof(*eth) + sizeof(struct vlan_tag) || be16_get(eth->type) != ETH_TYPE_VLAN)
		return 0;
	return be16_get(((const struct vlan_tag *)(eth + 1))->tci) & 0xfff;
}

/* The wire may bring anything, also what is for a kernel beside us. */
static bool is_for_us(const struct dpdk_port *u, const struct rte_mbuf *m, const uint8_t *p,
		      uint32_t len)
{
	if (len < sizeof(struct eth_hdr) || vlan_of(m, p, len) != u->link->vlan)
		return false;
	return (p[0] & 1) || !memcmp(p, u->base.port.mac, 6);
}

static bool is_roce(const uint8_t *p, uint32_t len)
{
	const struct frame view = { .head = (uint8_t *)p, .head_len = len };

	return steer_bth(&view, NULL) != NULL;
}

static void count(struct dpdk_port *u, enum link_drop why)
{
	socket_port_count(&u->base.count.drop[why], 1);
}

/* Copies a RoCE frame into the empty frame f. */
static bool copy(struct dpdk_port *u, const uint8_t *p, uint32_t len, struct frame *f)
{
	struct raw_frame r;

	if (!raw_frame_read(&r, p, len, 0))
		count(u, LINK_DROP_RUNT);
	else if (!raw_frame_cut(&r, 0, f))
		count(u, LINK_DROP_TOO_LONG);
	else
		return true;
	return false;
}

/* One mbuf. True: f has a frame. */
static bool take(struct dpdk_port *u, uint64_t now, const struct rte_mbuf *m, struct frame *f)
{
	const uint8_t *p = ethdev_bytes(m, u->flat);
	struct ether_host *host = &u->link->host;
	uint8_t answer[ETHER_HOST_BYTES];
	uint32_t len = m->pkt_len;

	if (!p) {
		count(u, LINK_DROP_TOO_LONG);
		return false;
	}
	if (!is_for_us(u, m, p, len))
		return false;
	if (is_roce(p, len))
		return copy(u, p, len, f);
	if (host->table && ether_host_wants(p, len)) {
		uint32_t n = ether_host_input(host, now, p, len, answer);

		if (n)
			dpdk_port_say(u, answer, n);
	}
	return false;
}

/* What was read, into at most n frames for this worker; fewer when the pool is dry. */
static unsigned cut(struct dpdk_port *u, uint64_t now, struct frame **f, unsigned n)
{
	struct dpdk_in *in = &u->in;
	unsigned room = socket_port_alloc(&u->base.port, f, n), got = 0;

	while (got < room && in->cur < in->n) {
		struct rte_mbuf *m = in->m[in->cur++];
		struct frame *one = f[got];

		if (take(u, now, m, one)) {
			if (own_frames_is_for_groups(one)) {
				own_frames_copy_to_others(&u->base, one);
				socket_port_keep(&u->base, &one, 1);
				got++;
			} else if (socket_port_sort(&u->base, &one, 1)) {
				got++;
			} else if (got < --room) {
				f[got] = f[room];
			}
		}
		rte_pktmbuf_free(m);
	}
	socket_port_free(&u->base.port, f + got, room - got);
	return got;
}

static bool read_some(struct dpdk_port *u, uint64_t now)
{
	struct dpdk_in *in = &u->in;

	in->cur = 0;
	in->n = rte_eth_rx_burst(u->link->eth.port, 0, in->m, ETHDEV_BURST);
	if (in->n)
		u->last_seen = now;
	return in->n;
}

static void look_again(struct dpdk_port *u, uint64_t now)
{
	uint64_t wait = (now - u->last_seen) / 4;

	if (wait < LOOK_MIN)
		wait = LOOK_MIN;
	u->next_look = now + (wait < LOOK_MAX ? wait : LOOK_MAX);
}

static void tick(struct dpdk_port *u, uint64_t now)
{
	uint8_t question[ETHER_HOST_BYTES];
	uint32_t len;

	if (!u->link->host.table || now < u->next_tick)
		return;
	u->next_tick = now + TICK;
	for (unsigned i = 0; i < ETHDEV_BURST; i++) {
		len = ether_host_tick(&u->link->host, now, question);
		if (!len)
			return;
		dpdk_port_say(u, question, len);
	}
}

unsigned dpdk_port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	struct dpdk_port *u = dpdk_port(p);
	unsigned got, reads = 0;

	got = own_frames_give(&u->own, f, n);
	got += socket_port_take(&u->base, f + got, n - got);
	if (u->base.worker != 0)
		return got;
	dpdk_port_flush(u, now);
	tick(u, now);
	while (got < n) {
		unsigned k;

		if (u->in.cur == u->in.n && (reads++ == READS || !read_some(u, now)))
			break;
		k = cut(u, now, f + got, n - got);
		if (!k && u->in.cur < u->in.n)
			break; /* no frames: deadline says that there is more */
		got += k;
	}
	look_again(u, now);
	return got;
}

uint64_t dpdk_overruns(const struct link_dpdk *l)
{
	struct rte_eth_stats s;

	if (!l->eth.is_started || rte_eth_stats_get(l->eth.port, &s))
		return 0;
	return s.imissed + s.ierrors + s.rx_nombuf;
}
