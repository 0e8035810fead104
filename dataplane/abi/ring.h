/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only code that loads or stores an index shared between provider and daemon. Each ring has one
 * producer and one consumer; each side keeps its own index in private memory and only publishes
 * it here, so a peer that scribbles over the page can confuse nobody but itself.
 */
#pragma once

#include "dataplane/abi/abi.h"

/* Producer: entries up to but not including prod are filled. Pairs with uroce_ring_prod(). */
static inline void uroce_ring_publish(struct uroce_ring *r, uint32_t prod)
{
	__atomic_store_n(&r->prod, prod, __ATOMIC_RELEASE);
}

/*
 * Consumer: how many entries wait at `own` (the consumer's private index), or -1 when the index is
 * impossible for a ring of `depth` entries: the other side is broken or hostile.
 */
static inline int64_t uroce_ring_pending(const struct uroce_ring *r, uint32_t own, uint32_t depth)
{
	uint32_t n = __atomic_load_n(&r->prod, __ATOMIC_ACQUIRE) - own;

	return n > depth ? -1 : (int64_t)n;
}

/* Consumer: entries before cons are free again. */
static inline void uroce_ring_consume(struct uroce_ring *r, uint32_t cons)
{
	__atomic_store_n(&r->cons, cons, __ATOMIC_RELEASE);
}

/* Producer: free entries; 0 also for a consumer index that is impossible. */
static inline uint32_t uroce_ring_room(const struct uroce_ring *r, uint32_t prod, uint32_t depth)
{
	uint32_t used = prod - __atomic_load_n(&r->cons, __ATOMIC_ACQUIRE);

	return used > depth ? 0 : depth - used;
}

/* Producer: entries the consumer has not freed yet, or -1 for a consumer index that is impossible.
 */
static inline int64_t uroce_ring_used(const struct uroce_ring *r, uint32_t prod, uint32_t depth)
{
	uint32_t used = prod - __atomic_load_n(&r->cons, __ATOMIC_ACQUIRE);

	return used > depth ? -1 : (int64_t)used;
}

/* Provider: mark QP slot `slot` as rung. True: the worker sleeps, write to its eventfd. */
static inline int uroce_uar_ring(struct uroce_uar_worker *u, uint32_t slot)
{
	uint32_t word = slot / 64;

	__atomic_fetch_or(&u->bits[word], 1ull << (slot % 64), __ATOMIC_RELEASE);
	__atomic_fetch_or(&u->summary[word / 64], 1ull << (word % 64), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&u->need_wakeup, __ATOMIC_RELAXED) != 0;
}

/* Daemon: take and clear summary word i. Plain load first: an idle page costs one shared line. */
static inline uint64_t uroce_uar_take_summary(struct uroce_uar_worker *u, uint32_t i)
{
	if (!__atomic_load_n(&u->summary[i], __ATOMIC_RELAXED))
		return 0;
	return __atomic_exchange_n(&u->summary[i], 0, __ATOMIC_ACQUIRE);
}

/* Daemon: take and clear bitmap word i. */
static inline uint64_t uroce_uar_take_bits(struct uroce_uar_worker *u, uint32_t i)
{
	return __atomic_exchange_n(&u->bits[i], 0, __ATOMIC_ACQUIRE);
}

/* Daemon: say whether doorbells need a wake-up. After setting it, look at all rings once more. */
static inline void uroce_uar_set_need_wakeup(struct uroce_uar_worker *u, uint32_t need)
{
	__atomic_store_n(&u->need_wakeup, need, __ATOMIC_RELAXED);
	if (need)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Provider: arm the CQ. SOLICITED never weakens a pending ANY. Look at the CQ once more
 * afterwards. */
static inline void uroce_cq_arm(struct uroce_cq_page *p, uint32_t mode)
{
	if (mode == UROCE_ARM_ANY || __atomic_load_n(&p->arm, __ATOMIC_RELAXED) != UROCE_ARM_ANY)
		__atomic_store_n(&p->arm, mode, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Daemon, after publishing completions: should an event fire now? Disarms if so. `solicited`: a
 * solicited or failed completion is among the new ones.
 */
static inline int uroce_cq_fire(struct uroce_cq_page *p, int solicited)
{
	uint32_t arm;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	arm = __atomic_load_n(&p->arm, __ATOMIC_RELAXED);
	if (arm != UROCE_ARM_ANY && !(arm == UROCE_ARM_SOLICITED && solicited))
		return 0;
	return __atomic_exchange_n(&p->arm, UROCE_ARM_NONE, __ATOMIC_ACQ_REL) != UROCE_ARM_NONE;
}

/* Daemon: ask for (or no longer ask for) a doorbell after receives are posted. */
static inline void uroce_qp_set_want(struct uroce_qp_page *p, uint32_t want)
{
	__atomic_store_n(&p->want, want, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Provider, after publishing a receive: does the daemon ask for a doorbell? */
static inline int uroce_qp_wants_doorbell(const struct uroce_qp_page *p)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&p->want, __ATOMIC_RELAXED) != 0;
}
