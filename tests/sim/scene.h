/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A directed scenario: one QP on A connected to one on B, a CQ for each, a region of memory for
 * each, and a wire on which chosen frames are lost. The smallest stage on which a rule shows.
 */
#pragma once

#include "tests/support/ck_main.h"
#include "tests/support/pair.h"

#define SCENE_MEM (1u << 17) /* bytes of memory on each side, unless the conf says so */

struct scene_fault {
	uint8_t op;   /* BTH operation; 0xff: any */
	int from;     /* side; -1: any */
	uint32_t nth; /* the first is 1; 0: all */
	enum link_sim_act act;
	uint32_t seen;
};

struct scene {
	struct pair p;
	struct fake_cq *cq[2];
	struct fake_qp *qp[2];
	struct fake_region *mem[2];
	struct scene_fault fault[4];
	unsigned n_faults;
	uint32_t sent[2][32];  /* frames, by side and operation */
	uint32_t naks[2][256]; /* frames with an AETH, by syndrome */
	uint64_t last_tx[2];   /* when that side last sent */
	uint64_t first_tx[2][64], n_tx[2];
};

struct scene_conf {
	struct pair_conf pair;
	struct pair_rc rc;
	uint32_t type, sq_depth, rq_depth;
	uint32_t mem;
};

/* conf may be NULL. The QPs are in RTS. */
void scene_init(struct scene *s, const struct scene_conf *conf);
void scene_free(struct scene *s);
void scene_fault(struct scene *s, int from, uint8_t op, uint32_t nth, enum link_sim_act act);

/* From A (or B) to the other; source and destination at the same offset; signaled. */
void scene_post(struct scene *s, unsigned side, uint8_t opcode, uint32_t off, uint32_t len);
void scene_recv(struct scene *s, unsigned side, uint32_t off, uint32_t len);
/* The next completion of that side's CQ; fails the test when there is none within ms. */
struct uroce_cqe scene_wait(struct scene *s, unsigned side, uint32_t ms);
void scene_expect(struct scene *s, unsigned side, uint8_t status);
/* Nothing completes on that side within ms. */
void scene_silence(struct scene *s, unsigned side, uint32_t ms);
void scene_same(struct scene *s, uint32_t off, uint32_t len); /* both sides' memory there */
void scene_run_ms(struct scene *s, uint32_t ms);

static inline uint64_t ms_ns(uint64_t ms)
{
	return ms * 1000000;
}
