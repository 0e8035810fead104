/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One main for all Check programs: runs the suite that the test file makes and writes TAP to
 * stdout. Fork mode by default (CK_FORK=no under a debugger). UROCE_TEST_SEED, decimal or 0x..,
 * seeds what is random; it is printed as a TAP diagnostic, so that every failure can be replayed.
 */
#pragma once

#include <check.h>
#include <stdint.h>

/* Each test file defines this. */
Suite *suite_make(void);

/* The seed of this run: UROCE_TEST_SEED, or a fixed number, so that CI is reproducible. */
uint64_t ck_seed(void);

/* splitmix64: the one generator of all tests. Any state is a good state. */
static inline uint64_t ck_rand(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* A number below n (n > 0). */
static inline uint32_t ck_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((ck_rand(state) >> 32) * (uint64_t)n) >> 32);
}
