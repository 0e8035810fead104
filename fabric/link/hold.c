/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/hold.h"

#include <stddef.h>

static bool is_before(const struct held *a, const struct held *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

bool hold_push(struct hold *h, uint64_t due, struct frame *f)
{
	struct held x = { .due = due, .order = h->order, .f = f };
	unsigned i = h->n;

	if (h->n == HOLD_MAX)
		return false;
	h->order++;
	h->n++;
	for (; i && is_before(&x, &h->heap[(i - 1) / 2]); i = (i - 1) / 2)
		h->heap[i] = h->heap[(i - 1) / 2];
	h->heap[i] = x;
	return true;
}

struct frame *hold_pop(struct hold *h, uint64_t now)
{
	struct frame *first;
	struct held x;
	unsigned i = 0;

	if (hold_due(h) > now || !h->n)
		return NULL;
	first = h->heap[0].f;
	x = h->heap[--h->n];
	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= h->n)
			break;
		if (child + 1 < h->n && is_before(&h->heap[child + 1], &h->heap[child]))
			child++;
		if (!is_before(&h->heap[child], &x))
			break;
		h->heap[i] = h->heap[child];
		i = child;
	}
	h->heap[i] = x;
	return first;
}
