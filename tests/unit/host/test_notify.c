/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/notify.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/ck_main.h"

static struct notify n;
static int fd;

static void setup(void)
{
	ck_assert_int_eq(notify_open(&n, 8, 4, &fd), 0);
}

static void teardown(void)
{
	notify_close(&n);
	close(fd);
}

static short polled(void)
{
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };

	poll(&p, 1, 0);
	return p.revents;
}

static uint64_t next(void)
{
	uint64_t v;

	return recv(fd, &v, 8, MSG_DONTWAIT) == 8 ? v : 0;
}

/* Sends `key` until one is kept; returns how many were given in all. */
static unsigned fill(uint64_t key)
{
	unsigned sent = 1;

	while (!notify_send(&n, &key))
		sent++;
	return sent;
}

START_TEST(the_programs_end_is_never_writable)
{
	uint64_t v = 7;

	ck_assert_int_eq(polled(), 0);
	ck_assert(!notify_send(&n, &v));
	ck_assert_int_eq(polled(), POLLIN);
	ck_assert_uint_eq(next(), 7);
	ck_assert_int_eq(polled(), 0);
}
END_TEST

START_TEST(what_does_not_fit_is_kept_and_comes_in_order)
{
	uint64_t a = 1, b = 2;
	unsigned first = fill(a), seen = 0;

	ck_assert(!notify_send(&n, &b));
	ck_assert(!notify_send(&n, &b));
	ck_assert(!notify_flush(&n));
	while (next() == 1)
		seen++;
	ck_assert_uint_eq(seen, first - 1);
	ck_assert(notify_flush(&n));
	ck_assert_uint_eq(next(), 1);
	ck_assert_uint_eq(next(), 2);
	ck_assert_uint_eq(next(), 2);
	ck_assert_uint_eq(next(), 0);
}
END_TEST

START_TEST(forgotten_records_are_counted_and_not_sent)
{
	uint64_t a = 1, b = 2;

	fill(a);
	notify_send(&n, &b);
	notify_send(&n, &b);
	ck_assert_uint_eq(notify_forget(&n, 2), 2);
	ck_assert_uint_eq(notify_forget(&n, 2), 0);
	while (next())
		;
	ck_assert(notify_flush(&n));
	ck_assert_uint_eq(next(), 1);
	ck_assert_uint_eq(next(), 0);
}
END_TEST

START_TEST(many_kinds_are_each_kept_once)
{
	uint64_t a = UINT64_MAX, v;
	unsigned seen[1001] = { 0 };

	n.max_pending = 2000;
	fill(a);
	for (unsigned round = 0; round < 3; round++)
		for (v = 1; v <= 1000; v++)
			notify_send(&n, &v);
	ck_assert_uint_eq(n.n_pending, 1001);
	ck_assert_uint_eq(notify_forget(&n, 500), 3);
	do {
		while ((v = next()))
			if (v != a)
				seen[v]++;
	} while (!notify_flush(&n));
	while ((v = next()))
		if (v != a)
			seen[v]++;
	for (v = 1; v <= 1000; v++)
		ck_assert_uint_eq(seen[v], v == 500 ? 0 : 3);
}
END_TEST

START_TEST(more_kinds_than_objects_end_the_channel)
{
	uint64_t v = 1;

	fill(v);
	for (v = 2; v < 100; v++)
		notify_send(&n, &v);
	ck_assert(n.is_dead);
	ck_assert_uint_le(n.n_pending, 4);
	ck_assert(notify_flush(&n));
}
END_TEST

START_TEST(a_closed_program_end_is_no_error_and_no_signal)
{
	uint64_t v = 1;

	close(fd);
	for (unsigned i = 0; i < 10; i++)
		ck_assert(!notify_send(&n, &v));
	ck_assert(n.is_dead);
	fd = dup(0);
}
END_TEST

START_TEST(closing_ours_hangs_up_theirs)
{
	notify_close(&n);
	ck_assert_int_eq(polled() & POLLHUP, POLLHUP);
	ck_assert_int_eq(notify_open(&n, 8, 4, &fd), 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("notify");
	TCase *tc = tcase_create("notify");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_programs_end_is_never_writable);
	tcase_add_test(tc, what_does_not_fit_is_kept_and_comes_in_order);
	tcase_add_test(tc, forgotten_records_are_counted_and_not_sent);
	tcase_add_test(tc, many_kinds_are_each_kept_once);
	tcase_add_test(tc, more_kinds_than_objects_end_the_channel);
	tcase_add_test(tc, a_closed_program_end_is_no_error_and_no_signal);
	tcase_add_test(tc, closing_ours_hangs_up_theirs);
	suite_add_tcase(s, tc);
	return s;
}
