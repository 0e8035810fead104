/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/fake_mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/engine.h"

#define GUARD_BYTE 0xc5

void fake_mem_init(struct fake_mem *m)
{
	memset(m, 0, sizeof(*m));
	m->region = calloc(FAKE_REGIONS, sizeof(*m->region));
	assert(m->region);
}

void fake_mem_free(struct fake_mem *m)
{
	for (uint32_t i = 0; i < m->n_regions; i++)
		free(m->region[i].mem - FAKE_GUARD);
	free(m->region);
	m->region = NULL;
	m->n_regions = 0;
}

struct fake_region *fake_region_new(struct fake_mem *m, uint64_t len)
{
	struct fake_region *r;
	uint8_t *raw = malloc(len + 2 * FAKE_GUARD);

	assert(raw && m->n_regions < FAKE_REGIONS);
	r = &m->region[m->n_regions];
	r->index = m->n_regions++;
	memset(raw, GUARD_BYTE, len + 2 * FAKE_GUARD);
	r->mem = raw + FAKE_GUARD;
	r->len = len;
	r->addr = 0x7f0000000000ull + ((uint64_t)r->index << 33);
	r->iova = 0x10000000ull + ((uint64_t)r->index << 32);
	for (uint64_t i = 0; i < len; i++)
		r->mem[i] = (uint8_t)(i * 7 + r->index * 31 + (i >> 8));
	return r;
}

bool fake_mem_guards_hold(const struct fake_mem *m)
{
	for (uint32_t i = 0; i < m->n_regions; i++) {
		const struct fake_region *r = &m->region[i];

		for (uint32_t b = 0; b < FAKE_GUARD; b++)
			if (r->mem[b - (int64_t)FAKE_GUARD] != GUARD_BYTE ||
			    r->mem[r->len + b] != GUARD_BYTE)
				return false;
	}
	return true;
}

static void __attribute__((format(printf, 2, 3))) violate(struct fake_mem *m, const char *fmt, ...)
{
	va_list args;

	if (m->violations++)
		return;
	va_start(args, fmt);
	vsnprintf(m->violation, sizeof(m->violation), fmt, args);
	va_end(args);
}

/* The region of a piece, its offset in *off; NULL with *err set when it may not be touched. */
static struct fake_region *piece(struct fake_mem *m, const struct mem_vec *v, bool write,
				 uint64_t *off, int *err)
{
	struct fake_region *r;

	*err = -EFAULT;
	if (v->region == 0 || v->region > m->n_regions) {
		violate(m, "no region %" PRIu64, v->region);
		return NULL;
	}
	r = &m->region[v->region - 1];
	*off = v->addr - r->addr;
	if (*off > r->len || v->len > r->len - *off)
		violate(m, "region %u: offset %" PRIu64 " length %" PRIu64 " is outside %" PRIu64,
			r->index, *off, v->len, r->len);
	else if (!r->live)
		violate(m, "region %u: touched while not registered", r->index);
	else if (write && !(r->access & UROCE_ACCESS_LOCAL_WRITE))
		violate(m, "region %u: written without LOCAL_WRITE", r->index);
	else if (!r->broken)
		return *err = 0, r;
	return NULL;
}

/* Copies between both lists, in the direction that write says; the lengths must agree. */
static int copy(struct fake_mem *m, const struct mem_vec *app, unsigned n_app,
		const struct buf_vec *buf, unsigned n_buf, bool write)
{
	uint64_t b_off = 0;
	unsigned b = 0;

	for (unsigned a = 0; a < n_app; a++) {
		uint64_t off, done = 0;
		int err;
		struct fake_region *r = piece(m, &app[a], write, &off, &err);

		if (!r)
			return err;
		while (done < app[a].len) {
			uint64_t n = app[a].len - done;

			for (; b < n_buf && b_off == buf[b].len; b++)
				b_off = 0;
			if (b == n_buf) {
				violate(m, "the lists of one copy differ in length");
				return -EINVAL;
			}
			n = n < buf[b].len - b_off ? n : buf[b].len - b_off;
			if (write && m->on_write)
				m->on_write(m->watch_ctx, r, off + done, buf[b].base + b_off, n);
			if (write)
				memcpy(r->mem + off + done, buf[b].base + b_off, n);
			else
				memcpy(buf[b].base + b_off, r->mem + off + done, n);
			done += n;
			b_off += n;
		}
	}
	for (; b < n_buf && b_off == buf[b].len; b++)
		b_off = 0;
	if (b < n_buf) {
		violate(m, "the lists of one copy differ in length");
		return -EINVAL;
	}
	return 0;
}

int fake_mem_read(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		  unsigned n_buf)
{
	struct fake_mem *m = ctx;

	m->n_reads++;
	return copy(m, app, n_app, buf, n_buf, false);
}

int fake_mem_write(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		   unsigned n_buf)
{
	struct fake_mem *m = ctx;

	m->n_writes++;
	return copy(m, app, n_app, buf, n_buf, true);
}

int fake_mem_atomic(void *ctx, const struct mem_vec *app, enum mem_atomic_op op, uint64_t operand,
		    uint64_t compare, uint64_t *old)
{
	struct fake_mem *m = ctx;
	uint64_t off, now;
	int err;
	struct fake_region *r = piece(m, app, true, &off, &err);

	m->n_atomics++;
	if (!r)
		return err;
	if (app->len != 8 || app->addr % 8) {
		violate(m, "region %u: an atomic of %" PRIu64 " bytes at %" PRIu64, r->index,
			app->len, app->addr);
		return -EINVAL;
	}
	memcpy(old, r->mem + off, 8);
	if (op == MEM_FETCH_ADD)
		now = *old + operand;
	else
		now = op == MEM_STORE || *old == compare ? operand : *old;
	if (m->on_atomic)
		m->on_atomic(m->watch_ctx, r, off, op, operand, compare, *old);
	memcpy(r->mem + off, &now, 8);
	return 0;
}
