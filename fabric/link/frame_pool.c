/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/frame_pool.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "fabric/link/handover.h"

#define CACHE_MAX 256u
#define CHUNK     32u

/* The buffer follows the private area, so that its size keeps the buffer 64-byte aligned. */
#define PRIV_SIZE RTE_ALIGN_CEIL(sizeof(struct frame), 64)
static_assert((sizeof(struct rte_mbuf) + PRIV_SIZE + FRAME_HEADROOM) % 64 == 0,
	      "buf is 64-byte aligned");

struct frame_pool {
	struct rte_mempool *mp;
	unsigned n_workers;
	struct rte_mempool_cache *cache[];
};

static void init_frame(struct rte_mempool *mp, void *arg, void *obj, unsigned i)
{
	struct rte_mbuf *m = obj;
	struct frame *f = rte_mbuf_to_priv(m);

	(void)mp;
	(void)arg;
	(void)i;
	*f = (struct frame){ .owner = m,
			     .buf = (uint8_t *)m->buf_addr + FRAME_HEADROOM,
			     .room = FRAME_PAYLOAD };
}

/* What all caches may hold together stays a quarter of the pool (a cache overfills by half). */
static unsigned cache_size(unsigned n_frames, unsigned n_workers)
{
	unsigned size = n_frames / (6 * n_workers);

	return size > CACHE_MAX ? CACHE_MAX : size;
}

static struct rte_mempool *make_mempool(unsigned n_frames)
{
	static atomic_uint serial;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "frames%u", atomic_fetch_add(&serial, 1));
	return rte_pktmbuf_pool_create(name, n_frames, 0, PRIV_SIZE, FRAME_HEADROOM + FRAME_PAYLOAD,
				       SOCKET_ID_ANY);
}

struct frame_pool *frame_pool_create(unsigned n_frames, unsigned n_workers)
{
	unsigned size = cache_size(n_frames, n_workers);
	struct frame_pool *p = calloc(1, sizeof(*p) + n_workers * sizeof(p->cache[0]));

	if (!p)
		return NULL;
	p->n_workers = n_workers;
	p->mp = make_mempool(n_frames);
	if (!p->mp) {
		free(p);
		return NULL;
	}
	for (unsigned w = 0; size && w < n_workers; w++) {
		p->cache[w] = rte_mempool_cache_create(size, SOCKET_ID_ANY);
		if (!p->cache[w]) {
			frame_pool_destroy(p);
			return NULL;
		}
	}
	rte_mempool_obj_iter(p->mp, init_frame, NULL);
	return p;
}

void frame_pool_destroy(struct frame_pool *p)
{
	for (unsigned w = 0; w < p->n_workers; w++) {
		if (!p->cache[w])
			continue;
		rte_mempool_cache_flush(p->cache[w], p->mp);
		rte_mempool_cache_free(p->cache[w]);
	}
	rte_mempool_free(p->mp);
	free(p);
}

static struct rte_mempool_cache *cache_of(const struct frame_pool *p, unsigned worker)
{
	return worker < p->n_workers ? p->cache[worker] : NULL;
}

static unsigned get_chunk(struct frame_pool *p, unsigned worker, struct frame **f, unsigned n)
{
	void *obj[CHUNK];

	/* All or nothing: so ask for less where the pool is nearly dry. */
	while (n && rte_mempool_generic_get(p->mp, obj, n, cache_of(p, worker)) != 0)
		n /= 2;
	handover_take(p->mp);
	for (unsigned i = 0; i < n; i++) {
		f[i] = rte_mbuf_to_priv(obj[i]);
		f[i]->head = f[i]->buf;
		f[i]->head_len = 0;
		f[i]->n_segs = 0;
		f[i]->trailer_len = 0;
		f[i]->is_ip_id_guessed = false;
		f[i]->is_open = false;
	}
	return n;
}

unsigned frame_pool_get(struct frame_pool *p, unsigned worker, struct frame **f, unsigned n)
{
	unsigned got = 0;

	while (got < n) {
		unsigned want = n - got < CHUNK ? n - got : CHUNK;
		unsigned more = get_chunk(p, worker, f + got, want);

		if (!more)
			break;
		got += more;
	}
	return got;
}

void frame_pool_put(struct frame_pool *p, unsigned worker, struct frame *const *f, unsigned n)
{
	void *obj[CHUNK];

	handover_give(p->mp);
	while (n) {
		unsigned k = n < CHUNK ? n : CHUNK;

		for (unsigned i = 0; i < k; i++)
			obj[i] = f[i]->owner;
		rte_mempool_generic_put(p->mp, obj, k, cache_of(p, worker));
		f += k;
		n -= k;
	}
}

unsigned frame_pool_free_count(const struct frame_pool *p)
{
	unsigned n = rte_mempool_avail_count(p->mp);

	for (unsigned w = 0; w < p->n_workers; w++)
		n += p->cache[w] ? p->cache[w]->len : 0;
	return n;
}
