/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/daemon/log.h"
#include "tests/support/ck_main.h"

static char base[] = "/tmp/uroce-test-XXXXXX";
static struct rundir d;

static void setup(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	if (!freopen("/dev/null", "w", stderr))
		abort();
	ck_assert_ptr_nonnull(mkdtemp(base));
	unsetenv("UROCE_RUN_DIR");
}

static void teardown(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/r", base);
	rmdir(path);
	unlink(path);
	rmdir(base);
}

static const char *below(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

START_TEST(it_is_made_and_can_be_used_by_one_daemon_only)
{
	struct rundir second;

	ck_assert_int_eq(rundir_open(&d, below("r")), 0);
	ck_assert_int_eq(rundir_lock(&d), 0);
	ck_assert_int_eq(rundir_open(&second, below("r")), 0);
	ck_assert_int_eq(rundir_lock(&second), -EWOULDBLOCK);
	close(second.fd);
	rundir_close(&d);
	ck_assert_int_eq(rundir_open(&d, below("r")), 0);
	ck_assert_int_eq(rundir_lock(&d), 0);
	rundir_close(&d);
}
END_TEST

START_TEST(the_environment_names_it_unless_the_command_line_does)
{
	setenv("UROCE_RUN_DIR", below("r"), 1);
	ck_assert_int_eq(rundir_open(&d, NULL), 0);
	ck_assert_str_eq(d.path, below("r"));
	rundir_close(&d);
	setenv("UROCE_RUN_DIR", "/nonexistent/x", 1);
	ck_assert_int_eq(rundir_open(&d, below("r")), 0);
	rundir_close(&d);
	ck_assert_int_eq(rundir_open(&d, NULL), -ENOENT);
}
END_TEST

START_TEST(one_that_others_may_write_is_refused)
{
	ck_assert_int_eq(mkdir(below("r"), 0700), 0);
	ck_assert_int_eq(chmod(below("r"), _i), 0);
	ck_assert_int_eq(rundir_open(&d, below("r")), -EPERM);
}
END_TEST

START_TEST(one_of_another_user_is_refused)
{
	if (geteuid())
		return;
	ck_assert_int_eq(mkdir(below("r"), 0700), 0);
	ck_assert_int_eq(chown(below("r"), 65534, 65534), 0);
	ck_assert_int_eq(rundir_open(&d, below("r")), -EPERM);
}
END_TEST

START_TEST(a_link_or_a_file_is_refused)
{
	ck_assert_int_eq(symlink("/tmp", below("r")), 0);
	ck_assert_int_lt(rundir_open(&d, below("r")), 0);
	unlink(below("r"));
	close(open(below("r"), O_CREAT | O_WRONLY, 0600));
	ck_assert_int_lt(rundir_open(&d, below("r")), 0);
}
END_TEST

START_TEST(the_pid_file_comes_and_goes)
{
	char buf[32] = { 0 };
	int fd;

	ck_assert_int_eq(rundir_open(&d, below("r")), 0);
	ck_assert_int_eq(rundir_write_pid(&d), 0);
	fd = openat(d.fd, "uroced.pid", O_RDONLY);
	ck_assert_int_gt(read(fd, buf, sizeof(buf) - 1), 0);
	ck_assert_int_eq(atoi(buf), getpid());
	close(fd);
	rundir_close(&d);
	ck_assert_int_ne(access(below("r/uroced.pid"), F_OK), 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("rundir");
	TCase *tc = tcase_create("rundir");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, it_is_made_and_can_be_used_by_one_daemon_only);
	tcase_add_test(tc, the_environment_names_it_unless_the_command_line_does);
	tcase_add_loop_test(tc, one_that_others_may_write_is_refused, 0702, 0704);
	tcase_add_loop_test(tc, one_that_others_may_write_is_refused, 0720, 0721);
	tcase_add_test(tc, one_of_another_user_is_refused);
	tcase_add_test(tc, a_link_or_a_file_is_refused);
	tcase_add_test(tc, the_pid_file_comes_and_goes);
	suite_add_tcase(s, tc);
	return s;
}
