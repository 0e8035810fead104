/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker's thread: it runs calls, sees doorbells awake and asleep, and sleeps until its
 * deadline. */
#include "dataplane/daemon/worker.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/abi/ring.h"
#include "dataplane/host/clock.h"
#include "fabric/link/link.h"
#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"

static struct worker *w;
static _Alignas(4096) uint8_t page[4096];
static uint32_t qpn_of_slot[UROCE_CTX_QPS];
static uint64_t heard;
static int event_fd;
static unsigned wakeups;

static unsigned waiting; /* frames that have arrived; the worker's alone once it runs */

static unsigned some_frames(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	static struct frame frame;

	(void)p;
	(void)now;
	if (n > waiting)
		n = waiting;
	for (unsigned i = 0; i < n; i++)
		f[i] = &frame;
	waiting -= n;
	return n;
}

static void free_frames(struct link_port *p, struct frame *const *f, unsigned n)
{
	(void)p;
	(void)f;
	(void)n;
}

static uint64_t never(const struct link_port *p)
{
	(void)p;
	return UINT64_MAX;
}

static int no_fd(const struct link_port *p)
{
	(void)p;
	return -1;
}

static const struct link_ops silent_ops = {
	.rx = some_frames, .free = free_frames, .deadline = never, .wait_fd = no_fd
};
static struct link_port silent = { .ops = &silent_ops };

static void count_wakeups(void *ctx)
{
	(void)ctx;
	__atomic_fetch_add(&wakeups, 1, __ATOMIC_RELAXED);
}

static void setup(void)
{
	static uint64_t arena[64];
	struct worker_conf conf = { .woken = count_wakeups };
	struct engine_conf ec = { 0 };
	struct ports ports = { 0 };
	struct engine *e = engine_create(&ec, &ports, arena);
	struct worker_doorbells bells = { .page = (struct uroce_uar_worker *)page,
					  .engine = e,
					  .qpn_of_slot = qpn_of_slot, .clock = &heard };
	int err;

	fake.deadline = UINT64_MAX;
	event_fd = bells.event_fd = eventfd(0, EFD_NONBLOCK);
	w = worker_create(&conf, &err);
	ck_assert_ptr_nonnull(w);
	ck_assert_int_eq(worker_add_device(w, e, &silent), 0);
	ck_assert_int_eq(worker_add_doorbells(w, &bells), 0);
	qpn_of_slot[5000] = 0x123;
	ck_assert_int_eq(worker_start(w), 0);
}

static void teardown(void)
{
	worker_stop(w);
	worker_destroy(w);
	close(event_fd);
}

static struct uroce_uar_worker *uar(void)
{
	return (struct uroce_uar_worker *)page;
}

/* It sleeps when it has been idle; there is no event for that, so look until it is so. */
static void wait_asleep(void)
{
	struct worker_status s;

	do {
		nanosleep(&(struct timespec) { .tv_nsec = 100000 }, NULL);
		worker_get_status(w, &s);
	} while (!s.is_asleep || !s.sleeps);
}

static void wait_doorbells(unsigned n)
{
	while (__atomic_load_n(&fake.doorbells, __ATOMIC_RELAXED) < n)
		nanosleep(&(struct timespec) { .tv_nsec = 100000 }, NULL);
}

/* As the provider rings. True: a wake-up was asked for and sent. */
static bool ring(uint32_t slot)
{
	static const uint64_t one = 1;

	if (!uroce_uar_ring(uar(), slot))
		return false;
	ck_assert_int_eq(write(event_fd, &one, 8), 8);
	return true;
}

static void note(struct worker *self, uint64_t now, void *arg)
{
	*(bool *)arg = self == w && now > 0;
}

START_TEST(a_call_has_run_when_it_returns)
{
	for (unsigned i = 0; i < 100; i++) {
		bool done = false;

		if (i % 10 == 0)
			wait_asleep();
		worker_call(w, note, &done);
		ck_assert(done);
	}
}
END_TEST

START_TEST(a_doorbell_wakes_a_sleeper)
{
	for (unsigned i = 1; i <= 20; i++) {
		wait_asleep();
		ring(5000);
		wait_doorbells(i);
	}
	ck_assert_uint_ge(__atomic_load_n(&wakeups, __ATOMIC_RELAXED), 1);
	/* Of a slot without a QP: seen, and nothing is called. */
	wait_asleep();
	ring(7);
	wait_asleep();
	ck_assert_uint_eq(__atomic_load_n(&fake.doorbells, __ATOMIC_RELAXED), 20);
}
END_TEST

START_TEST(no_doorbell_is_lost_between_awake_and_asleep)
{
	uint64_t seed = ck_seed();

	for (unsigned i = 1; i <= 3000; i++) {
		unsigned before = __atomic_load_n(&fake.doorbells, __ATOMIC_RELAXED);
		uint64_t until = clock_now() + ck_below(&seed, 120000);

		while (clock_now() < until)
			;
		ring(5000);
		wait_doorbells(before + 1);
	}
}
END_TEST

START_TEST(it_sleeps_until_the_engines_deadline)
{
	uint64_t at;

	wait_asleep();
	at = clock_now() + 20000000;
	__atomic_store_n(&fake.deadline, at, __ATOMIC_RELEASE);
	worker_call(w, note,
		    &(bool) { false }); /* it looks at the deadline before it sleeps again */
	while (!__atomic_load_n(&fake.expired, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec) { .tv_nsec = 100000 }, NULL);
	ck_assert_uint_ge(fake.expired_at, at);
}
END_TEST

/* In the worker's thread: so many frames are there, and a deadline has passed meanwhile. */
static void come_late(struct worker *self, uint64_t now, void *arg)
{
	(void)self;
	(void)now;
	waiting = *(unsigned *)arg;
	fake.deadline = 1;
}

static void wait_expired(void)
{
	while (!__atomic_load_n(&fake.expired, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec) { .tv_nsec = 100000 }, NULL);
}

START_TEST(timers_wait_for_what_has_arrived)
{
	unsigned n = 1000;

	worker_call(w, come_late, &n);
	wait_expired();
	ck_assert_uint_eq(fake.rx_before, n);
}
END_TEST

START_TEST(timers_do_not_wait_for_ever)
{
	unsigned n = 1000000;

	worker_call(w, come_late, &n);
	wait_expired();
	ck_assert_uint_lt(fake.rx_before, 10000);
}
END_TEST

START_TEST(an_idle_worker_costs_nothing)
{
	struct worker_status a, b;

	wait_asleep();
	worker_get_status(w, &a);
	nanosleep(&(struct timespec) { .tv_nsec = 300000000 }, NULL);
	worker_get_status(w, &b);
	ck_assert_uint_eq(a.turns, b.turns);
	ck_assert(b.is_asleep);
}
END_TEST

START_TEST(a_session_that_left_is_not_looked_at)
{
	worker_stop(w);
	worker_del_doorbells(w, uar());
	ring(5000);
	ck_assert_uint_ne(uar()->summary[5000 / 4096], 0);
	ck_assert_uint_eq(fake.doorbells, 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("worker");
	TCase *tc = tcase_create("worker");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_call_has_run_when_it_returns);
	tcase_add_test(tc, a_doorbell_wakes_a_sleeper);
	tcase_add_test(tc, no_doorbell_is_lost_between_awake_and_asleep);
	tcase_add_test(tc, it_sleeps_until_the_engines_deadline);
	tcase_add_test(tc, timers_wait_for_what_has_arrived);
	tcase_add_test(tc, timers_do_not_wait_for_ever);
	tcase_add_test(tc, an_idle_worker_costs_nothing);
	tcase_add_test(tc, a_session_that_left_is_not_looked_at);
	suite_add_tcase(s, tc);
	return s;
}
