/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK port with one queue each way, and the mbufs for it. Private to fabric/link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ETHDEV_BURST 32u
#define ETHDEV_BYTES 9216u /* longest frame that is taken, however many mbufs it comes in */

struct rte_mempool;
struct rte_mbuf;

struct ethdev {
	uint16_t port;
	bool is_probed, is_started, is_af_xdp;
	bool has_chains;  /* it sends frames of several mbufs */
	uint32_t longest; /* frame that it sends and receives whole */
	struct rte_mempool *pool;
};

/* Makes and starts it. sets_mtu: nobody else sets that of its interface. 0 or a negative errno;
 * whatever came of it is for ethdev_close. */
int ethdev_open(struct ethdev *e, const char *devargs, uint16_t mtu, bool sets_mtu);
void ethdev_close(struct ethdev *e);

/* One that a kernel would have given bytes: whole in one piece, or copied into buf. NULL: too long.
 */
const uint8_t *ethdev_bytes(const struct rte_mbuf *m, uint8_t *buf);

/* An mbuf, or several, of these bytes appended one after another. false: no room. */
struct ethdev_out {
	struct rte_mbuf *first, *last;
};
bool ethdev_out_start(const struct ethdev *e, struct ethdev_out *o);
bool ethdev_out_add(const struct ethdev *e, struct ethdev_out *o, const uint8_t *p, uint32_t len);
