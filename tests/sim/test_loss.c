/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame, or two, lost, doubled, late or damaged: every place in a short exchange is tried. All
 * work completes with the right bytes, and where something behind the loss tells of it, without
 * waiting for a timeout.
 */
#include <infiniband/verbs.h>

#include "tests/sim/scene.h"

static struct scene s;

static const uint8_t ops[] = { UROCE_WR_WRITE,     UROCE_WR_SEND,     UROCE_WR_READ,
			       UROCE_WR_WRITE_IMM, UROCE_WR_SEND_IMM, UROCE_WR_FETCH_ADD,
			       UROCE_WR_CMP_SWAP };
static const enum link_sim_act acts[] = { LINK_SIM_DROP, LINK_SIM_DUP, LINK_SIM_DELAY,
					  LINK_SIM_CORRUPT };
#define N_OPS  (sizeof(ops) / sizeof(ops[0]))
#define N_ACTS (sizeof(acts) / sizeof(acts[0]))

static const struct scene_conf conf = {
	.pair = { .link = { .delay_ns = 2000, .jitter_ns = 20000, .ns_per_kib = 800 } },
	.rc = { .mtu = IBV_MTU_256, .timeout = 12, .psn = { 0xfffffc, 0xfffffa } },
};

static void teardown(void)
{
	scene_free(&s);
}

/* The operation of ops[k], 1100 bytes (5 packets) or an atomic, then a short WRITE. */
static void exchange(unsigned k)
{
	bool atomic = ops[k] == UROCE_WR_FETCH_ADD || ops[k] == UROCE_WR_CMP_SWAP;
	uint64_t word;

	memcpy(&word, s.mem[1]->mem + 8192, 8);
	scene_recv(&s, 1, 0, 2048);
	scene_post(&s, 0, ops[k], atomic ? 8192 : 0, atomic ? 8 : 1100);
	scene_post(&s, 0, UROCE_WR_WRITE, 4096, 100);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 4096, 100);
	if (!atomic) {
		scene_same(&s, 0, 1100);
		return;
	}
	ck_assert_mem_eq(s.mem[0]->mem + 8192, &word, 8);
	if (ops[k] == UROCE_WR_FETCH_ADD)
		word++;
	ck_assert_mem_eq(s.mem[1]->mem + 8192, &word, 8);
}

START_TEST(one_bad_frame_anywhere_is_mended)
{
	for (unsigned k = 0; k < N_OPS; k++) {
		for (uint32_t nth = 1; nth <= 14; nth++) {
			scene_init(&s, &conf);
			scene_fault(&s, -1, 0xff, nth, acts[_i]);
			exchange(k);
			if (!(k + 1 == N_OPS && nth == 14))
				scene_free(&s);
		}
	}
}
END_TEST

START_TEST(two_bad_frames_anywhere_are_mended)
{
	unsigned k = (unsigned)_i / N_ACTS;

	for (uint32_t a = 1; a < 14; a++) {
		for (uint32_t b = a + 1; b <= 14; b++) {
			scene_init(&s, &conf);
			scene_fault(&s, -1, 0xff, a, acts[_i % N_ACTS]);
			scene_fault(&s, -1, 0xff, b, LINK_SIM_DROP);
			exchange(k);
			if (!(a == 13 && b == 14))
				scene_free(&s);
		}
	}
}
END_TEST

/* Requests: from the first to the one before the last something follows that tells of the gap. */
static const struct {
	uint8_t wr, op;
	int from;
	uint32_t nth;
} quick[] = {
	{ UROCE_WR_WRITE, BTH_WRITE_FIRST, 0, 1 },
	{ UROCE_WR_WRITE, BTH_WRITE_MIDDLE, 0, 1 },
	{ UROCE_WR_WRITE, BTH_WRITE_MIDDLE, 0, 2 },
	{ UROCE_WR_WRITE, BTH_WRITE_LAST, 0, 1 },
	{ UROCE_WR_SEND, BTH_SEND_FIRST, 0, 1 },
	{ UROCE_WR_SEND, BTH_SEND_MIDDLE, 0, 3 },
	{ UROCE_WR_READ, BTH_READ_REQUEST, 0, 1 },
	{ UROCE_WR_READ, BTH_READ_RESP_FIRST, 1, 1 },
	{ UROCE_WR_READ, BTH_READ_RESP_MIDDLE, 1, 1 },
	{ UROCE_WR_READ, BTH_READ_RESP_MIDDLE, 1, 3 },
	{ UROCE_WR_READ, BTH_READ_RESP_LAST, 1, 1 },
	{ UROCE_WR_FETCH_ADD, BTH_FETCH_ADD, 0, 1 },
	{ UROCE_WR_FETCH_ADD, BTH_ATOMIC_ACK, 1, 1 },
};

START_TEST(a_loss_with_something_behind_it_costs_no_timeout)
{
	unsigned k = 0;
	uint64_t began;

	while (ops[k] != quick[_i].wr)
		k++;
	scene_init(&s, &conf);
	scene_fault(&s, quick[_i].from, quick[_i].op, quick[_i].nth, LINK_SIM_DROP);
	began = s.p.clock.now;
	exchange(k);
	ck_assert_uint_eq(s.fault[0].seen >= quick[_i].nth, 1);
	ck_assert_uint_lt(s.p.clock.now - began, 4096ull << 12);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "local_ack_timeout_err"), 0);
}
END_TEST

START_TEST(a_gap_draws_one_nak)
{
	scene_init(&s, &conf);
	scene_fault(&s, 0, BTH_WRITE_FIRST, 1, LINK_SIM_DROP);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 20 * 256);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(s.naks[1][0x60], 1);
	scene_same(&s, 0, 20 * 256);
}
END_TEST

START_TEST(a_duplicate_request_changes_nothing_and_is_acknowledged_again)
{
	scene_init(&s, &conf);
	scene_fault(&s, 0, BTH_SEND_ONLY, 1, LINK_SIM_DUP);
	scene_recv(&s, 1, 0, 256);
	scene_recv(&s, 1, 512, 256);
	scene_post(&s, 0, UROCE_WR_SEND, 0, 100);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_expect(&s, 1, UROCE_WC_SUCCESS);
	scene_silence(&s, 1, 1);
	ck_assert_uint_eq(fake_counter(&s.p.dev[1], "duplicate_request"), 1);
}
END_TEST

/* A damaged frame is dropped by its ICRC and nothing else: it counts as one. */
START_TEST(a_damaged_frame_is_counted_as_such)
{
	scene_init(&s, &conf);
	scene_fault(&s, 0, BTH_WRITE_MIDDLE, 1, LINK_SIM_CORRUPT);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 1100);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	ck_assert_uint_ge(s.p.link.n_corrupt[0], 1);
	scene_same(&s, 0, 1100);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/loss");
	TCase *c = tcase_create("loss");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, one_bad_frame_anywhere_is_mended, 0, N_ACTS);
	tcase_add_loop_test(c, two_bad_frames_anywhere_are_mended, 0, N_OPS * N_ACTS);
	tcase_add_loop_test(c, a_loss_with_something_behind_it_costs_no_timeout, 0,
			    (int)(sizeof(quick) / sizeof(quick[0])));
	tcase_add_test(c, a_gap_draws_one_nak);
	tcase_add_test(c, a_duplicate_request_changes_nothing_and_is_acknowledged_again);
	tcase_add_test(c, a_damaged_frame_is_counted_as_such);
	suite_add_tcase(suite, c);
	return suite;
}
