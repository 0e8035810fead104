/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe: it finds a lost tail long before the timeout, and leaves a peer alone that is only
 * slow at times, as every program is on a machine with fewer cores than programs.
 */
#include "tests/sim/scene.h"

#define STALL_NS 300000u /* the first probe comes about 120 us after the packet */

static struct scene s;
static uint32_t stall_every, n_answers;
static link_sim_filter *scene_filter;

static void teardown(void)
{
	scene_free(&s);
}

/* Each so-and-so-many-th answer of B is late by up to twice STALL_NS. */
static enum link_sim_act stall(void *ctx, unsigned from, const struct packet *pk)
{
	enum link_sim_act act = scene_filter(ctx, from, pk);

	if (from == 1 && act == LINK_SIM_PASS && stall_every && ++n_answers % stall_every == 0)
		return LINK_SIM_DELAY;
	return act;
}

static void start(uint8_t timeout)
{
	struct scene_conf conf = {
		.pair = { .link = { .delay_ns = 5000, .jitter_ns = 2 * STALL_NS } },
		.rc = { .timeout = timeout },
	};

	scene_init(&s, &conf);
	scene_filter = s.p.link.filter;
	s.p.link.filter = stall;
	stall_every = n_answers = 0;
}

static uint64_t again(void)
{
	return fake_counter(&s.p.dev[0], "retransmitted_packets");
}

static void writes(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		scene_post(&s, 0, UROCE_WR_WRITE, 0, 64);
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	}
}

START_TEST(a_peer_that_stalls_at_times_is_soon_left_alone)
{
	start(14);
	writes(10);
	stall_every = 10;
	writes(1000); /* a hundred stalls, most of them longer than the first patience */
	ck_assert_uint_lt(again(), 20);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "local_ack_timeout_err"), 0);
}
END_TEST

/* Time to find that the packet, or its ACK, was lost, and to complete. */
static uint64_t time_with_loss(int from, uint8_t op)
{
	uint64_t began = s.p.clock.now;

	s.n_faults = 0;
	scene_fault(&s, from, op, 1, LINK_SIM_DROP);
	writes(1);
	return s.p.clock.now - began;
}

START_TEST(a_lost_tail_is_found_long_before_the_timeout)
{
	start(14); /* 67 ms */
	writes(10);
	ck_assert_uint_lt(time_with_loss(0, BTH_WRITE_ONLY), 500000);
	ck_assert_uint_lt(time_with_loss(1, BTH_ACKNOWLEDGE), 500000);
}
END_TEST

/* Patience that stalls have taught is unlearned when it turns out that packets do get lost. */
START_TEST(after_stalls_a_lost_tail_is_found_in_time_and_then_soon_again)
{
	start(14);
	writes(10);
	stall_every = 10;
	writes(1000);
	stall_every = 0;
	ck_assert_uint_lt(time_with_loss(0, BTH_WRITE_ONLY), 40000000);
	for (unsigned i = 0; i < 12; i++) {
		time_with_loss(i % 2, i % 2 ? BTH_ACKNOWLEDGE : BTH_WRITE_ONLY);
		writes(10);
	}
	ck_assert_uint_lt(time_with_loss(0, BTH_WRITE_ONLY), 500000);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "local_ack_timeout_err"), 0);
}
END_TEST

/* Eight READs wait; the probe asks for the one that is due, not for all. */
START_TEST(a_probe_for_a_read_asks_for_that_one)
{
	start(14);
	writes(10);
	s.p.link.conf.delay_ns = 400000;
	for (unsigned i = 0; i < 8; i++)
		scene_post(&s, 0, UROCE_WR_READ, 4096 * i, 64);
	for (unsigned i = 0; i < 8; i++)
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 0, 64);
	scene_same(&s, 7 * 4096, 64);
	ck_assert_uint_gt(s.sent[0][BTH_READ_REQUEST], 8);
	ck_assert_uint_le(s.sent[0][BTH_READ_REQUEST], 8 + 4);
}
END_TEST

/* The last answers of READs and atomics, and the last requests, get lost: the probe mends each. */
START_TEST(a_lost_answer_to_a_read_or_an_atomic_is_found_too)
{
	static const struct {
		uint8_t wr, lost;
		int from;
		uint32_t len;
	} rows[] = {
		{ UROCE_WR_READ, BTH_READ_RESP_ONLY, 1, 64 },
		{ UROCE_WR_READ, BTH_READ_RESP_LAST, 1, 3000 },
		{ UROCE_WR_READ, BTH_READ_REQUEST, 0, 3000 },
		{ UROCE_WR_FETCH_ADD, BTH_ATOMIC_ACK, 1, 8 },
		{ UROCE_WR_FETCH_ADD, BTH_FETCH_ADD, 0, 8 },
	};
	uint64_t began, word;

	start(14);
	writes(10);
	began = s.p.clock.now;
	memcpy(&word, s.mem[1]->mem + 8192, 8);
	scene_fault(&s, rows[_i].from, rows[_i].lost, 1, LINK_SIM_DROP);
	scene_post(&s, 0, rows[_i].wr, 8192, rows[_i].len);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	ck_assert_uint_lt(s.p.clock.now - began, 1000000);
	if (rows[_i].wr == UROCE_WR_READ)
		scene_same(&s, 8192, rows[_i].len);
	else
		ck_assert_mem_eq(s.mem[0]->mem + 8192, &word, 8);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/probe");
	TCase *c = tcase_create("probe");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_test(c, a_peer_that_stalls_at_times_is_soon_left_alone);
	tcase_add_test(c, a_lost_tail_is_found_long_before_the_timeout);
	tcase_add_test(c, after_stalls_a_lost_tail_is_found_in_time_and_then_soon_again);
	tcase_add_test(c, a_probe_for_a_read_asks_for_that_one);
	tcase_add_loop_test(c, a_lost_answer_to_a_read_or_an_atomic_is_found_too, 0, 5);
	suite_add_tcase(suite, c);
	return suite;
}
