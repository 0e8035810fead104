/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are on their way: a heap by time of arrival, then by order of entry. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/frame.h"

#define HOLD_MAX 512u

struct held {
	uint64_t due, order;
	struct frame *f;
};

struct hold {
	uint64_t order; /* of the next frame */
	unsigned n;
	struct held heap[HOLD_MAX];
};

/* false: full, and the frame stays the caller's. */
bool hold_push(struct hold *h, uint64_t due, struct frame *f);

/* The first frame that is due by now; NULL: none. */
struct frame *hold_pop(struct hold *h, uint64_t now);

/* When the first frame is due; UINT64_MAX: there is none. */
static inline uint64_t hold_due(const struct hold *h)
{
	return h->n ? h->heap[0].due : UINT64_MAX;
}
