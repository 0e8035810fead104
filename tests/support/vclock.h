/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time in nanoseconds: goes forward when a test says so, and never back. */
#pragma once

#include <assert.h>
#include <stdint.h>

struct vclock {
	uint64_t now;
};

#define VCLOCK_NEVER UINT64_MAX

static inline void vclock_set(struct vclock *c, uint64_t t)
{
	assert(t >= c->now);
	c->now = t;
}

static inline uint64_t vclock_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
