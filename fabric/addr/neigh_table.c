/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/neigh_table.h"

#include <string.h>

#define KNOWN       (1ull << 63)
#define PENDING     (1ull << 62)
#define VERSION_ONE (1ull << 48)
#define VERSION     (0x3fffull << 48)
#define ADDRESS     0xffffffffffffull

struct key {
	uint64_t w[2];
};

static struct key key_of(const uint8_t gid[GID_LEN])
{
	struct key k;

	memcpy(k.w, gid, sizeof(k.w));
	return k;
}

static unsigned set_of(struct key k)
{
	uint64_t h = k.w[0] ^ (k.w[1] + 0x9e3779b97f4a7c15ull);

	/* What tells addresses apart is often in the word's highest byte. */
	h = (h ^ h >> 32) * 0xff51afd7ed558ccdull;
	return (unsigned)(h >> 40) % NEIGH_SETS;
}

static bool has_key(const struct neigh_slot *s, struct key k)
{
	return atomic_load_explicit(&s->key[0], memory_order_relaxed) == k.w[0] &&
	       atomic_load_explicit(&s->key[1], memory_order_relaxed) == k.w[1];
}

static void mac_out(uint64_t word, uint8_t mac[6])
{
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)(word >> (40 - 8 * i));
}

static uint64_t mac_in(const uint8_t mac[6])
{
	uint64_t word = 0;

	for (unsigned i = 0; i < 6; i++)
		word = word << 8 | mac[i];
	return word;
}

/* A slot that changes hands changes its version first and last: then it is not what was sought. */
static uint64_t read_slot(const struct neigh_slot *s, struct key k)
{
	uint64_t word = atomic_load_explicit(&s->mac, memory_order_acquire);

	if (!has_key(s, k))
		return 0;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&s->mac, memory_order_relaxed) == word ? word : 0;
}

enum neigh_answer neigh_lookup(struct neigh_table *t, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	struct key k = key_of(gid);
	struct neigh_slot *s = &t->slot[set_of(k) * NEIGH_WAYS];

	for (unsigned i = 0; i < NEIGH_WAYS; i++, s++) {
		uint64_t word = read_slot(s, k);

		if (!(word & (KNOWN | PENDING)))
			continue;
		/* Written once a round only: the line stays shared. */
		if (!atomic_load_explicit(&s->is_used, memory_order_relaxed))
			atomic_store_explicit(&s->is_used, 1, memory_order_relaxed);
		mac_out(word, mac);
		return word & KNOWN ? NEIGH_KNOWN : NEIGH_PENDING;
	}
	return NEIGH_MISSING;
}

static uint64_t next_version(const struct neigh_slot *s)
{
	uint64_t word = atomic_load_explicit(&s->mac, memory_order_relaxed);

	return (word + VERSION_ONE) & VERSION;
}

int neigh_find(const struct neigh_table *t, const uint8_t gid[GID_LEN])
{
	struct key k = key_of(gid);
	unsigned first = set_of(k) * NEIGH_WAYS;

	for (unsigned i = first; i < first + NEIGH_WAYS; i++)
		if (has_key(&t->slot[i], k))
			return (int)i;
	return -1;
}

static bool is_free(const struct neigh_slot *s)
{
	return has_key(s, (struct key) { { 0, 0 } });
}

static unsigned victim(const struct neigh_table *t, unsigned first)
{
	unsigned best = first;

	for (unsigned i = first; i < first + NEIGH_WAYS; i++) {
		if (is_free(&t->slot[i]))
			return i;
		if (t->slot[i].last_used < t->slot[best].last_used)
			best = i;
	}
	return best;
}

unsigned neigh_add(struct neigh_table *t, const uint8_t gid[GID_LEN], bool *is_new)
{
	struct key k = key_of(gid);
	int found = neigh_find(t, gid);
	unsigned at = found >= 0 ? (unsigned)found : victim(t, set_of(k) * NEIGH_WAYS);
	struct neigh_slot *s = &t->slot[at];

	if (is_new)
		*is_new = found < 0;
	s->last_used = ++t->round;
	if (found >= 0)
		return at;
	atomic_store_explicit(&s->mac, next_version(s), memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&s->key[0], k.w[0], memory_order_relaxed);
	atomic_store_explicit(&s->key[1], k.w[1], memory_order_relaxed);
	atomic_store_explicit(&s->mac, next_version(s) | PENDING, memory_order_release);
	return at;
}

bool neigh_set(struct neigh_table *t, unsigned slot, const uint8_t *mac)
{
	struct neigh_slot *s = &t->slot[slot];
	uint64_t old = atomic_load_explicit(&s->mac, memory_order_relaxed);
	uint64_t state = mac ? KNOWN | mac_in(mac) : PENDING;

	if ((old & ~VERSION) == state)
		return false;
	atomic_store_explicit(&s->mac, next_version(s) | state, memory_order_release);
	atomic_fetch_add_explicit(&t->changes, 1, memory_order_release);
	return true;
}

bool neigh_get(const struct neigh_table *t, unsigned slot, uint8_t gid[GID_LEN], bool *is_known)
{
	const struct neigh_slot *s = &t->slot[slot];
	struct key k = { { atomic_load_explicit(&s->key[0], memory_order_relaxed),
			   atomic_load_explicit(&s->key[1], memory_order_relaxed) } };

	memcpy(gid, k.w, sizeof(k.w));
	*is_known = (atomic_load_explicit(&s->mac, memory_order_relaxed) & KNOWN) != 0;
	return !is_free(s);
}

bool neigh_take_used(struct neigh_table *t, unsigned slot)
{
	struct neigh_slot *s = &t->slot[slot];

	if (!atomic_load_explicit(&s->is_used, memory_order_relaxed))
		return false;
	atomic_store_explicit(&s->is_used, 0, memory_order_relaxed);
	s->last_used = ++t->round;
	return true;
}
