/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a poller does when it finds nothing: pause, give the core away, or sleep. One policy for the
 * daemon's workers and for ibv_poll_cq, because on few cores one poller that does not yield ruins
 * all others. Pure: times are arguments, in nanoseconds of a clock that never goes back.
 *
 * The yield threshold adapts: a yield that comes straight back means the core is ours (wait longer
 * before the next), one that takes long means somebody else had work (yield sooner). One that takes
 * a time slice means a compute thread, or a program that waits for its memory to change: yielding
 * to it costs milliseconds, while a sleeper is put ahead of it when it is woken. So for a while,
 * sleep at once. For long: the yield that asks whether that thread is still there costs a slice of
 * some 4 ms, and a sleep some 10 us.
 */
#pragma once

#include <stdint.h>

#define UROCE_BACKOFF_START     64u
#define UROCE_BACKOFF_MAX       1024u
#define UROCE_BACKOFF_SHARED_NS 1000u   /* a yield longer than this: the core is shared */
#define UROCE_BACKOFF_SLEEP_NS  50000u  /* idle this long: sleep */
#define UROCE_BACKOFF_SLICE_NS  200000u /* a yield this long: somebody took a whole time slice */
#define UROCE_BACKOFF_SLEEPS    4096u   /* then sleep this often before the next yield */

enum uroce_backoff_step { UROCE_BACKOFF_PAUSE, UROCE_BACKOFF_YIELD, UROCE_BACKOFF_SLEEP };

struct uroce_backoff {
	uint32_t limit;      /* empty polls before a yield */
	uint32_t empty;      /* empty polls since the last yield */
	uint32_t shared;     /* the last yield let somebody else run */
	uint32_t sleeps;     /* sleep instead of yielding, this many times */
	uint64_t idle_since; /* 0: not idle */
};

static inline void uroce_backoff_init(struct uroce_backoff *b)
{
	b->limit = UROCE_BACKOFF_START;
	b->empty = 0;
	b->shared = 0;
	b->sleeps = 0;
	b->idle_since = 0;
}

/* A poll found work. */
static inline void uroce_backoff_busy(struct uroce_backoff *b)
{
	b->empty = 0;
	b->idle_since = 0;
}

/* A poll found nothing: true when the caller should now read the clock and ask uroce_backoff_next.
 */
static inline int uroce_backoff_due(struct uroce_backoff *b)
{
	return ++b->empty >= b->limit || !b->idle_since;
}

/* What to do now. After YIELD, report its length with uroce_backoff_yielded. */
static inline enum uroce_backoff_step uroce_backoff_next(struct uroce_backoff *b, uint64_t now)
{
	if (!b->idle_since)
		b->idle_since = now ? now : 1;
	if (now - b->idle_since >= UROCE_BACKOFF_SLEEP_NS)
		return UROCE_BACKOFF_SLEEP;
	if (b->empty < b->limit)
		return UROCE_BACKOFF_PAUSE;
	if (!b->sleeps)
		return UROCE_BACKOFF_YIELD;
	b->sleeps--;
	return UROCE_BACKOFF_SLEEP;
}

static inline void uroce_backoff_yielded(struct uroce_backoff *b, uint64_t took_ns)
{
	b->empty = 0;
	b->shared = took_ns > UROCE_BACKOFF_SHARED_NS;
	if (took_ns > UROCE_BACKOFF_SLICE_NS)
		b->sleeps = UROCE_BACKOFF_SLEEPS;
	if (b->shared)
		b->limit = b->limit > 1 ? b->limit / 2 : 1;
	else
		b->limit = b->limit < UROCE_BACKOFF_MAX / 2 ? b->limit * 2 : UROCE_BACKOFF_MAX;
}
