/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines of an engine: a binary heap over an array from the arena, one entry per QP. Re-arming
 * to a later time only notes it (the entry moves when it comes up), so an ACK costs a store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timer {
	uint64_t at;     /* when it shall fire; TIMER_NEVER: not armed */
	uint64_t queued; /* the key it has in the heap, at most `at` */
	uint32_t pos;    /* 1 + index in the heap; 0: not in it */
};

struct timer_heap {
	struct timer **slot;
	uint32_t n, room;
};

void timer_heap_init(struct timer_heap *h, struct timer **slots, uint32_t room);
void timer_set(struct timer_heap *h, struct timer *t, uint64_t at);
void timer_stop(struct timer_heap *h, struct timer *t);   /* stays queued; fires for nobody */
void timer_remove(struct timer_heap *h, struct timer *t); /* before its memory goes away */

/* The earliest time at which timer_pop could return something; may be early, never late. */
uint64_t timer_next(const struct timer_heap *h);

/* A timer that is due at `now`, disarmed and out of the heap; NULL when there is none. */
struct timer *timer_pop(struct timer_heap *h, uint64_t now);
