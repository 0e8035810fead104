/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN, the reaction point of a QP (Zhu et al., Congestion Control for Large-Scale RDMA
 * Deployments, SIGCOMM 2015): how fast it may send. Names and values are the paper's. Pure: the
 * time is an argument; what would have happened since the last call is made up for then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DCQCN_LINE_MBPS 40000u /* R_C of a QP that no CNP has slowed down */
#define DCQCN_MIN_MBPS  10u
#define DCQCN_N_NS      50000u      /* N: at most one CNP per QP in that time */
#define DCQCN_K_NS      55000u      /* K: alpha decays after so long without a CNP */
#define DCQCN_T_NS      55000u      /* T: the timer of the rate increase */
#define DCQCN_B_BYTES   (10u << 20) /* B: its byte counter */
#define DCQCN_F         5u          /* F: steps of fast recovery */
#define DCQCN_G_SHIFT   8u          /* g = 1/256 */
#define DCQCN_RAI_MBPS  40u
#define DCQCN_RHAI_MBPS 400u
#define DCQCN_ONE       65536u /* alpha = 1 */

struct dcqcn {
	bool is_limiting;
	uint32_t rc, rt;         /* Mbit/s: R_C, R_T */
	uint32_t alpha;          /* of DCQCN_ONE */
	uint32_t t_steps;        /* expirations since the last CNP: of the timer, */
	uint32_t b_steps;        /* of the byte counter */
	uint64_t alpha_at, t_at; /* when they are due next */
	uint32_t b_left;
	uint32_t ns_per_kib; /* of R_C */
	uint32_t burst;      /* packets that may leave together */
	uint64_t next_at;    /* when the next may */
};

void dcqcn_cnp(struct dcqcn *d, uint64_t now, uint32_t mtu);
/* Timers that were due by now. Afterwards is_limiting and next_at hold. */
void dcqcn_run(struct dcqcn *d, uint64_t now, uint32_t mtu);
void dcqcn_sent(struct dcqcn *d, uint64_t now, uint32_t bytes, uint32_t mtu);
