/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sequence numbers: 24-bit serial numbers on a circle (IBA vol. 1, 9.7.2). */
#pragma once

#include <stdint.h>

#define PSN_MASK 0xffffffu
#define PSN_HALF 0x800000u

typedef struct {
	uint32_t v; /* always below 2^24 */
} psn_t;

static inline psn_t psn_make(uint32_t v)
{
	return (psn_t) { v & PSN_MASK };
}

static inline psn_t psn_add(psn_t a, uint32_t n)
{
	return psn_make(a.v + n);
}

/* Steps from a forward to b: 0 .. 2^24 - 1. */
static inline uint32_t psn_dist(psn_t a, psn_t b)
{
	return (b.v - a.v) & PSN_MASK;
}

/* < 0, 0, > 0 as a is before, at or after b, on the circle of 2^24. */
static inline int32_t psn_diff(psn_t a, psn_t b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline int psn_eq(psn_t a, psn_t b)
{
	return a.v == b.v;
}

/* Is p one of the n numbers from `from` on? */
static inline int psn_within(psn_t p, psn_t from, uint32_t n)
{
	return psn_dist(from, p) < n;
}
