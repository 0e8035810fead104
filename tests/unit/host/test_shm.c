/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/ck_main.h"

START_TEST(nobody_can_resize_or_reseal_it)
{
	struct shm s;

	ck_assert_int_eq(shm_create(&s, "t", 5000), 0);
	ck_assert_uint_eq(s.size, 8192);
	ck_assert_int_eq(ftruncate(s.fd, 0), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(ftruncate(s.fd, 1 << 20), -1);
	ck_assert_int_eq(fcntl(s.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	ck_assert_int_eq(fcntl(s.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	shm_destroy(&s);
}
END_TEST

START_TEST(it_starts_as_zeros_and_is_shared)
{
	struct shm s;
	uint8_t *other;

	ck_assert_int_eq(shm_create(&s, "t", 4096), 0);
	other = mmap(NULL, 4096, PROT_READ, MAP_SHARED, s.fd, 0);
	shm_close_fd(&s);
	ck_assert_int_eq(s.fd, -1);
	for (unsigned i = 0; i < 4096; i++)
		ck_assert_uint_eq(other[i], 0);
	s.base[17] = 9;
	ck_assert_uint_eq(other[17], 9);
	shm_destroy(&s);
	shm_destroy(&s);
	munmap(other, 4096);
}
END_TEST

START_TEST(an_impossible_size_is_an_error)
{
	struct shm s;

	ck_assert_int_lt(shm_create(&s, "t", (size_t)1 << 62), 0);
	ck_assert_int_eq(s.fd, -1);
	ck_assert_ptr_null(s.base);
}
END_TEST

START_TEST(text_is_read_from_its_start)
{
	char buf[16] = { 0 };
	int fd = shm_text("t", "{\"a\":1}", 7);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, buf, sizeof(buf)), 7);
	ck_assert_str_eq(buf, "{\"a\":1}");
	close(fd);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("shm");
	TCase *tc = tcase_create("shm");

	tcase_add_test(tc, nobody_can_resize_or_reseal_it);
	tcase_add_test(tc, it_starts_as_zeros_and_is_shared);
	tcase_add_test(tc, an_impossible_size_is_an_error);
	tcase_add_test(tc, text_is_read_from_its_start);
	suite_add_tcase(s, tc);
	return s;
}
