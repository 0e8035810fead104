/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames go from one thread to another through DPDK's rings and pools, whose order is made of
 * compiler barriers and of code that was built without ThreadSanitizer. These two tell it what they
 * promise: what was done before a give is seen after a take of the same ring or pool.
 */
#pragma once

#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr); /* of the runtime */
void __tsan_release(void *addr);

static inline void handover_give(void *through)
{
	__tsan_release(through);
}

static inline void handover_take(void *through)
{
	__tsan_acquire(through);
}
#else
static inline void handover_give(void *through)
{
	(void)through;
}

static inline void handover_take(void *through)
{
	(void)through;
}
#endif
