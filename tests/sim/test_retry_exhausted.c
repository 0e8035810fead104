/* SPDX-License-Identifier: BSD-3-Clause */
/* The local ACK timeout: 4.096 us x 2^t for each try, retry_cnt + 1 tries (IBA vol. 1, 11.2.4.2).
 */
#include "tests/sim/scene.h"

static struct scene s;

static void teardown(void)
{
	scene_free(&s);
}

static const uint8_t timeouts[] = { 1, 2, 8, 12, 14, 18, 22, 31 };
#define N_TIMEOUTS 8

static void start(uint8_t timeout, unsigned retries)
{
	struct scene_conf conf = { .rc = { .timeout = timeout,
					   .retry_cnt = retries ? (uint8_t)retries : 0xff } };

	scene_init(&s, &conf);
}

/* Loop index: timeout x retry_cnt 0..7. */
START_TEST(the_error_comes_after_exactly_retry_cnt_plus_one_timeouts)
{
	uint8_t t = timeouts[_i / 8];
	unsigned retries = (unsigned)_i % 8;
	uint64_t began, each = 4096ull << t;
	struct uroce_cqe c = { 0 };

	start(t, retries);
	s.p.link.is_cut = true;
	began = s.p.clock.now;
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 64);
	ck_assert(pair_wait(&s.p, s.cq[0], &c, began + each * 9));
	ck_assert_uint_eq(c.status, UROCE_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(c.timestamp - began, each * (retries + 1));
	ck_assert_uint_eq(s.n_tx[0], retries + 1);
	for (unsigned i = 0; i <= retries; i++)
		ck_assert_uint_eq(s.first_tx[0][i] - began, each * i);
	ck_assert_int_eq(fake_qp_state(s.qp[0]), UROCE_QPS_ERR);
}
END_TEST

/* With a known round trip a probe may be sent in between; it does not move the end. */
START_TEST(a_warm_connection_fails_after_the_same_time)
{
	uint64_t began;
	struct uroce_cqe c = { 0 };

	start(14, 3);
	for (unsigned i = 0; i < 10; i++) {
		scene_post(&s, 0, UROCE_WR_WRITE, 0, 64);
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	}
	s.p.link.is_cut = true;
	began = s.p.clock.now;
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 64);
	ck_assert(pair_wait(&s.p, s.cq[0], &c, began + (4096ull << 14) * 9));
	ck_assert_uint_eq(c.status, UROCE_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(c.timestamp - began, (4096ull << 14) * 4);
}
END_TEST

START_TEST(timeout_zero_waits_for_ever)
{
	struct scene_conf conf = { .rc = { .timeout = 0xff } };

	scene_init(&s, &conf);
	s.p.link.is_cut = true;
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 64);
	scene_silence(&s, 0, 1000000);
	ck_assert_uint_eq(s.n_tx[0], 1);
	ck_assert_int_eq(fake_qp_state(s.qp[0]), UROCE_QPS_RTS);
}
END_TEST

/* A READ of many packets over a wire that lets one response through for each try. */
static enum link_sim_act one_at_a_time(void *ctx, unsigned from, const struct packet *pk)
{
	uint32_t *left = ctx;

	if (from == 0) {
		*left = 1;
		return LINK_SIM_PASS;
	}
	(void)pk;
	if (!*left)
		return LINK_SIM_DROP;
	(*left)--;
	return LINK_SIM_PASS;
}

START_TEST(progress_restarts_the_budget)
{
	static uint32_t left;

	start(4, 1); /* too short for a probe: each try is a timeout */
	s.p.link.filter = one_at_a_time;
	s.p.link.filter_ctx = &left;
	scene_post(&s, 0, UROCE_WR_READ, 0, 20 * 1024);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 0, 20 * 1024);
}
END_TEST

START_TEST(a_peer_that_comes_back_in_the_last_try_is_in_time)
{
	start(10, 3);
	s.p.link.is_cut = true;
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 5000);
	pair_run(&s.p, s.p.clock.now + (4096ull << 10) * 3 - 1000, NULL, NULL);
	s.p.link.is_cut = false;
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 0, 5000);
}
END_TEST

START_TEST(an_answered_queue_leaves_no_timer)
{
	start(8, 7);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 5000);
	scene_post(&s, 0, UROCE_WR_READ, 8192, 5000);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_run_ms(&s, 100);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "local_ack_timeout_err"), 0);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "retransmitted_packets"), 0);
}
END_TEST

/* The peer is slow but alive: its queue holds the answers back for less than the timeout. */
START_TEST(a_slow_wire_draws_no_retransmission)
{
	struct scene_conf conf = { .pair = { .link = { .delay_ns = 400000, .ns_per_kib = 3000 } },
				   .rc = { .timeout = 12 },
				   .mem = 1u << 20 };

	scene_init(&s, &conf);
	for (unsigned i = 0; i < 8; i++) {
		scene_post(&s, 0, UROCE_WR_WRITE, 0, 500000);
		scene_post(&s, 0, UROCE_WR_READ, 500000, 500000);
	}
	for (unsigned i = 0; i < 16; i++)
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "local_ack_timeout_err"), 0);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "retransmitted_packets"), 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/retry_exhausted");
	TCase *c = tcase_create("retry_exhausted");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, the_error_comes_after_exactly_retry_cnt_plus_one_timeouts, 0,
			    N_TIMEOUTS * 8);
	tcase_add_test(c, a_warm_connection_fails_after_the_same_time);
	tcase_add_test(c, timeout_zero_waits_for_ever);
	tcase_add_test(c, progress_restarts_the_budget);
	tcase_add_test(c, a_peer_that_comes_back_in_the_last_try_is_in_time);
	tcase_add_test(c, an_answered_queue_leaves_no_timer);
	tcase_add_test(c, a_slow_wire_draws_no_retransmission);
	suite_add_tcase(suite, c);
	return suite;
}
