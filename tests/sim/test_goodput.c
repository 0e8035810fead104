/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What loss costs, in virtual time: a 10 Gbit/s wire, 5 us one way, behind a port that queues 64
 * frames; 1 MiB messages, four in flight. At 1 % random loss the goodput stays above half of the
 * lossless one; at 10 % all completes.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/scene.h"

#define MSG   (1u << 20)
#define COUNT 32u
#define DEPTH 4u

static struct scene s;

/* ns for all messages; loss in units of 1/65536. */
static uint64_t transfer(uint8_t opcode, uint32_t mtu, uint32_t queue, uint32_t loss, uint64_t seed)
{
	struct scene_conf conf = {
		.pair = { .link = { .seed = seed,
				    .drop = loss,
				    .delay_ns = 5000,
				    .ns_per_kib = 819,
				    .tx_burst = queue } },
		.rc = { .mtu = mtu, .timeout = 14 },
		.mem = MSG,
	};
	uint64_t began;
	uint32_t posted = 0;

	scene_init(&s, &conf);
	began = s.p.clock.now;
	for (; posted < DEPTH; posted++)
		scene_post(&s, 0, opcode, 0, MSG);
	for (uint32_t done = 0; done < COUNT; done++) {
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
		if (posted < COUNT) {
			scene_post(&s, 0, opcode, 0, MSG);
			posted++;
		}
	}
	scene_same(&s, 0, MSG);
	began = s.p.clock.now - began;
	scene_free(&s);
	return began;
}

static const struct {
	const char *name;
	uint8_t opcode;
	uint32_t mtu, queue;
} cases[] = {
	{ "WRITE mtu 4096, queue 64", UROCE_WR_WRITE, IBV_MTU_4096, 64 },
	{ "READ mtu 4096, queue 64", UROCE_WR_READ, IBV_MTU_4096, 64 },
	{ "WRITE mtu 1024, queue 64", UROCE_WR_WRITE, IBV_MTU_1024, 64 },
	{ "READ mtu 1024, queue 64", UROCE_WR_READ, IBV_MTU_1024, 64 },
	{ "WRITE mtu 4096, queue 256", UROCE_WR_WRITE, IBV_MTU_4096, 256 },
	{ "READ mtu 4096, queue 256", UROCE_WR_READ, IBV_MTU_4096, 256 },
	{ "WRITE mtu 1024, queue 256", UROCE_WR_WRITE, IBV_MTU_1024, 256 },
	{ "READ mtu 1024, queue 256", UROCE_WR_READ, IBV_MTU_1024, 256 },
};

static double mbytes_per_s(uint64_t ns)
{
	return (double)COUNT * MSG * 1000.0 / (double)ns;
}

START_TEST(a_lossless_wire_is_full)
{
	uint64_t ns = transfer(cases[_i].opcode, cases[_i].mtu, cases[_i].queue, 0, 1);

	printf("# %s, no loss: %.0f MB/s\n", cases[_i].name, mbytes_per_s(ns));
	fflush(stdout);
	ck_assert_msg(mbytes_per_s(ns) > 1100, "%.0f MB/s", mbytes_per_s(ns)); /* of 1250 */
}
END_TEST

START_TEST(one_percent_of_loss_costs_less_than_half)
{
	uint64_t good = transfer(cases[_i].opcode, cases[_i].mtu, cases[_i].queue, 0, 1), sum = 0;

	for (uint64_t seed = 1; seed <= 4; seed++)
		sum += transfer(cases[_i].opcode, cases[_i].mtu, cases[_i].queue, 655, seed);
	printf("# %s, 1 %% loss: %.0f MB/s of %.0f\n", cases[_i].name, mbytes_per_s(sum / 4),
	       mbytes_per_s(good));
	fflush(stdout);
	ck_assert_msg(sum / 4 < 2 * good, "1 %% of loss costs %.1f times",
		      (double)sum / 4 / (double)good);
}
END_TEST

START_TEST(at_ten_percent_all_completes)
{
	uint64_t ns = transfer(cases[_i].opcode, cases[_i].mtu, cases[_i].queue, 6554, 3);

	printf("# %s, 10 %% loss: %.0f MB/s\n", cases[_i].name, mbytes_per_s(ns));
	fflush(stdout);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/goodput");
	TCase *c = tcase_create("goodput");
	int n = (int)(sizeof(cases) / sizeof(cases[0]));

	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, a_lossless_wire_is_full, 0, n);
	tcase_add_loop_test(c, one_percent_of_loss_costs_less_than_half, 0, n);
	tcase_add_loop_test(c, at_ten_percent_all_completes, 0, n);
	suite_add_tcase(suite, c);
	return suite;
}
