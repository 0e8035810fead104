/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/ck_main.h"

/* False: a build with sanitizers, which has none. */
static bool enter(void)
{
	int err = sandbox_enter();

	ck_assert(err == 0 || err == -EOPNOTSUPP);
	return !err;
}

static void *run_program(void *arg)
{
	char *argv[] = { "true", NULL };

	(void)arg;
	if (execv("/bin/true", argv))
		return (void *)(intptr_t)errno;
	return NULL;
}

static void *wait_and_run(void *arg)
{
	char byte;

	ck_assert_int_eq(read(*(int *)arg, &byte, 1), 1);
	return run_program(NULL);
}

START_TEST(no_programs_and_no_processes_but_threads)
{
	pthread_t before, after;
	int fds[2];
	void *err;

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(pthread_create(&before, NULL, wait_and_run, &fds[0]), 0);
	if (!enter())
		_exit(0);
	ck_assert_int_eq((intptr_t)run_program(NULL), EPERM);
	ck_assert_int_eq(fork(), -1);
	ck_assert_int_eq(errno, EPERM);
	/* Also in threads that were there before, and in new ones. */
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	pthread_join(before, &err);
	ck_assert_int_eq((intptr_t)err, EPERM);
	ck_assert_int_eq(pthread_create(&after, NULL, run_program, NULL), 0);
	pthread_join(after, &err);
	ck_assert_int_eq((intptr_t)err, EPERM);
}
END_TEST

START_TEST(what_links_and_memory_need_goes_on)
{
	int fd;

	enter();
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = open("/proc/self/maps", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = memfd_create("t", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("sandbox");
	TCase *tc = tcase_create("sandbox");

	tcase_add_test(tc, no_programs_and_no_processes_but_threads);
	tcase_add_test(tc, what_links_and_memory_need_goes_on);
	suite_add_tcase(s, tc);
	return s;
}
