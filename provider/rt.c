/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's clock: CLOCK_MONOTONIC in nanoseconds, which both sides can read. */
#include "provider/provider.h"

#include <errno.h>
#include <time.h>

uint64_t uroce_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* In the units of completion timestamps, all in tv_nsec, as other drivers answer it. */
int uroce_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)uroce_clock_ns();
	}
	return 0;
}
