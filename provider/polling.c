/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an empty ibv_poll_cq does before it returns: on few cores a program that only spins keeps
 * the daemon from working. The policy is backoff.h's; at most one yield or one short sleep a call,
 * and a sleep only when yields show that the core is wanted by others: a sleeper that is woken runs
 * at once, while a yielder waits for a compute thread's time slice to end.
 */
#include "provider/provider.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dataplane/abi/backoff.h"

#define SLEEP_NS       50000 /* with the default timer slack, at most 100 us */
#define SPIN_CLOCK_GAP 65536 /* UROCE_POLL=spin: empty polls between two looks at the clock */

static __thread struct uroce_backoff backoff;
static bool is_spinning;

static __attribute__((constructor)) void read_environment(void)
{
	const char *mode = getenv("UROCE_POLL");

	is_spinning = mode && !strcmp(mode, "spin");
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void give_core_away(uint64_t now)
{
	sched_yield();
	uroce_backoff_yielded(&backoff, clock_ns() - now);
}

/* Until the CQ's next completion, if the daemon can wake us for it, or a short time. */
static void sleep_briefly(struct uroce_cq *cq)
{
	const struct timespec ts = { .tv_nsec = SLEEP_NS };

	if (!cq->wake) {
		nanosleep(&ts, NULL);
		return;
	}
	uroce_cq_arm(cq->page, UROCE_ARM_ANY);
	if (!uroce_cq_holds(cq, false))
		uroce_source_await(cq->wake, &ts);
}

void uroce_poll_found(void)
{
	uroce_backoff_busy(&backoff);
}

uint64_t uroce_poll_empty(struct uroce_cq *cq)
{
	uint64_t now;

	if (is_spinning)
		return ++backoff.empty % SPIN_CLOCK_GAP ? 0 : clock_ns();
	if (!backoff.limit)
		uroce_backoff_init(&backoff);
	if (!uroce_backoff_due(&backoff)) {
		pause_cpu();
		return 0;
	}
	now = clock_ns();
	switch (uroce_backoff_next(&backoff, now)) {
	case UROCE_BACKOFF_PAUSE:
		pause_cpu();
		break;
	case UROCE_BACKOFF_SLEEP:
		if (backoff.shared) {
			sleep_briefly(cq);
			backoff.empty = 0;
			break;
		}
		__attribute__((fallthrough)); /* the core is ours alone */
	case UROCE_BACKOFF_YIELD:
		give_core_away(now);
		break;
	}
	return now;
}
