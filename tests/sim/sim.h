/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The random simulation: a scenario drawn from one seed, run over two engines and a bad wire, next
 * to a plain model of what the verbs promise. Every byte that the core writes is judged when it is
 * written, every completion when it is taken:
 *   - each posted WR completes exactly once, in order; after an error all others are flushed;
 *   - a byte lands only where a WR in flight may put it, has the value that WR carries, and for
 *     SEND and WRITE lands exactly once and in order;
 *   - an atomic is executed at most once, and its result is the value that was there;
 *   - window and outstanding READs stay within bounds; every frame sent is well formed;
 *   - all comes to an end in bounded time, and nothing is left behind;
 *   - where the wire loses nothing, nothing is sent twice and no NAK is sent (but RNR NAKs).
 * Each WR has ranges of its own, never used again, so the model needs no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/pair.h"

#define SIM_QPS    6u
#define SIM_CQS    3u
#define SIM_RANGES 16384u
#define SIM_WRS    4096u

/* What a WR is meant to run into; SIM_GOOD: nothing. */
enum sim_flaw { SIM_GOOD, SIM_BAD_LKEY, SIM_BAD_RKEY, SIM_BAD_BOUNDS, SIM_SHORT_RECV };

/* DRAWN: not posted. OK, FAILED: completed so. GONE: its QP was reset or destroyed. */
enum sim_fate { SIM_DRAWN, SIM_POSTED, SIM_OK, SIM_FAILED, SIM_GONE };

struct sim_wr {
	uint64_t wr_id;
	uint32_t index; /* in its SQ */
	uint32_t len;
	uint8_t opcode, flaw, fate;
	bool is_signaled;
	uint32_t n_executed;            /* atomics */
	uint64_t operand, compare, old; /* atomics: identity, comparand, result */
	uint32_t msg;                   /* which RQE it takes; UINT32_MAX: none */
	uint32_t imm;
	uint32_t placed; /* bytes seen at the destination */
	uint8_t *bytes;  /* what it carries or fetches, len of them */
	struct sim_qp *qp;
	struct uroce_sge sge[UROCE_MAX_SGE];
	uint32_t n_sge;
};

struct sim_recv {
	uint64_t wr_id;
	uint32_t room, placed;
	struct sim_qp *qp;
	uint32_t index;
	uint8_t fate;
};

/* A piece of a region that belongs to one WR or one receive; off grows from entry to entry. */
struct sim_range {
	uint32_t off, len;
	uint32_t base; /* of its first byte in the message */
	struct sim_wr *wr;
	struct sim_recv *recv;
};

struct sim_arena {
	struct fake_region *r;
	struct sim_range *range;
	uint32_t n, used;
};

struct sim_qp {
	struct sim *sim;
	unsigned side;
	struct fake_qp *qp; /* NULL: destroyed */
	struct sim_qp *peer;
	struct sim_wr **wr;  /* of this life of the QP */
	uint32_t n_wr, head; /* head: oldest not done */
	struct sim_recv **recv;
	uint32_t n_recv, recv_head;
	struct sim_wr **msg; /* those that take an RQE, in order */
	uint32_t n_msg;
	uint32_t budget;           /* WRs still to post */
	uint32_t unsignaled;       /* in a row */
	uint32_t exec;             /* the peer's WR (index) being executed here */
	bool sq_failed, rq_failed; /* an error completion was seen */
	bool is_stopped;           /* reset, destroyed or dead: completes nothing any more */
	uint32_t rd_psn[64], rd_end[64], n_rd; /* READs and atomics on the wire */
};

/* Drawn from the seed. */
struct sim_scenario {
	struct link_sim_conf link;
	struct pair_rc rc;
	uint32_t mtu, n_qp, n_cq, sq_depth, rq_depth, max_sge, max_inline, budget;
	uint32_t arena_bytes, max_len;
	bool is_lossy, is_slow_receiver, has_flaws, has_finite_rnr, is_sig_all;
	bool has_kill, has_reset, has_destroy;
	uint64_t event_at;
	uint32_t window, tx_burst;
};

enum sim_kind { SIM_SRC, SIM_DST, SIM_FIXED, SIM_IN, SIM_RECV, SIM_WORDS, SIM_N_KINDS };

struct sim {
	uint64_t seed, rng;
	struct sim_scenario sc;
	struct pair p;
	struct fake_cq *cq[2][SIM_CQS];
	struct sim_arena arena[2][SIM_N_KINDS];
	struct sim_qp q[2][SIM_QPS];
	uint64_t next_wr_id, next_app, event_at;
	unsigned event_step, event_side, event_qp;
	bool is_dead[2];  /* the application of that side was killed */
	bool is_draining; /* the end: all QPs are in ERR */
	bool is_full;     /* no memory left for receives */
	struct sim_watch {
		struct sim *sim;
		unsigned side;
	} watch[2];
	struct sim_wr **all; /* to find atomics by operand, and to free */
	uint32_t n_all, cap_all;
	struct sim_recv **all_recv;
	uint32_t n_all_recv, cap_all_recv;
	struct sim_stats {
		uint64_t ok, failed, flushed, received, frames, virtual_ns, turns, calm;
		uint64_t by_status[32];
	} stats;
};

/* Runs the scenario of a seed; a breach prints seed, scenario and frame log and ends the test. */
void sim_run(uint64_t seed, struct sim_stats *total);

void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/* sim_scenario.c */
void sim_draw(struct sim *s);
void sim_setup(struct sim *s);
void sim_connect(struct sim *s, unsigned i);
void sim_restart(struct sim_qp *q); /* forget what was posted; nothing of it may have effects */
void sim_release(struct sim *s);

/* sim_post.c: one more WR or receive, if there is room and work. */
bool sim_post_send(struct sim_qp *q);
bool sim_post_recv(struct sim_qp *q);
uint32_t sim_reserve(struct sim *s, struct sim_arena *a, uint32_t len, uint32_t align);

/* sim_check.c */
void sim_watch(struct sim *s);
void sim_poll(struct sim *s, unsigned side, unsigned most);
void sim_settle(struct sim_qp *q);
void sim_check_turn(struct sim *s);
void sim_check_end(struct sim *s);
void sim_check_calm(struct sim *s);
