/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/ck_main.h"

static struct config parse(char *a, char *b)
{
	char *argv[] = { "uroced", a, b, NULL };
	struct config c;

	/* argp speaks on stderr; what it says is not under test. */
	if (!freopen("/dev/null", "w", stderr))
		abort();
	config_parse(&c, a ? (b ? 3 : 2) : 1, argv);
	return c;
}

START_TEST(defaults_are_two_devices_and_one_worker)
{
	struct config c = parse(NULL, NULL);

	ck_assert_ptr_null(c.run_dir);
	ck_assert_uint_eq(c.n_devices, 2);
	ck_assert_uint_eq(c.n_workers, 1);
	ck_assert_int_eq(c.ready_fd, -1);
	ck_assert_int_eq(c.log_level, LOG_LEVEL_WARNING);
	ck_assert(c.check_icrc);
}
END_TEST

START_TEST(options_set_what_they_say)
{
	ck_assert_str_eq(parse("--run-dir", "/x").run_dir, "/x");
	ck_assert_uint_eq(parse("--devices=16", NULL).n_devices, 16);
	ck_assert_uint_eq(parse("--workers=3", NULL).n_workers, 3);
	ck_assert_int_eq(parse("--ready-fd=1", NULL).ready_fd, 1);
	ck_assert_int_eq(parse("--log-level=debug", NULL).log_level, LOG_LEVEL_DEBUG);
	ck_assert(!parse("--check-icrc=off", NULL).check_icrc);
}
END_TEST

static char *const wrong[] = {
	"--devices=0", "--devices=17",   "--devices=-1",       "--devices=x",   "--devices=2x",
	"--devices=",  "--workers=0",    "--workers=99",       "--ready-fd=-1", "--ready-fd=987",
	"--run-dir=",  "--log-level=no", "--check-icrc=maybe", "--nonsense",    "word",
};
#define N_WRONG ((int)(sizeof(wrong) / sizeof(wrong[0])))

START_TEST(wrong_use_exits_with_2)
{
	parse(wrong[_i], NULL);
}
END_TEST

START_TEST(help_and_version_exit_with_0)
{
	if (!freopen("/dev/null", "w", stdout))
		abort();
	parse(_i ? "--help" : "--version", NULL);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("config");
	TCase *tc = tcase_create("config");

	tcase_add_test(tc, defaults_are_two_devices_and_one_worker);
	tcase_add_test(tc, options_set_what_they_say);
	tcase_add_loop_exit_test(tc, wrong_use_exits_with_2, 2, 0, N_WRONG);
	tcase_add_loop_exit_test(tc, help_and_version_exit_with_0, 0, 0, 2);
	suite_add_tcase(s, tc);
	return s;
}
