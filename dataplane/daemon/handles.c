/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_BITS 20u
#define INDEX_MASK ((1u << INDEX_BITS) - 1)
#define GEN_MASK   0xfffu

struct handle_slot {
	void *object; /* NULL: free */
	uint32_t next_free;
	uint32_t generation; /* 1..GEN_MASK */
};

void handles_init(struct handles *h, uint32_t max)
{
	memset(h, 0, sizeof(*h));
	h->max = max < INDEX_MASK ? max : INDEX_MASK;
}

void handles_free(struct handles *h)
{
	free(h->slot);
	memset(h, 0, sizeof(*h));
}

static int grow(struct handles *h)
{
	uint32_t room = h->room ? h->room * 2 : 16;
	struct handle_slot *slot = realloc(h->slot, room * sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	h->slot = slot;
	h->room = room;
	return 0;
}

int handles_add(struct handles *h, void *object, uint32_t *handle)
{
	struct handle_slot *s;
	uint32_t i;

	if (h->free_head) {
		i = h->free_head - 1;
		h->free_head = h->slot[i].next_free;
	} else {
		if (h->n == h->max)
			return -ENOSPC;
		if (h->n == h->room && grow(h))
			return -ENOMEM;
		i = h->n++;
		h->slot[i].generation = 1;
	}
	s = &h->slot[i];
	s->object = object;
	h->count++;
	*handle = s->generation << INDEX_BITS | i;
	return 0;
}

static struct handle_slot *find(const struct handles *h, uint32_t handle)
{
	uint32_t i = handle & INDEX_MASK;

	if (i >= h->n || !h->slot[i].object || h->slot[i].generation != handle >> INDEX_BITS)
		return NULL;
	return &h->slot[i];
}

void *handles_get(const struct handles *h, uint32_t handle)
{
	const struct handle_slot *s = find(h, handle);

	return s ? s->object : NULL;
}

void *handles_del(struct handles *h, uint32_t handle)
{
	struct handle_slot *s = find(h, handle);
	void *object;

	if (!s)
		return NULL;
	object = s->object;
	s->object = NULL;
	s->generation = s->generation == GEN_MASK ? 1 : s->generation + 1;
	s->next_free = h->free_head;
	h->free_head = handle % (INDEX_MASK + 1) + 1;
	h->count--;
	return object;
}

void *handles_next(const struct handles *h, uint32_t *pos)
{
	while (*pos < h->n) {
		void *object = h->slot[(*pos)++].object;

		if (object)
			return object;
	}
	return NULL;
}

int numbers_init(struct numbers *p, uint32_t first, uint32_t n)
{
	memset(p, 0, sizeof(*p));
	p->first = first;
	p->n = n;
	p->queue = malloc(n * sizeof(*p->queue));
	p->generation = calloc(n, 1);
	if (!p->queue || !p->generation) {
		numbers_free(p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		p->queue[i] = first + i;
	return 0;
}

void numbers_free(struct numbers *p)
{
	free(p->queue);
	free(p->generation);
	memset(p, 0, sizeof(*p));
}

int numbers_take(struct numbers *p, uint32_t *number, uint8_t *generation)
{
	if (p->used == p->n)
		return -ENOSPC;
	*number = p->queue[p->head];
	*generation = p->generation[*number - p->first];
	p->head = (p->head + 1) % p->n;
	p->used++;
	return 0;
}

void numbers_give(struct numbers *p, uint32_t number)
{
	p->generation[number - p->first]++;
	p->queue[(p->head + p->n - p->used) % p->n] = number;
	p->used--;
}
