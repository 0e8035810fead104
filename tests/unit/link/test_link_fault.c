/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_fault.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "tests/unit/link/fake_link.h"
#include "tests/unit/wire/sample.h"

#define BATCH 16u

static struct link_fault *lf;
static struct link_port *port;

static void setup(void)
{
	struct link_port *inner = &below.port;

	memset(&below, 0, sizeof(below));
	below.port =
		(struct link_port) { .ops = &fake_ops, .mac = { 2, 0, 0, 0, 0, 9 }, .mtu = 4200 };
	below.room = 4096;
	below.alloc_limit = 8192;
	lf = link_fault_create(&inner, 1, &port);
	ck_assert_ptr_nonnull(lf);
}

/* Nobody may have kept a frame. */
static void teardown(void)
{
	link_fault_drain(port);
	free_pipe(&below.out);
	free_pipe(&below.in);
	ck_assert_uint_eq(below.live, 0);
	link_fault_destroy(lf);
}

static void set(const char *text)
{
	char err[128];

	ck_assert_msg(link_fault_set(lf, text, err, sizeof(err)) == 0, "%s: %s", text, err);
}

static struct frame *make(uint32_t psn)
{
	static uint64_t seed = 1;
	struct packet pk = {
		.opcode = BTH_SEND_ONLY, .dest_qpn = 2, .psn = psn, .payload_len = 33
	};
	struct frame *f;
	struct fake_frame *x;

	ck_assert_uint_eq(fake_alloc(NULL, &f, 1), 1);
	x = f->owner;
	*f = sample_build(&pk, SAMPLE_V4, &x->room, 1, &seed);
	f->owner = x;
	return f;
}

/* Sends what tx_room allows of frames numbered from psn on; returns how many. */
static unsigned send(uint64_t now, uint32_t psn, unsigned n)
{
	unsigned room = port->ops->tx_room(port), sent = n < room ? n : room;

	for (unsigned i = 0; i < sent; i++) {
		struct frame *f = make(psn + i);

		port->ops->tx(port, now, &f, 1);
	}
	return sent;
}

static uint32_t psn_of(const struct frame *f)
{
	struct packet pk;

	ck_assert_int_eq(packet_parse(&pk, f, true), PACKET_OK);
	return pk.psn;
}

static unsigned receive(uint64_t now, uint32_t *psn)
{
	struct frame *f[BATCH];
	unsigned n = port->ops->rx(port, now, f, BATCH);

	for (unsigned i = 0; i < n; i++)
		psn[i] = psn_of(f[i]);
	port->ops->free(port, f, n);
	return n;
}

static void arrive(uint32_t psn)
{
	below.in.f[below.in.n++] = make(psn);
}

static uint64_t counted(enum link_fault_count what)
{
	uint64_t c[LINK_FAULT_N_COUNTS];

	link_fault_counters(lf, c);
	return c[what];
}

static void assert_sent(unsigned n, const uint32_t *psn)
{
	ck_assert_uint_eq(below.out.n, n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(psn_of(below.out.f[i]), psn[i]);
}

START_TEST(without_rules_it_is_the_port_below)
{
	uint32_t psn[BATCH];

	ck_assert_mem_eq(port->mac, below.port.mac, 6);
	ck_assert_uint_eq(port->mtu, 4200);
	ck_assert_int_eq(port->ops->wait_fd(port), 42);
	ck_assert_uint_eq(port->ops->tx_room(port), 4096);
	ck_assert_uint_eq(send(0, 0, 3), 3);
	assert_sent(3, (uint32_t[]){ 0, 1, 2 });
	arrive(7);
	ck_assert_uint_eq(receive(0, psn), 1);
	ck_assert_uint_eq(psn[0], 7);
	ck_assert_uint_eq(port->ops->deadline(port), UINT64_MAX);
	ck_assert_uint_eq(counted(LINK_FAULT_PASSED), 0); /* not even looked at */
}
END_TEST

START_TEST(a_one_shot_drop_loses_that_frame_and_no_other)
{
	uint32_t psn[BATCH];

	set("--once opcode=send-only nth=2 dir=tx --once nth=1 dir=rx");
	ck_assert_uint_eq(send(0, 0, 4), 4);
	assert_sent(3, (uint32_t[]){ 0, 2, 3 });
	arrive(8);
	arrive(9);
	ck_assert_uint_eq(receive(0, psn), 1);
	ck_assert_uint_eq(psn[0], 9);
	ck_assert_uint_eq(counted(LINK_FAULT_DROPPED), 2);
	ck_assert_uint_eq(counted(LINK_FAULT_ONCE), 2);
}
END_TEST

START_TEST(duplicates_are_frames_of_their_own)
{
	uint32_t psn[BATCH];

	set("dup=100%");
	ck_assert_uint_eq(send(0, 5, 2), 2);
	assert_sent(4, (uint32_t[]){ 5, 5, 6, 6 });
	ck_assert_ptr_ne(below.out.f[0], below.out.f[1]);
	ck_assert_ptr_ne(below.out.f[0]->seg[0].base, below.out.f[1]->seg[0].base);
	arrive(9);
	ck_assert_uint_eq(receive(0, psn), 2);
	ck_assert_uint_eq(counted(LINK_FAULT_DUPLICATED), 3);
}
END_TEST

START_TEST(without_memory_a_copy_is_left_out_and_counted)
{
	set("dup=100%");
	below.alloc_limit = 1;
	ck_assert_uint_eq(send(0, 5, 1), 1);
	assert_sent(1, (uint32_t[]){ 5 });
	ck_assert_uint_eq(counted(LINK_FAULT_NO_BUFFER), 1);
}
END_TEST

START_TEST(damage_is_on_the_wire_and_found_by_the_icrc)
{
	struct packet pk;

	set("--once nth=2 action=corrupt");
	send(0, 0, 3);
	ck_assert_uint_eq(below.out.n, 3);
	ck_assert_int_eq(packet_parse(&pk, below.out.f[0], true), PACKET_OK);
	ck_assert_int_ne(packet_parse(&pk, below.out.f[1], true), PACKET_OK);
	ck_assert_int_eq(packet_parse(&pk, below.out.f[2], true), PACKET_OK);
	ck_assert_uint_eq(counted(LINK_FAULT_CORRUPTED), 1);
}
END_TEST

/* The switch below sends frames without an ICRC. */
START_TEST(damage_to_an_open_frame_is_found_too)
{
	struct packet pk;

	set("--once nth=2 action=corrupt");
	for (uint32_t i = 0; i < 3; i++) {
		struct frame *f = make(i);

		ck_assert_uint_gt(port->ops->tx_room(port), 0);
		memset(f->trailer + f->trailer_len - 4, 0, 4);
		f->is_open = true;
		port->ops->tx(port, 0, &f, 1);
	}
	ck_assert_uint_eq(below.out.n, 3);
	ck_assert_int_eq(packet_parse(&pk, below.out.f[0], true), PACKET_OK);
	ck_assert_int_ne(packet_parse(&pk, below.out.f[1], true), PACKET_OK);
	ck_assert_int_eq(packet_parse(&pk, below.out.f[2], true), PACKET_OK);
}
END_TEST

START_TEST(late_frames_arrive_when_deadline_says)
{
	uint32_t psn[BATCH];

	set("delay=10us");
	ck_assert_uint_eq(send(1000, 1, 1), 1);
	arrive(2);
	ck_assert_uint_eq(receive(2000, psn), 0);
	ck_assert_uint_eq(below.out.n, 0);
	ck_assert_uint_eq(port->ops->deadline(port), 11000);
	ck_assert_uint_eq(receive(10999, psn), 0);
	ck_assert_uint_eq(below.out.n, 0);
	ck_assert_uint_eq(receive(11000, psn), 0);
	assert_sent(1, (uint32_t[]){ 1 });
	ck_assert_uint_eq(port->ops->deadline(port), 12000);
	ck_assert_uint_eq(receive(12000, psn), 1);
	ck_assert_uint_eq(psn[0], 2);
	ck_assert_uint_eq(port->ops->deadline(port), UINT64_MAX);
}
END_TEST

START_TEST(a_reordered_frame_comes_after_later_ones)
{
	uint32_t psn[BATCH];

	set("--once nth=1 action=reorder");
	send(0, 0, 3);
	receive(FAULT_HOLD_NS, psn);
	assert_sent(3, (uint32_t[]){ 1, 2, 0 });
	ck_assert_uint_eq(counted(LINK_FAULT_REORDERED), 1);
}
END_TEST

START_TEST(a_constant_delay_keeps_the_order)
{
	uint32_t psn[BATCH], want[200];

	set("delay=5us");
	for (uint32_t i = 0; i < 200; i++) {
		want[i] = i;
		ck_assert_uint_eq(send(i * 100, i, 1), 1);
		receive(i * 100, psn);
	}
	receive(100000, psn);
	assert_sent(200, want);
}
END_TEST

START_TEST(a_partition_stops_both_ways_until_it_is_lifted)
{
	uint32_t psn[BATCH];

	set("partition=on");
	ck_assert_uint_eq(send(0, 0, 2), 2);
	arrive(1);
	ck_assert_uint_eq(receive(0, psn), 0);
	ck_assert_uint_eq(below.out.n, 0);
	ck_assert_uint_eq(counted(LINK_FAULT_PARTITIONED), 3);
	set("partition=off");
	ck_assert_uint_eq(send(0, 5, 1), 1);
	assert_sent(1, (uint32_t[]){ 5 });
}
END_TEST

START_TEST(a_cut_port_loses_all_whatever_the_rules_are)
{
	uint32_t psn[BATCH];

	ck_assert_int_eq(link_fault_cut(lf, true), 0);
	ck_assert_int_eq(link_fault_clear(lf), 0);
	set("dup=100%");
	ck_assert_uint_eq(send(0, 0, 2), 2);
	arrive(1);
	ck_assert_uint_eq(receive(0, psn), 0);
	ck_assert_uint_eq(below.out.n, 0);
	ck_assert_uint_eq(counted(LINK_FAULT_PARTITIONED), 3);
	set("dup=0");
	ck_assert_int_eq(link_fault_cut(lf, false), 0);
	ck_assert_uint_eq(send(0, 5, 1), 1);
	assert_sent(1, (uint32_t[]){ 5 });
}
END_TEST

START_TEST(full_links_below_lose_nothing_and_keep_the_order)
{
	uint32_t psn[BATCH], want[40];
	unsigned sent;

	set("dup=100%"); /* so that more comes out than room was for */
	below.room = 10;
	sent = send(0, 0, 20);
	ck_assert_uint_eq(sent, 10);
	ck_assert_uint_eq(below.out.n, 10);
	ck_assert_uint_le(port->ops->deadline(port), 0);
	below.room = 4;
	receive(1, psn);
	ck_assert_uint_eq(below.out.n, 14);
	below.room = 100;
	sent += send(2, 10, 10);
	receive(3, psn);
	ck_assert_uint_eq(sent, 20);
	for (uint32_t i = 0; i < 40; i++)
		want[i] = i / 2;
	assert_sent(40, want);
	ck_assert_uint_eq(counted(LINK_FAULT_OVERFLOW), 0);
}
END_TEST

/* Whatever the rules, a sender that heeds tx_room loses nothing to a full queue. */
START_TEST(tx_room_keeps_late_frames_within_the_queue)
{
	uint32_t psn[BATCH];
	uint32_t next = 0;

	set("dup=100% delay=1s");
	for (unsigned n; (n = send(0, next, 64)) > 0;)
		next += n;
	ck_assert_uint_ge(next, 200);
	ck_assert_uint_eq(port->ops->tx_room(port), 0);
	ck_assert_uint_eq(counted(LINK_FAULT_OVERFLOW), 0);
	while (port->ops->deadline(port) != UINT64_MAX)
		receive(1000000000, psn);
	ck_assert_uint_eq(below.out.n, 2 * next);
}
END_TEST

START_TEST(a_queue_that_is_full_leaves_arrivals_below)
{
	uint32_t psn[BATCH];
	unsigned got = 0;

	set("delay=1s dup=100% dir=rx");
	for (uint32_t i = 0; i < 1000; i++)
		arrive(i);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(receive(0, psn), 0);
	ck_assert_uint_gt(below.in.n, 0);
	for (uint64_t s = 1; got < 2000 && s < 100; s++) {
		for (unsigned n; (n = receive(s * 1000000000, psn)) > 0;)
			got += n;
	}
	ck_assert_uint_eq(got, 2000);
	ck_assert_uint_eq(counted(LINK_FAULT_OVERFLOW), 0);
}
END_TEST

/* 1 ms of queue and no more: senders wait, timeouts do not fire. */
START_TEST(a_rate_limit_makes_senders_wait_instead_of_queueing)
{
	uint32_t next = 0, psn[BATCH];
	uint64_t now = 0;
	struct frame *sample = make(0);
	uint32_t bits = frame_len(sample) * 8;

	fake_free(NULL, &sample, 1);
	set("rate=10mbit");
	while (now < 100000000) {
		next += send(now, next, BATCH);
		receive(now, psn);
		now += 10000;
	}
	/* 100 ms at 10 Mbit/s are a million bits */
	ck_assert_uint_ge(below.out.n, 1000000 / bits - 1);
	ck_assert_uint_le(below.out.n, 1000000 / bits);
	ck_assert_uint_le(next - below.out.n, 10000 / bits + 2 * BATCH);
}
END_TEST

START_TEST(rules_are_changed_one_by_one_and_cleared_together)
{
	char text[FAULT_TEXT_MAX], err[128];

	set("drop=1% seed=7");
	set("dup=2% --once nth=3");
	ck_assert_str_eq(link_fault_text(lf, text, sizeof(text)),
			 "drop=1% dup=2% seed=7 --once nth=3 action=drop");
	ck_assert_int_eq(link_fault_set(lf, "drop=200%", err, sizeof(err)), -EINVAL);
	ck_assert_str_eq(err, "drop takes a chance from 0% to 100%, not \"200%\"");
	ck_assert_str_eq(link_fault_text(lf, text, sizeof(text)),
			 "drop=1% dup=2% seed=7 --once nth=3 action=drop");
	ck_assert_int_eq(link_fault_clear(lf), 0);
	ck_assert_str_eq(link_fault_text(lf, text, sizeof(text)), "");
}
END_TEST

START_TEST(a_used_rule_makes_room_for_another_and_counts_go_on)
{
	char text[FAULT_TEXT_MAX];

	set("--once nth=1 --once nth=3");
	send(0, 0, 2);
	assert_sent(1, (uint32_t[]){ 1 });
	ck_assert_str_eq(link_fault_text(lf, text, sizeof(text)), "--once nth=3 action=drop");
	set("--once psn=9"); /* the second rule has seen two and keeps its count */
	send(0, 2, 2);
	assert_sent(2, (uint32_t[]){ 1, 3 });
}
END_TEST

START_TEST(late_frames_still_arrive_after_the_rules_are_cleared)
{
	uint32_t psn[BATCH];

	set("delay=10us");
	send(0, 1, 1);
	link_fault_clear(lf);
	ck_assert_uint_eq(send(5, 2, 1), 1);
	receive(10000, psn);
	assert_sent(2, (uint32_t[]){ 2, 1 });
}
END_TEST

START_TEST(the_same_seed_loses_the_same_frames)
{
	uint32_t first[400];
	unsigned n;

	set("drop=20% seed=11");
	send(0, 0, 200);
	n = below.out.n;
	for (unsigned i = 0; i < n; i++)
		first[i] = psn_of(below.out.f[i]);
	free_pipe(&below.out);
	set("seed=11");
	send(0, 0, 200);
	assert_sent(n, first);
}
END_TEST

/* Rules change a thousand times under a worker that sends; the sanitizers watch. */
static atomic_bool is_done;

static void *work(void *arg)
{
	uint32_t psn[BATCH], next = 0;
	uint64_t now = 0;

	(void)arg;
	while (!atomic_load(&is_done)) {
		next += send(now += 1000, next & 0xffffff, 4);
		arrive(next & 0xffffff);
		receive(now, psn);
		free_pipe(&below.out);
		below.room = 4096;
		sched_yield();
	}
	return NULL;
}

START_TEST(rules_may_change_while_frames_pass)
{
	static const char *const texts[] = { "drop=1%", "delay=10us", "dup=10%", "rate=1gbit",
					     "--once nth=2", "jitter=1us" };
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	for (int i = 0; i < 1000; i++) {
		char text[FAULT_TEXT_MAX];

		if (i % 7 == 6)
			link_fault_clear(lf);
		else
			set(texts[i % 7]);
		link_fault_text(lf, text, sizeof(text));
		counted(LINK_FAULT_PASSED);
		sched_yield();
	}
	atomic_store(&is_done, true);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(every_count_has_a_name)
{
	for (unsigned i = 0; i < LINK_FAULT_N_COUNTS; i++)
		ck_assert(link_fault_count_name[i] && *link_fault_count_name[i]);
}
END_TEST

static void add_queue_tests(Suite *s)
{
	TCase *tc = tcase_create("queue");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, late_frames_arrive_when_deadline_says);
	tcase_add_test(tc, a_reordered_frame_comes_after_later_ones);
	tcase_add_test(tc, a_constant_delay_keeps_the_order);
	tcase_add_test(tc, full_links_below_lose_nothing_and_keep_the_order);
	tcase_add_test(tc, tx_room_keeps_late_frames_within_the_queue);
	tcase_add_test(tc, a_queue_that_is_full_leaves_arrivals_below);
	tcase_add_test(tc, a_rate_limit_makes_senders_wait_instead_of_queueing);
	suite_add_tcase(s, tc);
}

static void add_rule_tests(Suite *s)
{
	TCase *tc = tcase_create("rules");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, rules_are_changed_one_by_one_and_cleared_together);
	tcase_add_test(tc, a_used_rule_makes_room_for_another_and_counts_go_on);
	tcase_add_test(tc, late_frames_still_arrive_after_the_rules_are_cleared);
	tcase_add_test(tc, the_same_seed_loses_the_same_frames);
	tcase_add_test(tc, rules_may_change_while_frames_pass);
	suite_add_tcase(s, tc);
}

Suite *suite_make(void)
{
	Suite *s = suite_create("link_fault");
	TCase *tc = tcase_create("faults");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, without_rules_it_is_the_port_below);
	tcase_add_test(tc, a_one_shot_drop_loses_that_frame_and_no_other);
	tcase_add_test(tc, duplicates_are_frames_of_their_own);
	tcase_add_test(tc, without_memory_a_copy_is_left_out_and_counted);
	tcase_add_test(tc, damage_is_on_the_wire_and_found_by_the_icrc);
	tcase_add_test(tc, damage_to_an_open_frame_is_found_too);
	tcase_add_test(tc, a_partition_stops_both_ways_until_it_is_lifted);
	tcase_add_test(tc, a_cut_port_loses_all_whatever_the_rules_are);
	tcase_add_test(tc, every_count_has_a_name);
	suite_add_tcase(s, tc);
	add_queue_tests(s);
	add_rule_tests(s);
	return s;
}
