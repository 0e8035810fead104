/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/ethdev.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#define N_MBUFS 1024u
#define N_DESC  256u
/* Its fill ring has that many whatever it is told, and starves with fewer. */
#define N_DESC_AF_XDP 2048u
/* Room for the largest frame in one mbuf, where the driver does not need them smaller. */
#define ROOM       (RTE_PKTMBUF_HEADROOM + 4352u)
#define ROOM_JUMBO (RTE_PKTMBUF_HEADROOM + ETHDEV_BYTES)
#define MTU_JUMBO  4300u
/*
 * With what stands before it just a page: the driver tells the kernel that its memory is as long as
 * all mbufs one behind the other, where a pool puts none across two pages. What lies beyond would
 * be lost, and its mbuf with it.
 */
#define PAGE_BYTES     4096u
#define ROOM_AF_XDP    (PAGE_BYTES - RTE_MEMPOOL_ALIGN - sizeof(struct rte_mbuf))
#define AF_XDP_LONGEST 3520u /* what the kernel leaves of it behind its own headroom */
/* What the kernel puts before a frame in its ring, and the driver's own sizes. */
#define AF_PACKET_HEAD 66u
#define AF_PACKET_SIZE 2048u
#define MEMIF_SIZE     2048u

/* The value of an argument of the driver. */
static uint32_t argument(const char *devargs, const char *name, uint32_t otherwise)
{
	const char *at = strstr(devargs, name);
	unsigned long v = at ? strtoul(at + strlen(name), NULL, 0) : otherwise;

	return v < UINT16_MAX ? (uint32_t)v : UINT16_MAX;
}

/*
 * A driver that does not say it sends chains takes the first mbuf and the length of all: the rest
 * would be whatever lies behind it. memif of DPDK 22.11 loses count of its ring when a packet needs
 * several buffers and the last free one is reached, and sends what is in the ring over and over.
 */
static uint32_t longest(const struct ethdev *e, const char *devargs, bool has_chains)
{
	uint32_t n = ETHDEV_BYTES, room = rte_pktmbuf_data_room_size(e->pool);

	if (!strncmp(devargs, "net_af_packet", 13))
		n = argument(devargs, ",framesz=", AF_PACKET_SIZE) - AF_PACKET_HEAD;
	else if (e->is_af_xdp)
		n = AF_XDP_LONGEST;
	else if (!strncmp(devargs, "net_memif", 9))
		n = argument(devargs, ",bsize=", MEMIF_SIZE);
	if (!has_chains && room - RTE_PKTMBUF_HEADROOM < n)
		n = room - RTE_PKTMBUF_HEADROOM;
	return n < ETHDEV_BYTES ? n : ETHDEV_BYTES;
}

/* Without the bytes that a pool adds to spread objects over the channels of the memory. */
static struct rte_mempool *make_af_xdp_pool(const char *name)
{
	struct rte_pktmbuf_pool_private p = { .mbuf_data_room_size = ROOM_AF_XDP };
	struct rte_mempool *mp = rte_mempool_create_empty(
		name, 3 * N_DESC_AF_XDP, sizeof(struct rte_mbuf) + ROOM_AF_XDP, 0, sizeof(p),
		SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);

	if (!mp)
		return NULL;
	rte_mempool_set_ops_byname(mp, rte_mbuf_best_mempool_ops(), NULL);
	rte_pktmbuf_pool_init(mp, &p);
	if (rte_mempool_populate_default(mp) < 0) {
		rte_mempool_free(mp);
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}

static int make_pool(struct ethdev *e, const char *devargs, uint16_t mtu)
{
	unsigned room = mtu < MTU_JUMBO ? ROOM : ROOM_JUMBO;
	static atomic_uint serial;
	char name[RTE_MEMPOOL_NAMESIZE];

	e->is_af_xdp = !strncmp(devargs, "net_af_xdp", 10);
	snprintf(name, sizeof(name), "ethdev%u", atomic_fetch_add(&serial, 1));
	e->pool = e->is_af_xdp ? make_af_xdp_pool(name)
			       : rte_pktmbuf_pool_create(name, N_MBUFS, 0, 0, (uint16_t)room,
							 SOCKET_ID_ANY);
	return e->pool ? 0 : -ENOMEM;
}

static int probe(struct ethdev *e, const char *devargs)
{
	struct rte_dev_iterator it;
	uint16_t port;
	int err = rte_dev_probe(devargs);

	if (err)
		return err < 0 ? err : -EIO;
	RTE_ETH_FOREACH_MATCHING_DEV(port, devargs, &it)
	{
		rte_eth_iterator_cleanup(&it);
		e->port = port;
		e->is_probed = true;
		return 0;
	}
	return -ENODEV;
}

static int set_up_queues(const struct ethdev *e)
{
	uint16_t n_rx = e->is_af_xdp ? N_DESC_AF_XDP : N_DESC, n_tx = n_rx;
	int err = rte_eth_dev_adjust_nb_rx_tx_desc(e->port, &n_rx, &n_tx);

	if (!err)
		err = rte_eth_rx_queue_setup(e->port, 0, n_rx, SOCKET_ID_ANY, NULL, e->pool);
	if (!err)
		err = rte_eth_tx_queue_setup(e->port, 0, n_tx, SOCKET_ID_ANY, NULL);
	return err;
}

static int start(struct ethdev *e, const char *devargs, uint16_t mtu)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_eth_dev_info info;
	uint16_t now;
	int err = rte_eth_dev_info_get(e->port, &info);

	if (err)
		return err;
	conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	e->has_chains = conf.txmode.offloads != 0;
	e->longest = longest(e, devargs, e->has_chains);
	err = rte_eth_dev_configure(e->port, 1, 1, &conf);
	/* Not all drivers have an MTU to set; what does not fit is lost and counted then. */
	if (!err && mtu && rte_eth_dev_get_mtu(e->port, &now) == 0 && now != mtu)
		rte_eth_dev_set_mtu(e->port, mtu);
	if (!err)
		err = set_up_queues(e);
	if (!err)
		err = rte_eth_dev_start(e->port);
	if (err)
		return err;
	e->is_started = true;
	/* Our MAC need not be the driver's, and groups are for the engine to sort out. */
	rte_eth_promiscuous_enable(e->port);
	rte_eth_allmulticast_enable(e->port);
	return 0;
}

int ethdev_open(struct ethdev *e, const char *devargs, uint16_t mtu, bool sets_mtu)
{
	int err = make_pool(e, devargs, mtu);

	if (!err)
		err = probe(e, devargs);
	return err ? err : start(e, devargs, sets_mtu ? mtu : 0);
}

void ethdev_close(struct ethdev *e)
{
	struct rte_eth_dev_info info;

	if (e->is_started)
		rte_eth_dev_stop(e->port);
	if (e->is_probed && rte_eth_dev_info_get(e->port, &info) == 0) {
		rte_eth_dev_close(e->port);
		rte_dev_remove(info.device);
	}
	rte_mempool_free(e->pool);
}

const uint8_t *ethdev_bytes(const struct rte_mbuf *m, uint8_t *buf)
{
	if (m->nb_segs == 1)
		return rte_pktmbuf_mtod(m, const uint8_t *);
	return m->pkt_len > ETHDEV_BYTES ? NULL : rte_pktmbuf_read(m, 0, m->pkt_len, buf);
}

bool ethdev_out_start(const struct ethdev *e, struct ethdev_out *o)
{
	o->first = o->last = rte_pktmbuf_alloc(e->pool);
	return o->first;
}

bool ethdev_out_add(const struct ethdev *e, struct ethdev_out *o, const uint8_t *p, uint32_t len)
{
	while (len) {
		uint16_t room = rte_pktmbuf_tailroom(o->last);
		uint16_t n = len < room ? (uint16_t)len : room;

		if (!n) {
			struct rte_mbuf *more = e->has_chains ? rte_pktmbuf_alloc(e->pool) : NULL;

			if (!more)
				return false;
			o->last->next = more;
			o->last = more;
			o->first->nb_segs++;
			continue;
		}
		memcpy(rte_pktmbuf_mtod_offset(o->last, uint8_t *, o->last->data_len), p, n);
		o->last->data_len = (uint16_t)(o->last->data_len + n);
		o->first->pkt_len += n;
		p += n;
		len -= n;
	}
	return true;
}
