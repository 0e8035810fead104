/* SPDX-License-Identifier: BSD-3-Clause */
/* Two UDP links, A and B, in a network namespace of the test's own. */
#pragma once

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/addr/gid.h"
#include "fabric/link/link_udp.h"
#include "fabric/wire/packet.h"
#include "tests/support/ck_main.h"
#include "tests/support/netns.h"
#include "tests/unit/link/eal.h"

#define WORKERS 2u
#define POOL    256u

enum { A, B, N_LINKS };

static const uint8_t mac[N_LINKS][6] = { { 2, 1 }, { 2, 2 } };
static const char *const address[2][N_LINKS] = { { "127.0.0.1", "127.0.0.2" },
						 { "fd91::1", "fd91::2" } };

static bool has_netns;
static struct frame_pool *pool;
static struct link_udp *the_link[N_LINKS];
static struct link_port *port[N_LINKS][WORKERS];
static unsigned woken[WORKERS];

static inline void note_wake(void *ctx, unsigned worker)
{
	ck_assert_ptr_eq(ctx, woken);
	woken[worker]++;
}

static inline struct link_udp_addr parse(const char *text)
{
	struct link_udp_addr a = { .scope_id = 0 };

	ck_assert_int_eq(gid_parse(text, a.gid), 0);
	return a;
}

static inline int open_link(unsigned i, unsigned n_workers)
{
	struct link_udp_addr addr[2] = { parse(address[0][i]), parse(address[1][i]) };
	struct link_udp_conf conf = { .n_workers = n_workers,
				      .pool = pool,
				      .pool_size = POOL,
				      .mtu = 4200,
				      .addr = addr,
				      .n_addrs = 2,
				      .wake = note_wake,
				      .wake_ctx = woken };

	memcpy(conf.mac, mac[i], 6);
	return link_udp_create(&the_link[i], &conf, port[i]);
}

static inline void netns_once(void)
{
	has_netns = netns_enter();
	if (!has_netns)
		return;
	ck_assert(!system("ip -6 addr add fd91::1/128 dev lo nodad && "
			  "ip -6 addr add fd91::2/128 dev lo nodad"));
	eal_up();
}

static inline void setup(void)
{
	if (!has_netns)
		return;
	memset(woken, 0, sizeof(woken));
	netns_up("lo", 65536);
	pool = frame_pool_create(POOL, WORKERS);
	ck_assert_ptr_nonnull(pool);
	for (unsigned i = 0; i < N_LINKS; i++)
		ck_assert_int_eq(open_link(i, WORKERS), 0);
}

static inline void teardown(void)
{
	if (!has_netns)
		return;
	for (unsigned i = 0; i < N_LINKS; i++)
		link_udp_destroy(the_link[i]);
	ck_assert_uint_eq(frame_pool_free_count(pool), POOL);
	frame_pool_destroy(pool);
}

/* Every case: without a namespace of our own the addresses may be somebody's. */
#define NEED_NETNS()                                                        \
	do {                                                                \
		if (!has_netns) {                                           \
			fprintf(stderr, "# skipped: no namespaces here\n"); \
			return;                                             \
		}                                                           \
	} while (0)

static inline struct net_path path_between(bool v6, unsigned from, unsigned to)
{
	struct net_path p = {
		.vlan = NET_NO_VLAN, .is_ipv4 = !v6, .hop_limit = 64, .udp_sport = ROCE_UDP_PORT
	};

	gid_parse(address[v6][from], p.sgid);
	gid_parse(address[v6][to], p.dgid);
	return p;
}

static inline struct frame *make_on(struct link_port *p, const struct net_path *path,
				    uint8_t opcode, uint32_t qpn, uint32_t psn, uint32_t len)
{
	struct packet pk = { .opcode = opcode, .dest_qpn = qpn, .psn = psn, .payload_len = len };
	struct net_template t;
	struct frame *f;

	ck_assert_uint_eq(p->ops->alloc(p, &f, 1), 1);
	for (uint32_t i = 0; i < len; i++)
		f->buf[i] = (uint8_t)(psn * 7 + i);
	f->n_segs = len ? 1 : 0;
	f->seg[0] = (struct frame_seg) { f->buf, len };
	net_template_build(&t, path);
	packet_build(&pk, &t, f);
	return f;
}

static inline struct frame *make(bool v6, uint32_t qpn, uint32_t psn, uint32_t len)
{
	struct net_path path = path_between(v6, A, B);

	return make_on(port[A][0], &path, BTH_SEND_ONLY, qpn, psn, len);
}

static inline void wait_readable(struct link_port *p)
{
	struct pollfd fd = { .fd = p->ops->wait_fd(p), .events = POLLIN };

	ck_assert_int_eq(poll(&fd, 1, 5000), 1);
}

/* Receives exactly n on p; the caller frees them. */
static inline void receive(struct link_port *p, struct frame **f, unsigned n)
{
	unsigned got = 0;

	while (got < n) {
		if (p->ops->deadline(p) != 0)
			wait_readable(p);
		got += p->ops->rx(p, 0, f + got, n - got);
	}
	ck_assert_uint_eq(got, n);
}

static inline void assert_is(const struct frame *f, uint32_t psn, uint32_t len)
{
	struct packet pk;

	ck_assert_int_eq(packet_parse(&pk, f, true), PACKET_OK);
	ck_assert_uint_eq(pk.psn, psn);
	ck_assert_uint_eq(pk.payload_len, len);
	for (uint32_t s = 0, at = 0; s < pk.n_segs; s++)
		for (uint32_t i = 0; i < pk.seg[s].len; i++, at++)
			ck_assert_uint_eq(pk.seg[s].base[i], (uint8_t)(psn * 7 + at));
}

static inline uint64_t drops(const struct link_port *p, enum link_drop why)
{
	struct link_counters c;

	p->ops->counters(p, &c);
	return c.drop[why];
}

static inline void assert_nothing_comes(struct link_port *p)
{
	struct frame *f;

	/* Loopback delivers within the send. */
	ck_assert_uint_eq(p->ops->rx(p, 0, &f, 1), 0);
}
