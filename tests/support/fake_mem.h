/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of an application, without a process: registered regions between guard bytes, reached
 * through the core's memory port. Addresses are made up (neither our own nor equal to the iova), so
 * a mix-up cannot go unseen. Every access is judged before it happens: outside the registration,
 * after its end or against its rights is a violation, which the test reads at the end of a step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ports.h"

#define FAKE_GUARD   64u
#define FAKE_REGIONS 320u /* over the life of one device */

struct fake_region {
	uint8_t *mem;  /* len bytes; FAKE_GUARD guard bytes before and after */
	uint64_t addr; /* in the made-up process */
	uint64_t iova;
	uint64_t len;
	uint32_t key, pd, access;
	uint32_t index;
	bool live;   /* registered: the core may touch it */
	bool broken; /* the process is gone: the port fails with -EFAULT */
};

struct fake_mem {
	struct fake_region *region; /* FAKE_REGIONS of them */
	uint32_t n_regions;
	/* Sees every write before it lands (len > 0); off is within r. */
	void (*on_write)(void *ctx, const struct fake_region *r, uint64_t off, const uint8_t *bytes,
			 uint64_t len);
	/* Sees every atomic, with the word's value before it. */
	void (*on_atomic)(void *ctx, const struct fake_region *r, uint64_t off,
			  enum mem_atomic_op op, uint64_t operand, uint64_t compare, uint64_t old);
	void *watch_ctx;
	unsigned violations;
	char violation[160]; /* the first one, in words */
	uint64_t n_reads, n_writes, n_atomics;
};

void fake_mem_init(struct fake_mem *m);
void fake_mem_free(struct fake_mem *m);

/* A region of len bytes filled with a pattern that tells regions apart; not yet registered. */
struct fake_region *fake_region_new(struct fake_mem *m, uint64_t len);

/* Are the guard bytes of all regions whole? */
bool fake_mem_guards_hold(const struct fake_mem *m);

/* The functions of struct ports; ctx is the struct fake_mem. */
int fake_mem_read(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		  unsigned n_buf);
int fake_mem_write(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		   unsigned n_buf);
int fake_mem_atomic(void *ctx, const struct mem_vec *app, enum mem_atomic_op op, uint64_t operand,
		    uint64_t compare, uint64_t *old);
