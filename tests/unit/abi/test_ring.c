/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/abi/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "tests/support/ck_main.h"

static const struct {
	uint32_t prod, own, depth;
	int64_t pending;
} takes[] = {
	{ 0, 0, 8, 0 },
	{ 1, 0, 8, 1 },
	{ 8, 0, 8, 8 },
	{ 9, 0, 8, -1 },         /* more than the ring holds */
	{ 0, 1, 8, -1 },         /* went back */
	{ 3, 0xfffffffe, 8, 5 }, /* over the wrap of 2^32 */
	{ 0xffffffff, 0xffffffff, 1, 0 },
	{ 0, 0xffffffff, 1, 1 },
	{ 0x80000000, 0, 16384, -1 },
	{ 0xffffffff, 0, 1u << 20, -1 },
};

START_TEST(pending_is_the_distance_or_minus_one_when_impossible)
{
	struct uroce_ring r;

	memset(&r, 0x5a, sizeof(r));
	uroce_ring_publish(&r, takes[_i].prod);
	ck_assert_int_eq(uroce_ring_pending(&r, takes[_i].own, takes[_i].depth), takes[_i].pending);
}
END_TEST

static const struct {
	uint32_t prod, cons, depth, room;
} rooms[] = {
	{ 0, 0, 8, 8 },   { 8, 0, 8, 0 },          { 8, 8, 8, 8 },
	{ 8, 5, 8, 5 },   { 8, 9, 8, 0 }, /* the consumer claims what was never made */
	{ 100, 0, 8, 0 }, { 2, 0xfffffffd, 8, 3 },
};

START_TEST(room_is_what_is_free_and_none_for_an_impossible_consumer)
{
	struct uroce_ring r;

	memset(&r, 0x5a, sizeof(r));
	uroce_ring_consume(&r, rooms[_i].cons);
	ck_assert_uint_eq(uroce_ring_room(&r, rooms[_i].prod, rooms[_i].depth), rooms[_i].room);
}
END_TEST

START_TEST(a_doorbell_sets_its_bit_and_its_summary_bit_and_nothing_else)
{
	static const uint32_t slots[] = { 0, 1, 63, 64, 4095, 4096, 8191, UROCE_CTX_QPS - 1 };
	struct uroce_uar_worker u = { 0 };
	uint32_t slot = slots[_i];

	ck_assert_int_eq(uroce_uar_ring(&u, slot), 0);
	for (uint32_t i = 0; i < UROCE_UAR_SUMMARY; i++)
		ck_assert_uint_eq(uroce_uar_take_summary(&u, i),
				  i == slot / 4096 ? 1ull << (slot / 64 % 64) : 0);
	for (uint32_t i = 0; i < UROCE_UAR_WORDS; i++)
		ck_assert_uint_eq(uroce_uar_take_bits(&u, i),
				  i == slot / 64 ? 1ull << (slot % 64) : 0);
	for (uint32_t i = 0; i < UROCE_UAR_SUMMARY; i++)
		ck_assert_uint_eq(uroce_uar_take_summary(&u, i), 0);
}
END_TEST

START_TEST(a_doorbell_says_whether_the_worker_sleeps)
{
	struct uroce_uar_worker u = { 0 };

	uroce_uar_set_need_wakeup(&u, 1);
	ck_assert_int_eq(uroce_uar_ring(&u, 5), 1);
	uroce_uar_set_need_wakeup(&u, 0);
	ck_assert_int_eq(uroce_uar_ring(&u, 5), 0);
}
END_TEST

static const struct {
	uint32_t arm;
	int solicited, fires;
	uint32_t left;
} fires[] = {
	{ UROCE_ARM_NONE, 0, 0, UROCE_ARM_NONE },
	{ UROCE_ARM_NONE, 1, 0, UROCE_ARM_NONE },
	{ UROCE_ARM_ANY, 0, 1, UROCE_ARM_NONE },
	{ UROCE_ARM_ANY, 1, 1, UROCE_ARM_NONE },
	{ UROCE_ARM_SOLICITED, 0, 0, UROCE_ARM_SOLICITED },
	{ UROCE_ARM_SOLICITED, 1, 1, UROCE_ARM_NONE },
	{ 77, 1, 0, 77 }, /* a scribbled word fires nothing */
};

START_TEST(an_event_fires_once_when_the_arm_word_asks_for_it)
{
	struct uroce_cq_page p = { .arm = fires[_i].arm };

	ck_assert_int_eq(uroce_cq_fire(&p, fires[_i].solicited), fires[_i].fires);
	ck_assert_uint_eq(p.arm, fires[_i].left);
	if (fires[_i].fires)
		ck_assert_int_eq(uroce_cq_fire(&p, 1), 0);
}
END_TEST

START_TEST(arming_for_solicited_never_weakens_any)
{
	struct uroce_cq_page p = { 0 };

	uroce_cq_arm(&p, UROCE_ARM_SOLICITED);
	ck_assert_uint_eq(p.arm, UROCE_ARM_SOLICITED);
	uroce_cq_arm(&p, UROCE_ARM_ANY);
	uroce_cq_arm(&p, UROCE_ARM_SOLICITED);
	ck_assert_uint_eq(p.arm, UROCE_ARM_ANY);
}
END_TEST

START_TEST(want_is_seen_by_the_poster)
{
	struct uroce_qp_page p = { 0 };

	ck_assert(!uroce_qp_wants_doorbell(&p));
	uroce_qp_set_want(&p, 1);
	ck_assert(uroce_qp_wants_doorbell(&p));
	uroce_qp_set_want(&p, 0);
	ck_assert(!uroce_qp_wants_doorbell(&p));
}
END_TEST

/* Two threads over a small ring: every entry arrives once, in order, fully written. */
#define SPIN_DEPTH 16u
#define SPIN_COUNT 200000u

static struct {
	struct uroce_ring ring;
	struct {
		uint64_t a, b;
	} slot[SPIN_DEPTH];
} spin;

static void *spin_produce(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < SPIN_COUNT;) {
		uint32_t room = uroce_ring_room(&spin.ring, i, SPIN_DEPTH);

		if (!room)
			sched_yield();
		for (; room && i < SPIN_COUNT; room--, i++) {
			spin.slot[i % SPIN_DEPTH].a = i;
			spin.slot[i % SPIN_DEPTH].b = ~(uint64_t)i;
		}
		uroce_ring_publish(&spin.ring, i);
	}
	return NULL;
}

START_TEST(two_threads_pass_every_entry_once_and_whole)
{
	pthread_t t;
	uint32_t own = 0;

	ck_assert_int_eq(pthread_create(&t, NULL, spin_produce, NULL), 0);
	while (own < SPIN_COUNT) {
		int64_t n = uroce_ring_pending(&spin.ring, own, SPIN_DEPTH);

		ck_assert_int_ge(n, 0);
		if (!n)
			sched_yield();
		for (; n > 0; n--, own++) {
			ck_assert_uint_eq(spin.slot[own % SPIN_DEPTH].a, own);
			ck_assert_uint_eq(spin.slot[own % SPIN_DEPTH].b, ~(uint64_t)own);
		}
		uroce_ring_consume(&spin.ring, own);
	}
	pthread_join(t, NULL);
}
END_TEST

/* The wake-up handshake: a sleeper that looks once more after need_wakeup misses no doorbell. */
#define WAKE_COUNT 100000u

static struct {
	struct uroce_uar_worker uar;
	uint32_t posted, kicks;
} wake;

static void *wake_ring(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < WAKE_COUNT; i++) {
		__atomic_store_n(&wake.posted, i + 1, __ATOMIC_RELEASE);
		if (uroce_uar_ring(&wake.uar, 3))
			__atomic_fetch_add(&wake.kicks, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static bool wake_look(uint32_t *seen)
{
	if (!uroce_uar_take_summary(&wake.uar, 0) || !uroce_uar_take_bits(&wake.uar, 0))
		return false;
	*seen = __atomic_load_n(&wake.posted, __ATOMIC_ACQUIRE);
	return true;
}

START_TEST(a_worker_that_looks_again_before_it_sleeps_misses_no_doorbell)
{
	pthread_t t;
	uint32_t seen = 0, kicks = 0;

	ck_assert_int_eq(pthread_create(&t, NULL, wake_ring, NULL), 0);
	while (seen < WAKE_COUNT) {
		if (wake_look(&seen))
			continue;
		uroce_uar_set_need_wakeup(&wake.uar, 1);
		if (!wake_look(&seen)) {
			/* Asleep: only a kick may wake us; a lost doorbell hangs here (Check's
			 * timeout). */
			while (__atomic_load_n(&wake.kicks, __ATOMIC_ACQUIRE) == kicks)
				sched_yield();
			kicks = __atomic_load_n(&wake.kicks, __ATOMIC_ACQUIRE);
		}
		uroce_uar_set_need_wakeup(&wake.uar, 0);
	}
	pthread_join(t, NULL);
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

Suite *suite_make(void)
{
	Suite *s = suite_create("abi/ring");
	TCase *c = tcase_create("ring");

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, pending_is_the_distance_or_minus_one_when_impossible, 0, N(takes));
	tcase_add_loop_test(c, room_is_what_is_free_and_none_for_an_impossible_consumer, 0,
			    N(rooms));
	tcase_add_loop_test(c, a_doorbell_sets_its_bit_and_its_summary_bit_and_nothing_else, 0, 8);
	tcase_add_test(c, a_doorbell_says_whether_the_worker_sleeps);
	tcase_add_loop_test(c, an_event_fires_once_when_the_arm_word_asks_for_it, 0, N(fires));
	tcase_add_test(c, arming_for_solicited_never_weakens_any);
	tcase_add_test(c, want_is_seen_by_the_poster);
	tcase_add_test(c, two_threads_pass_every_entry_once_and_whole);
	tcase_add_test(c, a_worker_that_looks_again_before_it_sleeps_misses_no_doorbell);
	suite_add_tcase(s, c);
	return s;
}
