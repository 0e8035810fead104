/* SPDX-License-Identifier: BSD-3-Clause */
/* The PSN goes from 0xffffff to 0 at every place of an exchange, on a good wire and a bad one. */
#include <infiniband/verbs.h>

#include "tests/sim/scene.h"

static struct scene s;

static void teardown(void)
{
	scene_free(&s);
}

static void exchange(void)
{
	uint64_t word;

	memcpy(&word, s.mem[1]->mem + 65536, 8);
	for (uint32_t i = 0; i < 4; i++) {
		scene_recv(&s, 1, i * 8192, 4096);
		scene_post(&s, 0, UROCE_WR_SEND, i * 8192, 900);
		scene_post(&s, 0, UROCE_WR_READ, i * 8192 + 2048, 900);
		scene_post(&s, 0, UROCE_WR_WRITE, i * 8192 + 4096, 900);
		scene_post(&s, 0, UROCE_WR_FETCH_ADD, 65536, 8);
	}
	for (unsigned i = 0; i < 16; i++)
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t at = 0; at < 6144; at += 2048)
			scene_same(&s, i * 8192 + at, 900);
	word += 4;
	ck_assert_mem_eq(s.mem[1]->mem + 65536, &word, 8);
}

START_TEST(the_wrap_shows_nowhere)
{
	struct scene_conf conf = { .rc = { .mtu = IBV_MTU_256,
					   .psn = { 0xffffff - (uint32_t)_i, 0xfffff0 } } };
	struct engine_qp_info info;

	scene_init(&s, &conf);
	exchange();
	ck_assert_int_eq(engine_qp_info(s.p.dev[0].engine, s.qp[0]->qpn, &info), 0);
	ck_assert_uint_eq(info.una_psn, (0xffffff - (uint32_t)_i + 52) & 0xffffff);
	ck_assert_int_eq(engine_qp_info(s.p.dev[1].engine, s.qp[1]->qpn, &info), 0);
	ck_assert_uint_eq(info.epsn, (0xffffff - (uint32_t)_i + 52) & 0xffffff);
	ck_assert_uint_eq(info.msn, 16);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "retransmitted_packets"), 0);
}
END_TEST

START_TEST(the_wrap_shows_nowhere_on_a_bad_wire)
{
	struct scene_conf conf = {
		.rc = { .mtu = IBV_MTU_256, .timeout = 9, .psn = { 0xffffff - (uint32_t)_i } }
	};

	conf.pair.link = (struct link_sim_conf) { .seed = ck_seed() + (uint64_t)_i,
						  .drop = 4000,
						  .dup = 3000,
						  .reorder = 4000,
						  .delay_ns = 1000,
						  .jitter_ns = 10000 };
	scene_init(&s, &conf);
	exchange();
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/psn_wrap");
	TCase *c = tcase_create("psn_wrap");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, the_wrap_shows_nowhere, 0, 56);
	tcase_add_loop_test(c, the_wrap_shows_nowhere_on_a_bad_wire, 0, 56);
	suite_add_tcase(suite, c);
	return suite;
}
