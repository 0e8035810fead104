/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two devices, A (0) and B (1), and the wire between them, in virtual time. A turn does what a
 * worker's turn does: frames in, doorbells, deadlines, frames out. Nothing else moves time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/fake_app.h"
#include "tests/support/link_sim.h"
#include "tests/support/vclock.h"

struct pair {
	struct vclock clock;
	struct link_sim link;
	struct fake_dev dev[2];
	unsigned tx_burst;             /* frames asked of an engine at once; 0: 32 */
	void (*after_turn)(void *ctx); /* after every turn of every device */
	void *after_ctx;
	uint64_t turns;
};

struct pair_conf {
	struct link_sim_conf link;
	struct engine_conf engine; /* zero sizes: defaults; seed and check_icrc are used */
	bool no_icrc_check;
};

void pair_init(struct pair *p, const struct pair_conf *conf);
void pair_free(struct pair *p);

/* How two QPs are connected; zero: the default in brackets. */
struct pair_rc {
	uint32_t mtu;           /* IBV_MTU_* number [IBV_MTU_1024] */
	uint32_t psn[2];        /* first PSN that side i sends; as is */
	uint32_t access;        /* of both QPs [write, read, atomic] */
	uint8_t rd_atomic;      /* max_rd_atomic and max_dest_rd_atomic [8], 0xff: zero */
	uint8_t dest_rd_atomic; /* max_dest_rd_atomic where it differs, 0xff: zero */
	uint8_t timeout;        /* code t of 4.096 us x 2^t [8: 1.05 ms], 0xff: none */
	uint8_t retry_cnt;      /* [7], 0xff: zero */
	uint8_t rnr_retry;      /* [7: for ever], 0xff: zero */
	uint8_t min_rnr_timer;  /* code [1: 10 us], 0xff: code 0 */
};

/* Takes both from RESET (or INIT) to RTS. 0 or the first error. */
int pair_connect(struct pair *p, struct fake_qp *a, struct fake_qp *b, const struct pair_rc *rc);
/* One side only, towards a QP number of the other device. */
int pair_to_rtr(struct pair *p, struct fake_qp *qp, uint32_t dest_qpn, const struct pair_rc *rc);
int pair_to_rts(struct pair *p, struct fake_qp *qp, const struct pair_rc *rc);

/* The path from side i to the other device. */
struct net_path pair_path(const struct pair *p, unsigned i);

/* One turn of both devices, at the present time. True: something moved. */
bool pair_turn(struct pair *p);

/* On to the next thing that is due, or to `until` at the latest; false: nothing is due before it.
 */
bool pair_advance(struct pair *p, uint64_t until);

/*
 * Turns until nothing moves, then on to the next deadline, not past `until`. Returns when done()
 * says so (true), or at `until`, or when nothing is ever due (false). done may be NULL.
 */
bool pair_run(struct pair *p, uint64_t until, bool (*done)(void *ctx), void *ctx);

/* Runs until cq has a completion (true, *out) or `until` has passed. */
bool pair_wait(struct pair *p, struct fake_cq *cq, struct uroce_cqe *out, uint64_t until);
