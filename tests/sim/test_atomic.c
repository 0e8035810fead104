/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on a bad wire: each is executed once, however often it is sent, and its result is what
 * was there. A counter that all add one to gives every value out exactly once.
 */
#include "tests/sim/scene.h"

#define COUNT 200u
#define WORD  65536u /* of B's memory; results go to A's memory, 8 bytes each */

static struct scene s;

static void teardown(void)
{
	scene_free(&s);
}

static void start(struct link_sim_conf link)
{
	struct scene_conf conf = { .pair.link = link,
				   .rc = { .timeout = 9, .psn = { 0xffffc0, 3 } } };

	conf.pair.link.seed += ck_seed();
	scene_init(&s, &conf);
	memset(s.mem[1]->mem + WORD, 0, 8);
}

static void post(uint32_t i, uint8_t opcode, uint64_t compare_add, uint64_t swap)
{
	struct fake_wr wr = { .wr_id = i,
			      .opcode = opcode,
			      .flags = UROCE_WQE_SIGNALED,
			      .n_sge = 1,
			      .sge = { fake_sge(s.mem[0], 8 * i, 8) },
			      .remote_addr = s.mem[1]->iova + WORD,
			      .rkey = s.mem[1]->key,
			      .compare_add = compare_add,
			      .swap = swap };

	ck_assert(fake_post_send(s.qp[0], &wr));
}

static uint64_t word_at(const struct fake_region *r, uint32_t off)
{
	uint64_t v;

	memcpy(&v, r->mem + off, 8);
	return v;
}

static const struct link_sim_conf wires[] = {
	{ .delay_ns = 1000 },
	{ .delay_ns = 1000, .drop = 6554, .seed = 1 },
	{ .delay_ns = 1000, .dup = 20000, .jitter_ns = 30000, .seed = 2 },
	{ .delay_ns = 1000, .reorder = 10000, .jitter_ns = 30000, .seed = 3 },
	{ .delay_ns = 1000,
	  .drop = 4000,
	  .dup = 4000,
	  .reorder = 4000,
	  .corrupt = 2000,
	  .jitter_ns = 30000,
	  .seed = 4 },
};
#define N_WIRES (int)(sizeof(wires) / sizeof(wires[0]))

START_TEST(a_counter_gives_every_value_once_and_in_order)
{
	start(wires[_i]);
	for (uint32_t i = 0; i < COUNT; i += 50) {
		for (uint32_t k = i; k < i + 50; k++)
			post(k, UROCE_WR_FETCH_ADD, 1, 0);
		for (uint32_t k = i; k < i + 50; k++)
			scene_expect(&s, 0, UROCE_WC_SUCCESS);
	}
	ck_assert_uint_eq(word_at(s.mem[1], WORD), COUNT);
	for (uint32_t i = 0; i < COUNT; i++)
		ck_assert_uint_eq(word_at(s.mem[0], 8 * i), i);
	ck_assert_uint_eq(s.p.dev[1].mem.n_atomics, COUNT);
}
END_TEST

/* A chain of swaps, each of which expects what the one before it wrote. */
START_TEST(a_chain_of_compare_and_swaps_holds)
{
	start(wires[_i]);
	for (uint32_t i = 0; i < 60; i++)
		post(i, UROCE_WR_CMP_SWAP, i, i + 1);
	for (uint32_t i = 0; i < 60; i++)
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	for (uint32_t i = 0; i < 60; i++)
		ck_assert_uint_eq(word_at(s.mem[0], 8 * i), i);
	ck_assert_uint_eq(word_at(s.mem[1], WORD), 60);
}
END_TEST

START_TEST(a_lost_answer_is_given_again_not_made_again)
{
	start(wires[0]);
	scene_fault(&s, 1, BTH_ATOMIC_ACK, 1, LINK_SIM_DROP);
	post(0, UROCE_WR_FETCH_ADD, 7, 0);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(word_at(s.mem[0], 0), 0);
	ck_assert_uint_eq(word_at(s.mem[1], WORD), 7);
	ck_assert_uint_eq(s.p.dev[1].mem.n_atomics, 1);
	ck_assert_uint_ge(s.sent[0][BTH_FETCH_ADD], 2);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/atomic");
	TCase *c = tcase_create("atomic");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, a_counter_gives_every_value_once_and_in_order, 0, N_WIRES);
	tcase_add_loop_test(c, a_chain_of_compare_and_swaps_holds, 0, N_WIRES);
	tcase_add_test(c, a_lost_answer_is_given_again_not_made_again);
	suite_add_tcase(suite, c);
	return suite;
}
