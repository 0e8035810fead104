/* SPDX-License-Identifier: BSD-3-Clause */
/* A wire that delivers in another order: everything completes, in order, with the right bytes. */
#include <infiniband/verbs.h>

#include "tests/sim/scene.h"

static struct scene s;

static void teardown(void)
{
	scene_free(&s);
}

static void start(uint32_t reorder, uint64_t seed)
{
	struct scene_conf conf = {
		.pair.link = { .seed = seed,
			       .reorder = reorder,
			       .delay_ns = 2000,
			       .jitter_ns = 8000,
			       .ns_per_kib = 300 },
		.rc = { .mtu = IBV_MTU_256, .timeout = 12, .psn = { 0xffff80, 9 } },
	};

	scene_init(&s, &conf);
}

static void completes(unsigned side, uint64_t wr_id)
{
	struct uroce_cqe c = scene_wait(&s, side, 60000);

	ck_assert_uint_eq(c.wr_id, wr_id);
	ck_assert_msg(c.status == UROCE_WC_SUCCESS, "status %u verr %u", c.status, c.vendor_err);
}

/* In units of 1/65536: from one frame in a thousand to one in two. */
static const uint32_t rates[] = { 66, 655, 6554, 20000, 32768 };
#define N_RATES 5

START_TEST(all_completes_in_order_however_frames_arrive)
{
	start(rates[_i % N_RATES], ck_seed() + (uint64_t)_i);
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t at = i * 12288;

		scene_recv(&s, 1, at, 4096);
		scene_post(&s, 0, UROCE_WR_SEND, at, 3000);
		scene_post(&s, 0, UROCE_WR_WRITE, at + 4096, 3000);
		scene_post(&s, 0, UROCE_WR_READ, at + 8192, 3000);
	}
	for (uint32_t i = 0; i < 30; i++)
		completes(0, i / 3 * 12288 + i % 3 * 4096);
	for (uint32_t i = 0; i < 10; i++)
		completes(1, i * 12288);
	for (uint32_t at = 0; at < 10 * 12288; at += 4096)
		scene_same(&s, at, 3000);
}
END_TEST

/* One frame late costs one gap: no storm of NAKs and repeats follows it. */
START_TEST(one_late_frame_costs_a_few_round_trips)
{
	start(0, 1);
	scene_fault(&s, 0, BTH_WRITE_MIDDLE, 20, LINK_SIM_DELAY);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 100 * 256);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 0, 100 * 256);
	ck_assert_uint_le(s.naks[1][0x60], 2);
	ck_assert_uint_eq(fake_counter(&s.p.dev[0], "local_ack_timeout_err"), 0);
	ck_assert_uint_lt(s.n_tx[0], 300);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/reorder");
	TCase *c = tcase_create("reorder");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, all_completes_in_order_however_frames_arrive, 0, 4 * N_RATES);
	tcase_add_test(c, one_late_frame_costs_a_few_round_trips);
	suite_add_tcase(suite, c);
	return suite;
}
