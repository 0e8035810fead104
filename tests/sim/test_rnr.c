/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiver not ready: IBA vol. 1, 9.7.5.2.8 and table "Encoding for RNR NAK Timer Field". */
#include "tests/sim/scene.h"
#include "tests/support/pktgen.h"

static struct scene s;

static void start(const struct scene_conf *conf)
{
	scene_init(&s, conf);
}

static void teardown(void)
{
	scene_free(&s);
}

/* In units of 10 us, from the specification's table. */
static const uint32_t rnr_time[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

START_TEST(the_retry_comes_after_exactly_the_time_of_the_code)
{
	struct scene_conf conf = { .rc = { .min_rnr_timer = _i ? (uint8_t)_i : 0xff,
					   .rnr_retry = 1 } };

	start(&conf);
	scene_post(&s, 0, UROCE_WR_SEND, 0, 64);
	scene_expect(&s, 0, UROCE_WC_RNR_RETRY_EXC_ERR);
	ck_assert_uint_eq(s.n_tx[0], 2);
	ck_assert_uint_eq(s.first_tx[0][1] - s.first_tx[0][0], (uint64_t)rnr_time[_i] * 10000);
	ck_assert_uint_eq(s.naks[1][0x20 | _i], 2);
}
END_TEST

START_TEST(rnr_retry_is_the_number_of_retries)
{
	struct scene_conf conf = { .rc = { .rnr_retry = _i ? (uint8_t)_i : 0xff } };

	start(&conf);
	scene_post(&s, 0, UROCE_WR_SEND, 0, 64);
	scene_expect(&s, 0, UROCE_WC_RNR_RETRY_EXC_ERR);
	ck_assert_uint_eq(s.n_tx[0], (uint64_t)_i + 1);
	ck_assert_int_eq(fake_qp_state(s.qp[0]), UROCE_QPS_ERR);
	ck_assert_int_eq(fake_qp_state(s.qp[1]), UROCE_QPS_RTS);
}
END_TEST

START_TEST(seven_means_for_ever)
{
	static const struct scene_conf conf = { .rc = { .min_rnr_timer = 14 } };

	start(&conf);
	scene_post(&s, 0, UROCE_WR_SEND, 0, 3000);
	scene_silence(&s, 0, 5000);
	scene_recv(&s, 1, 0, 4096);
	scene_expect(&s, 1, UROCE_WC_SUCCESS);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 0, 3000);
}
END_TEST

/* What follows the refused packet is dropped in silence: one NAK for each try, and none of them
 * SEQ. */
START_TEST(packets_behind_a_refused_one_draw_no_nak)
{
	static const struct scene_conf conf = { .rc = { .min_rnr_timer = 14 } };

	start(&conf);
	scene_post(&s, 0, UROCE_WR_SEND, 0, 64);
	scene_post(&s, 0, UROCE_WR_SEND, 64, 64);
	scene_post(&s, 0, UROCE_WR_WRITE, 128, 5000);
	scene_run_ms(&s, 5); /* code 14: 1.28 ms, so 4 tries */
	ck_assert_uint_eq(s.naks[1][0x60], 0);
	ck_assert_uint_eq(s.naks[1][0x20 | 14], 4);
	ck_assert_uint_eq(s.sent[0][BTH_SEND_ONLY], 8);
	scene_recv(&s, 1, 0, 64);
	scene_recv(&s, 1, 64, 64);
	for (unsigned i = 0; i < 3; i++)
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 0, 5128);
}
END_TEST

START_TEST(nothing_is_sent_during_the_wait_but_other_work_is_answered)
{
	static const struct scene_conf conf = { .rc = { .min_rnr_timer = 20 } };

	start(&conf);
	scene_post(&s, 0, UROCE_WR_SEND, 0, 64);
	scene_run_ms(&s, 1);
	scene_post(&s, 0, UROCE_WR_WRITE, 128, 64);
	scene_post(&s, 1, UROCE_WR_READ, 4096, 3000);
	scene_expect(&s, 1, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(s.sent[0][BTH_SEND_ONLY], 1);
	ck_assert_uint_eq(s.sent[0][BTH_WRITE_ONLY], 0);
}
END_TEST

/* A late answer that tells of a gap must not take the wait's timer away. */
START_TEST(a_nak_during_the_wait_does_not_end_it_for_ever)
{
	static const struct scene_conf conf = { .rc = { .min_rnr_timer = 20,
							.psn = { 0xfffffe, 5 } } };
	struct pktgen gen;
	struct net_path path;
	const struct frame *f;
	struct packet pk = { .opcode = BTH_ACKNOWLEDGE, .pkey = 0xffff, .syndrome = 0x60 };

	start(&conf);
	path = pair_path(&s.p, 1);
	pktgen_init(&gen, &path);
	scene_post(&s, 0, UROCE_WR_SEND, 0, 64);
	scene_run_ms(&s, 1);
	ck_assert_uint_eq(s.naks[1][0x20 | 20], 1);
	pk.dest_qpn = s.qp[0]->qpn;
	pk.psn = 0xfffffe;
	f = pktgen_frame(&gen, &pk, NULL);
	engine_rx(s.p.dev[0].engine, s.p.clock.now, &f, 1);
	scene_recv(&s, 1, 0, 64);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(progress_gives_the_budget_back)
{
	static const struct scene_conf conf = { .rc = { .rnr_retry = 2, .min_rnr_timer = 14 } };

	start(&conf);
	for (uint32_t i = 0; i < 8; i++) {
		scene_post(&s, 0, UROCE_WR_SEND, 64 * i, 64);
		scene_run_ms(&s, 2); /* one refusal each, eight in all, with a budget of two */
		scene_recv(&s, 1, 64 * i, 64);
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	}
}
END_TEST

START_TEST(a_write_with_immediate_needs_a_receive_too)
{
	static const struct scene_conf conf = { .rc = { .rnr_retry = 0xff } };

	start(&conf);
	scene_post(&s, 0, UROCE_WR_WRITE_IMM, 0, 64);
	scene_expect(&s, 0, UROCE_WC_RNR_RETRY_EXC_ERR);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/rnr");
	TCase *c = tcase_create("rnr");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_loop_test(c, the_retry_comes_after_exactly_the_time_of_the_code, 0, 32);
	tcase_add_loop_test(c, rnr_retry_is_the_number_of_retries, 0, 7);
	tcase_add_test(c, seven_means_for_ever);
	tcase_add_test(c, packets_behind_a_refused_one_draw_no_nak);
	tcase_add_test(c, nothing_is_sent_during_the_wait_but_other_work_is_answered);
	tcase_add_test(c, a_nak_during_the_wait_does_not_end_it_for_ever);
	tcase_add_test(c, progress_gives_the_budget_back);
	tcase_add_test(c, a_write_with_immediate_needs_a_receive_too);
	suite_add_tcase(suite, c);
	return suite;
}
