/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/appmem.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/ck_main.h"

#define PAGE 4096u
#define AREA (64u * PAGE)

/* A child that shares no memory with us but the addresses: a copy of `area` from before the fork.
 */
static uint8_t *area;
static pid_t child;
static struct appmem *app;

static void child_loop(uid_t uid)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (uid && (setgid(uid) || setuid(uid) || prctl(PR_SET_DUMPABLE, 1)))
		_exit(1);
	raise(SIGSTOP);
	for (;;)
		pause();
}

static void start(uid_t uid)
{
	int status;

	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < AREA; i++)
		area[i] = (uint8_t)(i * 7 + i / 251);
	mprotect(area + AREA - PAGE, PAGE, PROT_NONE);
	mprotect(area + AREA - 2 * PAGE, PAGE, PROT_READ);
	child = fork();
	if (!child)
		child_loop(uid);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(appmem_open(&app, child, uid), 0);
	/* From here on the child's copy is the only one with the pattern. */
	memset(area, 0, AREA - 2 * PAGE);
}

static void setup_same(void)
{
	start(geteuid());
}

static void setup_other(void)
{
	start(65534);
}

static void teardown(void)
{
	appmem_close(app);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static struct mem_vec at(size_t off, size_t len)
{
	return (struct mem_vec) { (uint64_t)(uintptr_t)area + off, appmem_region(app), len };
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

START_TEST(one_range_fills_many_buffers)
{
	static uint8_t out[3000 * 3];
	static struct buf_vec buf[3000];
	struct mem_vec v = at(5, sizeof(out));

	for (unsigned i = 0; i < 3000; i++)
		buf[i] = (struct buf_vec) { out + 3 * i, 3 };
	ck_assert_int_eq(appmem_read(NULL, &v, 1, buf, 3000), 0);
	for (unsigned i = 0; i < sizeof(out); i++)
		ck_assert_uint_eq(out[i], pattern(i + 5));
}
END_TEST

START_TEST(many_ranges_fill_one_buffer)
{
	static uint8_t out[2000 * 5];
	static struct mem_vec v[2000];
	struct buf_vec buf = { out, sizeof(out) };

	for (unsigned i = 0; i < 2000; i++)
		v[i] = at(11 * (1999 - i), 5);
	ck_assert_int_eq(appmem_read(NULL, v, 2000, &buf, 1), 0);
	for (unsigned i = 0; i < sizeof(out); i++)
		ck_assert_uint_eq(out[i], pattern(11 * (1999 - i / 5) + i % 5));
}
END_TEST

START_TEST(pieces_need_not_match_and_may_be_empty)
{
	uint8_t out[100] = { 0 };
	struct mem_vec v[] = { at(0, 0), at(1000, 33), at(7, 0), at(90, 40), at(4090, 27) };
	struct buf_vec buf[] = { { out, 1 }, { out + 1, 0 }, { out + 1, 70 }, { out + 71, 29 } };
	uint8_t want[100];

	for (unsigned i = 0; i < 100; i++)
		want[i] = pattern(i < 33 ? 1000 + i : i < 73 ? 90 + i - 33 : 4090 + i - 73);
	ck_assert_int_eq(appmem_read(NULL, v, 5, buf, 4), 0);
	ck_assert_mem_eq(out, want, 100);
	memset(out, 0x5a, sizeof(out));
	ck_assert_int_eq(appmem_write(NULL, v, 5, buf, 4), 0);
	memset(out, 0, sizeof(out));
	ck_assert_int_eq(appmem_read(NULL, v, 5, buf, 4), 0);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(out[i], 0x5a);
}
END_TEST

START_TEST(a_write_touches_its_range_only)
{
	uint8_t fill[100], out[102];
	struct mem_vec v = at(8000, 100), around = at(7999, 102);
	struct buf_vec b = { fill, 100 }, all = { out, 102 };

	memset(fill, 0xee, sizeof(fill));
	ck_assert_int_eq(appmem_write(NULL, &v, 1, &b, 1), 0);
	ck_assert_int_eq(appmem_read(NULL, &around, 1, &all, 1), 0);
	ck_assert_uint_eq(out[0], pattern(7999));
	ck_assert_uint_eq(out[101], pattern(8100));
	ck_assert_mem_eq(out + 1, fill, 100);
	ck_assert_uint_eq(area[8000], 0);
}
END_TEST

START_TEST(a_fault_in_the_middle_is_efault)
{
	static uint8_t out[2 * PAGE];
	struct mem_vec v = at(AREA - 2 * PAGE, 2 * PAGE);
	struct buf_vec b = { out, sizeof(out) };

	/* The file way reads through PROT_NONE (FOLL_FORCE); the check at registration refuses it.
	 */
	if (!geteuid() && _i)
		return;
	ck_assert_int_eq(appmem_read(NULL, &v, 1, &b, 1), -EFAULT);
	v.addr = 4096;
	ck_assert_int_eq(appmem_read(NULL, &v, 1, &b, 1), -EFAULT);
	v.addr = UINT64_MAX - PAGE;
	ck_assert_int_eq(appmem_read(NULL, &v, 1, &b, 1), -EFAULT);
}
END_TEST

START_TEST(check_wants_all_of_the_range)
{
	uint64_t base = (uint64_t)(uintptr_t)area;

	ck_assert_int_eq(appmem_check(app, base + 1, AREA - 2 * PAGE - 1, true), 0);
	ck_assert_int_eq(appmem_check(app, base, AREA - PAGE, false), 0);
	ck_assert_int_eq(appmem_check(app, base, AREA - PAGE, true), -EFAULT);
	ck_assert_int_eq(appmem_check(app, base, AREA - PAGE + 1, false), -EFAULT);
	ck_assert_int_eq(appmem_check(app, 4096, 1, false), -EFAULT);
	ck_assert_int_eq(appmem_check(app, 4096, 0, true), 0);
	ck_assert_int_eq(appmem_check(app, UINT64_MAX - 10, 100, false), -EINVAL);
	ck_assert_int_eq(appmem_check(app, UINT64_MAX - 100, 10, false), -EFAULT);
}
END_TEST

START_TEST(atomics_return_the_old_value)
{
	struct mem_vec v = at(64, 8), odd = at(68, 8);
	uint64_t old, first = 40;
	struct buf_vec b = { (uint8_t *)&first, 8 };

	ck_assert_int_eq(appmem_write(NULL, &v, 1, &b, 1), 0);
	ck_assert_int_eq(appmem_atomic(NULL, &v, MEM_FETCH_ADD, 2, 0, &old), 0);
	ck_assert_uint_eq(old, 40);
	ck_assert_int_eq(appmem_atomic(NULL, &v, MEM_CMP_SWAP, 7, 41, &old), 0);
	ck_assert_uint_eq(old, 42);
	ck_assert_int_eq(appmem_atomic(NULL, &v, MEM_CMP_SWAP, 7, 42, &old), 0);
	ck_assert_uint_eq(old, 42);
	ck_assert_int_eq(appmem_atomic(NULL, &v, MEM_FETCH_ADD, UINT64_MAX, 0, &old), 0);
	ck_assert_uint_eq(old, 7);
	ck_assert_int_eq(appmem_read(NULL, &v, 1, &b, 1), 0);
	ck_assert_uint_eq(first, 6);
	ck_assert_int_eq(appmem_atomic(NULL, &odd, MEM_FETCH_ADD, 1, 0, &old), -EINVAL);
}
END_TEST

START_TEST(probe_leaves_the_word_as_it_was)
{
	uint64_t addr = (uint64_t)(uintptr_t)area + 128;
	struct mem_vec v = at(128, 8);
	uint8_t out[8];
	struct buf_vec b = { out, 8 };

	ck_assert_int_eq(appmem_probe(app, addr), 0);
	ck_assert_int_eq(appmem_read(NULL, &v, 1, &b, 1), 0);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_uint_eq(out[i], pattern(128 + i));
	ck_assert_int_eq(appmem_probe(app, 4096), -EFAULT);
}
END_TEST

START_TEST(the_null_region_gives_zeros_and_takes_anything)
{
	struct mem_vec v = { 0, APPMEM_NULL_REGION, 12 };
	uint8_t out[14];
	struct buf_vec b[2] = { { out + 1, 5 }, { out + 6, 7 } };

	memset(out, 0xee, sizeof(out));
	ck_assert_int_eq(appmem_read(NULL, &v, 1, b, 2), 0);
	for (unsigned i = 0; i < 14; i++)
		ck_assert_uint_eq(out[i], i == 0 || i == 13 ? 0xee : 0);
	ck_assert_int_eq(appmem_write(NULL, &v, 1, b, 2), 0);
}
END_TEST

/* Also two handles of one process are two regions. */
START_TEST(a_list_may_name_several_regions)
{
	struct appmem *other;
	struct mem_vec v[5] = { at(0, 10), { 0, APPMEM_NULL_REGION, 7 }, at(100, 5), at(200, 5) };
	uint8_t out[30];
	struct buf_vec b[2] = { { out, 13 }, { out + 13, 17 } };

	ck_assert_int_eq(appmem_open(&other, child, geteuid()), 0);
	v[4] = (struct mem_vec) { (uint64_t)(uintptr_t)area + 300, appmem_region(other), 3 };
	memset(out, 0xee, sizeof(out));
	ck_assert_int_eq(appmem_read(NULL, v, 5, b, 2), 0);
	for (unsigned i = 0; i < 30; i++) {
		uint8_t want = i < 10   ? pattern(i)
			       : i < 17 ? 0
			       : i < 22 ? pattern(100 + i - 17)
			       : i < 27 ? pattern(200 + i - 22)
					: pattern(300 + i - 27);

		ck_assert_uint_eq(out[i], want);
	}
	for (unsigned i = 0; i < 30; i++)
		out[i] = (uint8_t)~i;
	ck_assert_int_eq(appmem_write(NULL, v, 5, b, 2), 0);
	memset(out, 0, sizeof(out));
	ck_assert_int_eq(appmem_read(NULL, v, 5, b, 2), 0);
	for (unsigned i = 0; i < 30; i++)
		ck_assert_uint_eq(out[i], i >= 10 && i < 17 ? 0 : (uint8_t)~i);
	appmem_close(other);
}
END_TEST

START_TEST(a_retired_process_is_not_touched)
{
	struct mem_vec v = at(0, 1);
	uint8_t out;
	struct buf_vec b = { &out, 1 };

	appmem_retire(app);
	ck_assert_int_eq(appmem_read(NULL, &v, 1, &b, 1), -ESRCH);
	ck_assert_int_eq(appmem_write(NULL, &v, 1, &b, 1), -ESRCH);
}
END_TEST

START_TEST(a_dead_process_is_an_error)
{
	struct mem_vec v = at(0, 1);
	uint8_t out;
	struct buf_vec b = { &out, 1 };

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(appmem_read(NULL, &v, 1, &b, 1), -ESRCH);
}
END_TEST

START_TEST(a_process_that_is_not_its_users_is_refused)
{
	struct appmem *m;

	/* We are root and the child claims to be another user's: a set-user-id program after exec.
	 */
	if (geteuid())
		return;
	ck_assert_int_eq(appmem_open(&m, child, 1234), -EPERM);
	ck_assert_ptr_null(m);
	ck_assert_int_eq(appmem_open(&m, 0, 0), -ESRCH);
}
END_TEST

static void add_access(TCase *tc, int i)
{
	tcase_add_test(tc, one_range_fills_many_buffers);
	tcase_add_test(tc, many_ranges_fill_one_buffer);
	tcase_add_test(tc, pieces_need_not_match_and_may_be_empty);
	tcase_add_test(tc, a_write_touches_its_range_only);
	tcase_add_loop_test(tc, a_fault_in_the_middle_is_efault, i, i + 1);
	tcase_add_test(tc, check_wants_all_of_the_range);
	tcase_add_test(tc, atomics_return_the_old_value);
	tcase_add_test(tc, probe_leaves_the_word_as_it_was);
	tcase_add_test(tc, the_null_region_gives_zeros_and_takes_anything);
	tcase_add_test(tc, a_retired_process_is_not_touched);
	tcase_add_test(tc, a_dead_process_is_an_error);
}

Suite *suite_make(void)
{
	Suite *s = suite_create("appmem");
	TCase *vm = tcase_create("process_vm"), *file = tcase_create("proc_mem");

	tcase_add_checked_fixture(vm, setup_same, teardown);
	add_access(vm, 0);
	tcase_add_test(vm, a_list_may_name_several_regions);
	tcase_add_test(vm, a_process_that_is_not_its_users_is_refused);
	suite_add_tcase(s, vm);
	/* The other way needs a privileged daemon and a client of another user. */
	if (!geteuid()) {
		tcase_add_checked_fixture(file, setup_other, teardown);
		add_access(file, 1);
		suite_add_tcase(s, file);
	}
	return s;
}
