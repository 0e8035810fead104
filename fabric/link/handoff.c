/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/handoff.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "fabric/link/steer.h"

#include <rte_ring.h>

struct handoff {
	unsigned n_workers;
	void (*wake)(void *ctx, unsigned worker);
	void *wake_ctx;
	struct rte_ring *ring[]; /* empty for a single worker */
};

static struct rte_ring *make_ring(unsigned depth)
{
	ssize_t size = rte_ring_get_memsize(rte_align32pow2(depth + 1));
	struct rte_ring *ring;

	if (size < 0)
		return NULL;
	ring = aligned_alloc(RTE_CACHE_LINE_SIZE,
			     RTE_ALIGN_CEIL((size_t)size, RTE_CACHE_LINE_SIZE));
	/* A worker that lost its CPU in the middle of an enqueue must not make others spin. */
	if (ring && rte_ring_init(ring, "handoff", depth,
				  RING_F_MP_RTS_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) != 0) {
		free(ring);
		ring = NULL;
	}
	return ring;
}

struct handoff *handoff_create(unsigned n_workers, unsigned depth,
			       void (*wake)(void *ctx, unsigned worker), void *wake_ctx)
{
	struct handoff *h = calloc(1, sizeof(*h) + n_workers * sizeof(h->ring[0]));

	if (!h)
		return NULL;
	h->n_workers = n_workers;
	h->wake = wake;
	h->wake_ctx = wake_ctx;
	for (unsigned w = 0; n_workers > 1 && w < n_workers; w++) {
		h->ring[w] = make_ring(depth);
		if (!h->ring[w]) {
			handoff_destroy(h);
			return NULL;
		}
	}
	return h;
}

void handoff_destroy(struct handoff *h)
{
	if (!h)
		return;
	for (unsigned w = 0; w < h->n_workers; w++)
		free(h->ring[w]);
	free(h);
}

/* Every sender wakes once a burst, and only whom it gave something. */
static void wake_all(struct handoff *h, uint64_t workers)
{
	if (!workers || !h->wake)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	for (; workers; workers &= workers - 1)
		h->wake(h->wake_ctx, (unsigned)__builtin_ctzll(workers));
}

unsigned handoff_sort(struct handoff *h, unsigned worker, struct frame **f, unsigned n,
		      struct frame **lost, unsigned *n_lost)
{
	uint64_t woken = 0;
	unsigned kept = 0;

	*n_lost = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t qpn;
		unsigned to;

		if (!steer_qpn(f[i], &qpn)) {
			lost[(*n_lost)++] = f[i];
			continue;
		}
		to = (qpn & 0xffffu) % h->n_workers;
		if (to == worker)
			f[kept++] = f[i];
		else if (rte_ring_enqueue(h->ring[to], f[i]) == 0)
			woken |= 1ull << to;
		else
			lost[(*n_lost)++] = f[i];
	}
	wake_all(h, woken);
	return kept;
}

unsigned handoff_take(struct handoff *h, unsigned worker, struct frame **f, unsigned n)
{
	return h->ring[worker] ? rte_ring_dequeue_burst(h->ring[worker], (void **)f, n, NULL) : 0;
}

bool handoff_give(struct handoff *h, unsigned to, struct frame *f)
{
	if (rte_ring_enqueue(h->ring[to], f) != 0)
		return false;
	wake_all(h, 1ull << to);
	return true;
}

unsigned handoff_workers(const struct handoff *h)
{
	return h->n_workers;
}
