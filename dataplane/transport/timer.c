/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/timer.h"

#include <assert.h>
#include <stddef.h>

void timer_heap_init(struct timer_heap *h, struct timer **slots, uint32_t room)
{
	h->slot = slots;
	h->n = 0;
	h->room = room;
}

static void heap_put(struct timer_heap *h, uint32_t i, struct timer *t)
{
	h->slot[i] = t;
	t->pos = i + 1;
}

static void heap_up(struct timer_heap *h, uint32_t i, struct timer *t)
{
	while (i > 0 && h->slot[(i - 1) / 2]->queued > t->queued) {
		heap_put(h, i, h->slot[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(h, i, t);
}

static void heap_down(struct timer_heap *h, uint32_t i, struct timer *t)
{
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= h->n)
			break;
		if (c + 1 < h->n && h->slot[c + 1]->queued < h->slot[c]->queued)
			c++;
		if (h->slot[c]->queued >= t->queued)
			break;
		heap_put(h, i, h->slot[c]);
		i = c;
	}
	heap_put(h, i, t);
}

void timer_set(struct timer_heap *h, struct timer *t, uint64_t at)
{
	t->at = at;
	if (t->pos) {
		if (at < t->queued) {
			t->queued = at;
			heap_up(h, t->pos - 1, t);
		}
		return;
	}
	if (at == TIMER_NEVER)
		return;
	assert(h->n < h->room);
	t->queued = at;
	heap_up(h, h->n++, t);
}

void timer_stop(struct timer_heap *h, struct timer *t)
{
	(void)h;
	t->at = TIMER_NEVER;
}

void timer_remove(struct timer_heap *h, struct timer *t)
{
	struct timer *last;
	uint32_t i;

	t->at = TIMER_NEVER;
	if (!t->pos)
		return;
	i = t->pos - 1;
	t->pos = 0;
	last = h->slot[--h->n];
	if (last == t)
		return;
	if (i > 0 && h->slot[(i - 1) / 2]->queued > last->queued)
		heap_up(h, i, last);
	else
		heap_down(h, i, last);
}

uint64_t timer_next(const struct timer_heap *h)
{
	return h->n ? h->slot[0]->queued : TIMER_NEVER;
}

struct timer *timer_pop(struct timer_heap *h, uint64_t now)
{
	while (h->n && h->slot[0]->queued <= now) {
		struct timer *t = h->slot[0];

		if (t->at <= now) {
			timer_remove(h, t);
			return t;
		}
		if (t->at == TIMER_NEVER) {
			timer_remove(h, t);
			continue;
		}
		t->queued = t->at;
		heap_down(h, 0, t);
	}
	return NULL;
}
