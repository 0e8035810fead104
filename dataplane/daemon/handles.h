/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handle tables. A handle is what a client names an object by: index and generation, never 0. A
 * handle that was given back does not find the object that took its place.
 */
#pragma once

#include <stdint.h>

struct handles {
	struct handle_slot *slot;
	uint32_t n, room, max;
	uint32_t free_head; /* 1 + index, 0: none */
	uint32_t count;     /* objects in the table */
};

void handles_init(struct handles *h, uint32_t max);
void handles_free(struct handles *h);

/* 0, -ENOSPC (max objects) or -ENOMEM. */
int handles_add(struct handles *h, void *object, uint32_t *handle);
void *handles_get(const struct handles *h, uint32_t handle);
void *handles_del(struct handles *h, uint32_t handle);

/* Walks all objects: *pos starts at 0; NULL after the last. Objects may be deleted meanwhile. */
void *handles_next(const struct handles *h, uint32_t *pos);

/*
 * A pool of numbers first..first + n - 1 with a generation each, given out in the order in which
 * they came back, so that an old number stays unused for as long as can be.
 */
struct numbers {
	uint32_t first, n;
	uint32_t *queue; /* ring of free numbers */
	uint8_t *generation;
	uint32_t head, used;
};

int numbers_init(struct numbers *p, uint32_t first, uint32_t n);
void numbers_free(struct numbers *p);

/* 0 or -ENOSPC. */
int numbers_take(struct numbers *p, uint32_t *number, uint8_t *generation);
void numbers_give(struct numbers *p, uint32_t number);
