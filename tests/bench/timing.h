/* SPDX-License-Identifier: BSD-3-Clause */
/* What the loops of the benchmark share: a clock, and the shape of a distribution. Results are
 * lines of a name and a number, which tools/bench reads. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t timing_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline int timing_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts ns[]; each round trip there counts as two messages, as perftest counts. */
static inline void timing_print_latency(uint64_t *ns, uint32_t n)
{
	qsort(ns, n, sizeof(*ns), timing_compare);
	printf("typical_us %.3f\n", (double)ns[n / 2] / 2000);
	printf("p99_us %.3f\n", (double)ns[(uint64_t)n * 99 / 100] / 2000);
	printf("p999_us %.3f\n", (double)ns[(uint64_t)n * 999 / 1000] / 2000);
}

/* The argument as a number of at least one; ends the program if it is not. */
static inline uint32_t timing_number(const char *text)
{
	unsigned long n = strtoul(text, NULL, 0);

	if (n && n <= UINT32_MAX)
		return (uint32_t)n;
	fprintf(stderr, "'%s' is not a number of at least one\n", text);
	exit(2);
}
