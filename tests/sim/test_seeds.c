/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random scenarios, each from one seed.
 *   UROCE_SIM_SEED=n       replay seed n only
 *   UROCE_SIM_SEEDS=n      how many seeds (default 2048)
 *   UROCE_SIM_FIRST=n      the first seed (default: from UROCE_TEST_SEED)
 *   UROCE_SIM_SECONDS=n    soak: go on with new seeds for that long
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/sim/sim.h"
#include "tests/support/ck_main.h"

#define BATCHES 32

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static uint64_t first_seed(void)
{
	return number("UROCE_SIM_FIRST", ck_seed() % 1000000 * 1000000);
}

static void report(const struct sim_stats *t, uint64_t seeds)
{
	printf("# %" PRIu64 " seeds: %" PRIu64 " ok, %" PRIu64 " failed, %" PRIu64
	       " flushed, %" PRIu64 " received; %" PRIu64 " frames, %" PRIu64
	       " ms virtual; %" PRIu64 " without loss and repeats\n",
	       seeds, t->ok, t->failed, t->flushed, t->received, t->frames, t->virtual_ns / 1000000,
	       t->calm);
	fflush(stdout);
}

START_TEST(every_invariant_holds_for_these_seeds)
{
	uint64_t per = (number("UROCE_SIM_SEEDS", 2048) + BATCHES - 1) / BATCHES;
	uint64_t first = first_seed() + per * (uint64_t)_i;
	struct sim_stats total = { 0 };

	for (uint64_t i = 0; i < per; i++)
		sim_run(first + i, &total);
	report(&total, per);
}
END_TEST

START_TEST(every_invariant_holds_for_one_seed)
{
	struct sim_stats total = { 0 };

	sim_run(number("UROCE_SIM_SEED", 0), &total);
	report(&total, 1);
}
END_TEST

START_TEST(every_invariant_holds_while_it_soaks)
{
	time_t end = time(NULL) + (time_t)number("UROCE_SIM_SECONDS", 0);
	struct sim_stats total = { 0 };
	uint64_t n = 0;

	while (time(NULL) < end)
		sim_run(first_seed() + 0x10000000 + n++, &total);
	report(&total, n);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_run)
{
	struct sim_stats a = { 0 }, b = { 0 };

	sim_run(first_seed() + 7, &a);
	sim_run(first_seed() + 7, &b);
	ck_assert_mem_eq(&a, &b, sizeof(a));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("sim/seeds");
	TCase *c = tcase_create("seeds");

	tcase_set_timeout(c, 0);
	if (getenv("UROCE_SIM_SEED")) {
		tcase_add_test(c, every_invariant_holds_for_one_seed);
	} else if (getenv("UROCE_SIM_SECONDS")) {
		tcase_add_test(c, every_invariant_holds_while_it_soaks);
	} else {
		tcase_add_loop_test(c, every_invariant_holds_for_these_seeds, 0, BATCHES);
		tcase_add_test(c, the_same_seed_gives_the_same_run);
	}
	suite_add_tcase(s, c);
	return s;
}
