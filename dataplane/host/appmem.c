/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/appmem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dataplane/host/appmem_map.h"
#include "dataplane/host/appmem_proc.h"

enum { DIR_READ, DIR_WRITE };

/* Atomics on the same bytes meet on one lock, also through different mappings of one page. */
#define ATOMIC_STRIPES 512u
static struct {
	pthread_spinlock_t lock;
} __attribute__((aligned(64))) stripe[ATOMIC_STRIPES];

__attribute__((constructor)) static void stripes_init(void)
{
	for (unsigned i = 0; i < ATOMIC_STRIPES; i++)
		pthread_spin_init(&stripe[i].lock, PTHREAD_PROCESS_PRIVATE);
}

/* A place in a list of pieces. */
struct cursor {
	unsigned i;
	uint64_t off;
};

/* Pieces that follow each other become one: each costs the kernel a look-up of its pages. */
static unsigned app_iov(struct iovec *iov, const struct mem_vec *v, unsigned n, struct cursor c)
{
	uint64_t end = 0;
	unsigned k = 0;

	for (; c.i < n && k < IOV_MAX; c.i++, c.off = 0) {
		uint64_t at = v[c.i].addr + c.off, len = v[c.i].len - c.off;

		if (!len)
			continue;
		if (k && at == end) {
			iov[k - 1].iov_len += len;
		} else {
			iov[k].iov_base = (void *)(uintptr_t)at;
			iov[k++].iov_len = len;
		}
		end = at + len;
	}
	return k;
}

/* As app_iov, at most `limit` bytes. */
static unsigned buf_iov(struct iovec *iov, const struct buf_vec *v, unsigned n, struct cursor c,
			uint64_t limit)
{
	unsigned k = 0;

	for (; c.i < n && k < IOV_MAX && limit; c.i++, c.off = 0) {
		uint64_t len = v[c.i].len - c.off;

		if (!len)
			continue;
		if (len > limit)
			len = limit;
		iov[k].iov_base = v[c.i].base + c.off;
		iov[k++].iov_len = len;
		limit -= len;
	}
	return k;
}

static void app_advance(struct cursor *c, const struct mem_vec *v, uint64_t n)
{
	while (n) {
		uint64_t left = v[c->i].len - c->off;

		if (n < left) {
			c->off += n;
			return;
		}
		n -= left;
		c->i++;
		c->off = 0;
	}
}

static void buf_advance(struct cursor *c, const struct buf_vec *v, uint64_t n)
{
	while (n) {
		uint64_t left = v[c->i].len - c->off;

		if (n < left) {
			c->off += n;
			return;
		}
		n -= left;
		c->i++;
		c->off = 0;
	}
}

/* One system call's worth; bytes moved, or a negative errno. */
static ssize_t move_vm(const struct appmem *m, int dir, const struct mem_vec *app, unsigned n_app,
		       struct cursor ca, const struct buf_vec *buf, unsigned n_buf,
		       struct cursor cb)
{
	struct iovec remote[IOV_MAX], local[IOV_MAX];
	unsigned nr = app_iov(remote, app, n_app, ca);
	unsigned nl = buf_iov(local, buf, n_buf, cb, UINT64_MAX); /* the remote side ends it */
	ssize_t r = dir == DIR_READ ? process_vm_readv(m->pid, local, nl, remote, nr, 0)
				    : process_vm_writev(m->pid, local, nl, remote, nr, 0);

	return r < 0 ? -errno : r ? r : -EFAULT;
}

static ssize_t move_file(const struct appmem *m, int dir, const struct mem_vec *app, unsigned n_app,
			 struct cursor ca, const struct buf_vec *buf, unsigned n_buf,
			 struct cursor cb)
{
	struct iovec local[IOV_MAX];
	unsigned nl;
	ssize_t r;
	off_t at;

	while (ca.i < n_app && app[ca.i].len == ca.off)
		ca.i++, ca.off = 0;
	if (ca.i == n_app)
		return -EFAULT;
	at = (off_t)(app[ca.i].addr + ca.off);
	if (at < 0)
		return -EFAULT;
	nl = buf_iov(local, buf, n_buf, cb, app[ca.i].len - ca.off);
	r = dir == DIR_READ ? preadv(m->mem_fd, local, (int)nl, at)
			    : pwritev(m->mem_fd, local, (int)nl, at);
	/* 0: the address space is gone (exit or exec). EIO: not mapped. */
	return r < 0 ? (errno == EIO ? -EFAULT : -errno) : r ? r : -ESRCH;
}

static void zero_buf(const struct buf_vec *v, unsigned n, struct cursor c, uint64_t len)
{
	for (; c.i < n && len; c.i++, c.off = 0) {
		uint64_t k = v[c.i].len - c.off;

		if (k > len)
			k = len;
		memset(v[c.i].base + c.off, 0, k);
		len -= k;
	}
}

/* One piece of a view, to or from the buffers at *cb, which moves on. */
static void copy_piece(int dir, uint8_t *mem, uint64_t left, const struct buf_vec *buf,
		       struct cursor *cb)
{
	while (left) {
		uint64_t n = buf[cb->i].len - cb->off;
		uint8_t *here = buf[cb->i].base + cb->off;

		n = n < left ? n : left;
		if (dir == DIR_READ)
			memcpy(here, mem, n);
		else
			memcpy(mem, here, n);
		buf_advance(cb, buf, n);
		mem += n;
		left -= n;
	}
}

/* Pieces of views, however many: no system call. */
static int move_views(int dir, const struct mem_vec *app, unsigned n_app,
		      const struct buf_vec *buf, struct cursor *cb)
{
	int err = 0;

	if (appmem_guard_enter())
		return -EFAULT;
	for (unsigned i = 0; !err && i < n_app; i++) {
		uint8_t *mem = appmem_view_at(appmem_view_of(app[i].region), app[i].addr,
					      app[i].len, dir == DIR_WRITE);

		if (mem)
			copy_piece(dir, mem, app[i].len, buf, cb);
		else
			err = -EFAULT;
	}
	appmem_guard_leave();
	return err;
}

/* Pieces of one region, to or from the buffers at *cb, which moves on. */
static int move_run(int dir, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		    unsigned n_buf, struct cursor *cb)
{
	const struct appmem *m = (const struct appmem *)(uintptr_t)app[0].region;
	struct cursor ca = { 0 };
	uint64_t left = 0;

	for (unsigned i = 0; i < n_app; i++)
		left += app[i].len;
	if (app[0].region == APPMEM_NULL_REGION) {
		if (dir == DIR_READ)
			zero_buf(buf, n_buf, *cb, left);
		buf_advance(cb, buf, left);
		return 0;
	}
	while (left) {
		ssize_t r;

		if (__atomic_load_n(&m->retired, __ATOMIC_RELAXED))
			return -ESRCH;
		r = (m->mem_fd < 0 ? move_vm : move_file)(m, dir, app, n_app, ca, buf, n_buf, *cb);
		if (r < 0)
			return (int)r;
		if ((uint64_t)r > left)
			return -EFAULT;
		app_advance(&ca, app, (uint64_t)r);
		buf_advance(cb, buf, (uint64_t)r);
		left -= (uint64_t)r;
	}
	return 0;
}

/* Mostly one region; a list may also name several, and the one of no memory. */
static int move(int dir, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		unsigned n_buf)
{
	struct cursor cb = { 0 };
	int err = 0;

	while (n_app && !err) {
		bool is_view = appmem_is_view(app[0].region);
		unsigned n = 1;

		while (n < n_app && (is_view ? appmem_is_view(app[n].region)
					     : app[n].region == app[0].region))
			n++;
		err = is_view ? move_views(dir, app, n, buf, &cb)
			      : move_run(dir, app, n, buf, n_buf, &cb);
		app += n;
		n_app -= n;
	}
	return err;
}

int appmem_read(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		unsigned n_buf)
{
	(void)ctx;
	return move(DIR_READ, app, n_app, buf, n_buf);
}

int appmem_write(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		 unsigned n_buf)
{
	(void)ctx;
	return move(DIR_WRITE, app, n_app, buf, n_buf);
}

int appmem_atomic(void *ctx, const struct mem_vec *app, enum mem_atomic_op op, uint64_t operand,
		  uint64_t compare, uint64_t *old)
{
	pthread_spinlock_t *lock = &stripe[(app->addr >> 3) % ATOMIC_STRIPES].lock;
	uint64_t v;
	struct buf_vec b = { (uint8_t *)&v, sizeof(v) };
	int err;

	(void)ctx;
	if (app->addr & 7 || app->len != sizeof(v))
		return -EINVAL;
	pthread_spin_lock(lock);
	err = move(DIR_READ, app, 1, &b, 1);
	if (!err) {
		*old = v;
		if (op != MEM_CMP_SWAP || v == compare) {
			v = op == MEM_FETCH_ADD ? v + operand : operand;
			err = move(DIR_WRITE, app, 1, &b, 1);
		}
	}
	pthread_spin_unlock(lock);
	return err;
}
