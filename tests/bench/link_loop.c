/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a link carries without a transport: packets of 4 KiB of payload from one end of a veth pair
 * to the other, one thread each, through packet sockets or through DPDK's af_packet driver, in a
 * network namespace of this program's own. What arrived is counted; ICRCs are left open.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <rte_eal.h>

#include "fabric/link/link_dpdk.h"
#include "fabric/link/link_packet.h"
#include "fabric/wire/packet.h"
#include "tests/bench/timing.h"
#include "tests/support/netns.h"

#define MTU     4200
#define PAYLOAD 4096u
#define POOL    2048u
#define BURST   32u
#define QUIET   50000000u /* ns without a packet: nothing more comes */

/* Frames say where they go. */
static const uint8_t mac[2][6] = { { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 } };
static const char *const name[2] = { "left0", "right0" };
static struct link_port *port[2];
static _Atomic bool is_over;
static uint64_t received, bytes, last_ns;

static int open_packet(unsigned i, struct frame_pool *pool)
{
	struct link_packet_conf conf = { .n_workers = 1,
					 .pool = pool,
					 .pool_size = POOL,
					 .interface = if_nametoindex(name[i]),
					 .mtu = MTU };
	static struct link_packet *link[2];

	memcpy(conf.mac, mac[i], 6);
	return link_packet_create(&link[i], &conf, &port[i]);
}

static int open_af_packet(unsigned i, struct frame_pool *pool)
{
	static struct link_dpdk *link[2];
	static char devargs[2][128];
	struct link_dpdk_conf conf = {
		.devargs = devargs[i], .n_workers = 1, .pool = pool, .pool_size = POOL, .mtu = MTU
	};

	snprintf(devargs[i], sizeof(devargs[i]),
		 "net_af_packet%u,iface=%s,blocksz=69632,framesz=4352,framecnt=1024,qdisc_bypass=1",
		 i, name[i]);
	memcpy(conf.mac, mac[i], 6);
	return link_dpdk_create(&link[i], &conf, &port[i]);
}

static void build(struct frame *f, const struct net_template *t, uint32_t psn)
{
	struct packet pk = { .opcode = BTH_SEND_ONLY,
			     .dest_qpn = 2,
			     .psn = psn & 0xffffff,
			     .payload_len = PAYLOAD };

	f->is_open = true;
	f->n_segs = 1;
	f->seg[0] = (struct frame_seg) { f->buf, PAYLOAD };
	packet_build(&pk, t, f);
}

static void send_all(uint32_t n)
{
	struct net_path path = { .vlan = NET_NO_VLAN, .hop_limit = 64, .udp_sport = 0xc000 };
	struct net_template t;

	memcpy(path.smac, mac[0], 6);
	memcpy(path.dmac, mac[1], 6);
	memcpy(path.sgid, "\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\1", 16);
	memcpy(path.dgid, "\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\2", 16);
	net_template_build(&t, &path);
	for (uint32_t done = 0; done < n;) {
		struct link_port *p = port[0];
		struct frame *f[BURST];
		unsigned room = p->ops->tx_room(p), k;

		k = p->ops->alloc(p, f, room < BURST ? room : BURST);
		for (unsigned i = 0; i < k; i++)
			build(f[i], &t, done + i);
		if (k)
			p->ops->tx(p, timing_now(), f, k);
		else
			p->ops->rx(p, timing_now(), f, 0); /* sends what waits */
		done += k;
	}
}

static void *receive_all(void *arg)
{
	struct link_port *p = port[1];

	last_ns = timing_now();
	for (;;) {
		struct frame *f[BURST];
		uint64_t now = timing_now();
		unsigned n = p->ops->rx(p, now, f, BURST);

		for (unsigned i = 0; i < n; i++)
			bytes += frame_len(f[i]);
		p->ops->free(p, f, n);
		received += n;
		if (n)
			last_ns = now;
		else if (is_over && now - last_ns > QUIET)
			return arg;
		else
			sched_yield();
	}
}

static bool set_up(const char *how)
{
	char *argv[] = {
		"link_loop",      "--no-huge",         "-m", "96", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=error", "-l", "0",  NULL
	};
	int (*open)(unsigned, struct frame_pool *) =
		strcmp(how, "packet") ? open_af_packet : open_packet;
	struct frame_pool *pool[2];
	cpu_set_t cpus;

	if (!netns_enter() ||
	    system("ip link add left0 address 02:00:00:00:00:01 type veth "
		   "peer name right0 address 02:00:00:00:00:02") ||
	    !netns_up("left0", MTU) || !netns_up("right0", MTU) ||
	    sched_getaffinity(0, sizeof(cpus), &cpus) || rte_eal_init(10, argv) < 0)
		return false;
	sched_setaffinity(0, sizeof(cpus), &cpus); /* the EAL pins */
	for (unsigned i = 0; i < 2; i++) {
		pool[i] = frame_pool_create(POOL, 1);
		if (!pool[i] || open(i, pool[i]))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	uint64_t start;
	uint32_t n;

	if (argc != 3) {
		fprintf(stderr, "usage: %s packet|af_packet COUNT\n", argv[0]);
		return 2;
	}
	n = timing_number(argv[2]);
	if (!set_up(argv[1]) || pthread_create(&thread, NULL, receive_all, NULL)) {
		fprintf(stderr,
			"no link: it needs a network namespace, and packet sockets in it\n");
		return 1;
	}
	start = timing_now();
	send_all(n);
	is_over = true;
	pthread_join(thread, NULL);
	printf("gbit_per_s %.3f\n", received ? 8.0 * (double)bytes / (double)(last_ns - start) : 0);
	printf("arrived %.4f\n", (double)received / n);
	return 0;
}
