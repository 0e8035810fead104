/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory of a process, mapped here: what is, what is not, what its owner may do to us. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dataplane/host/appmem.h"
#include "tests/support/ck_main.h"

#define PAGE 4096u
#define SIZE (16u * PAGE)

static uint8_t *shared; /* of memfd; the child has it at the same address */
static uint8_t *private;
static int memfd;
static pid_t child;
static struct appmem *app;

static void start_child(void)
{
	int status;

	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(appmem_open(&app, child, geteuid()), 0);
}

static void setup(void)
{
	memfd = memfd_create("test", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(memfd, SIZE), 0);
	shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	private = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < SIZE; i++)
		shared[i] = private[i] = (uint8_t)(i * 7 + i / 251);
}

static void teardown(void)
{
	appmem_close(app);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(shared, SIZE);
	munmap(private, SIZE);
	close(memfd);
}

static struct appmem_view *map(const void *p, size_t len, bool is_writable)
{
	return appmem_map(app, (uint64_t)(uintptr_t)p, len, is_writable);
}

static struct mem_vec in(const struct appmem_view *v, const void *p, size_t len)
{
	return (struct mem_vec) { (uint64_t)(uintptr_t)p, appmem_view_region(v), len };
}

START_TEST(a_view_is_the_same_memory)
{
	uint8_t got[100], put[100];
	struct appmem_view *v;
	struct mem_vec at;

	start_child();
	v = map(shared + 1000, 3 * PAGE + 5, true); /* neither end on a page */
	ck_assert_ptr_nonnull(v);
	at = in(v, shared + 1001, 100);
	ck_assert_int_eq(appmem_read(NULL, &at, 1, &(struct buf_vec) { got, 100 }, 1), 0);
	ck_assert_mem_eq(got, shared + 1001, 100);
	memset(put, 0xee, sizeof(put));
	at = in(v, shared + 1000 + 3 * PAGE + 5 - 100, 100);
	ck_assert_int_eq(appmem_write(NULL, &at, 1, &(struct buf_vec) { put, 100 }, 1), 0);
	ck_assert_mem_eq(shared + 1000 + 3 * PAGE + 5 - 100, put, 100);
	appmem_unmap(v);
}
END_TEST

START_TEST(lists_on_both_sides_are_followed)
{
	uint8_t got[64], put[64];
	struct appmem_view *v, *w;
	struct mem_vec at[4];
	struct buf_vec buf[3] = { { got, 10 }, { got + 10, 50 }, { got + 60, 4 } };

	start_child();
	v = map(shared, PAGE, true);
	w = map(shared + PAGE, PAGE, true);
	ck_assert(v && w);
	at[0] = in(v, shared + 7, 20);
	at[1] = in(w, shared + PAGE + 3, 20);
	at[2] = (struct mem_vec) { 0, APPMEM_NULL_REGION, 4 };
	at[3] = (struct mem_vec) { (uint64_t)(uintptr_t)private, appmem_region(app), 20 };
	ck_assert_int_eq(appmem_read(NULL, at, 4, buf, 3), 0);
	ck_assert_mem_eq(got, shared + 7, 20);
	ck_assert_mem_eq(got + 20, shared + PAGE + 3, 20);
	ck_assert_mem_eq(got + 40, "\0\0\0\0", 4);
	ck_assert_mem_eq(got + 44, private, 20);
	memset(put, 0x11, sizeof(put));
	ck_assert_int_eq(appmem_write(NULL, at, 2, &(struct buf_vec) { put, 40 }, 1), 0);
	ck_assert_mem_eq(shared + PAGE + 3, put, 20);
	appmem_unmap(v);
	appmem_unmap(w);
}
END_TEST

START_TEST(atomics_work_in_a_view)
{
	struct appmem_view *v;
	struct mem_vec at;
	uint64_t old;

	start_child();
	memset(shared, 0, 8);
	v = map(shared, PAGE, true);
	at = in(v, shared, 8);
	ck_assert_int_eq(appmem_atomic(NULL, &at, MEM_FETCH_ADD, 5, 0, &old), 0);
	ck_assert_int_eq(appmem_atomic(NULL, &at, MEM_CMP_SWAP, 9, 5, &old), 0);
	ck_assert_uint_eq(old, 5);
	ck_assert_uint_eq(*(uint64_t *)shared, 9);
	appmem_unmap(v);
}
END_TEST

START_TEST(what_is_not_shared_is_not_mapped)
{
	start_child();
	ck_assert_ptr_null(map(private, PAGE, true));
	ck_assert_ptr_null(map(shared, 0, true));
	ck_assert_ptr_null(map((void *)PAGE, PAGE, false));
	ck_assert_ptr_null(appmem_map(app, UINT64_MAX - 10, 100, false));
}
END_TEST

/* Its pages may come from a server that never answers. */
START_TEST(a_file_on_a_disk_is_not_mapped)
{
	char name[] = "appmem-XXXXXX";
	int fd = mkstemp(name);
	struct statfs fs;
	void *p;

	if (fd < 0) /* a build that belongs to somebody else */
		return;
	ck_assert_int_eq(ftruncate(fd, PAGE), 0);
	unlink(name);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	start_child();
	ck_assert_int_eq(fstatfs(fd, &fs), 0);
	if (fs.f_type != 0x01021994) /* the build lies in a tmpfs */
		ck_assert_ptr_null(map(p, PAGE, true));
	close(fd);
}
END_TEST

/* Without a descriptor only a privileged daemon finds the file; else the kernel copies. */
START_TEST(an_anonymous_shared_mapping_is_mapped_by_root)
{
	uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct appmem_view *v;
	struct mem_vec at;
	uint8_t one = 77;

	start_child();
	v = map(p, PAGE, true);
	if (geteuid() == 0)
		ck_assert_ptr_nonnull(v);
	if (v) {
		at = in(v, p + 9, 1);
		ck_assert_int_eq(appmem_write(NULL, &at, 1, &(struct buf_vec) { &one, 1 }, 1), 0);
		ck_assert_uint_eq(p[9], 77);
	}
	appmem_unmap(v);
}
END_TEST

START_TEST(a_view_grants_no_more_than_the_mapping)
{
	uint8_t one = 1, was = shared[0];
	struct appmem_view *v;
	struct mem_vec at;

	mprotect(shared, PAGE, PROT_READ);
	start_child();
	ck_assert_ptr_null(map(shared, PAGE, true));
	v = map(shared, PAGE, false);
	ck_assert_ptr_nonnull(v);
	at = in(v, shared, 1);
	ck_assert_int_eq(appmem_read(NULL, &at, 1, &(struct buf_vec) { &one, 1 }, 1), 0);
	ck_assert_uint_eq(one, was);
	ck_assert_int_eq(appmem_write(NULL, &at, 1, &(struct buf_vec) { &one, 1 }, 1), -EFAULT);
	at = in(v, shared + PAGE - 1, 2);
	ck_assert_int_eq(appmem_read(NULL, &at, 1, &(struct buf_vec) { &one, 2 }, 1), -EFAULT);
	at = in(v, shared - 1, 1);
	ck_assert_int_eq(appmem_read(NULL, &at, 1, &(struct buf_vec) { &one, 1 }, 1), -EFAULT);
	appmem_unmap(v);
}
END_TEST

/* Two mappings of one file in order are as good as one; of two files they are not. */
START_TEST(a_range_may_span_mappings_of_one_file_only)
{
	struct appmem_view *v;
	int other = memfd_create("other", MFD_CLOEXEC);

	madvise(shared + 2 * PAGE, PAGE, MADV_DONTDUMP); /* splits the mapping in three */
	ck_assert_int_eq(ftruncate(other, PAGE), 0);
	ck_assert_ptr_ne(mmap(shared + 8 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, other, 0),
			 MAP_FAILED);
	start_child();
	v = map(shared + PAGE, 4 * PAGE, true);
	ck_assert_ptr_nonnull(v);
	appmem_unmap(v);
	ck_assert_ptr_null(map(shared + 7 * PAGE, 2 * PAGE, true));
	ck_assert_ptr_null(map(shared + 14 * PAGE, 3 * PAGE, true)); /* past its end */
	close(other);
}
END_TEST

START_TEST(a_file_cut_short_is_an_error_and_no_crash)
{
	struct appmem_view *v;
	uint8_t got[2 * PAGE];
	struct buf_vec buf = { got, sizeof(got) };
	struct mem_vec at;
	uint64_t old;

	start_child();
	v = map(shared, SIZE, true);
	ck_assert_int_eq(ftruncate(memfd, PAGE), 0);
	at = in(v, shared, sizeof(got));
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(appmem_read(NULL, &at, 1, &buf, 1), -EFAULT);
		ck_assert_int_eq(appmem_write(NULL, &at, 1, &buf, 1), -EFAULT);
	}
	at = in(v, shared + 4 * PAGE, 8);
	ck_assert_int_eq(appmem_atomic(NULL, &at, MEM_FETCH_ADD, 1, 0, &old), -EFAULT);
	at = in(v, shared, PAGE);
	buf.len = PAGE;
	ck_assert_int_eq(appmem_read(NULL, &at, 1, &buf, 1), 0); /* what is left of it */
	appmem_unmap(v);
}
END_TEST

/* The guard must not hide bugs of ours: outside of a copy the signal kills. */
START_TEST(a_bus_error_elsewhere_is_deadly)
{
	struct appmem_view *v;

	start_child();
	v = map(shared, SIZE, true);
	ck_assert_ptr_nonnull(v);
	ck_assert_int_eq(ftruncate(memfd, 0), 0);
	*(volatile uint8_t *)shared = 1;
}
END_TEST

START_TEST(a_dead_process_has_no_views)
{
	struct appmem_view *v;
	struct mem_vec at;
	uint8_t one;

	start_child();
	v = map(shared, PAGE, true);
	at = in(v, shared, 1);
	appmem_retire(app);
	ck_assert_int_eq(appmem_read(NULL, &at, 1, &(struct buf_vec) { &one, 1 }, 1), -EFAULT);
	appmem_unmap(v);
}
END_TEST

START_TEST(one_process_has_so_many_views_and_no_more)
{
	static struct appmem_view *v[600];
	unsigned n = 0;

	start_child();
	while (n < 600 && (v[n] = map(shared, PAGE, true)))
		n++;
	ck_assert_uint_eq(n, 512);
	appmem_unmap(v[--n]);
	v[n] = map(shared, PAGE, true);
	ck_assert_ptr_nonnull(v[n++]);
	while (n)
		appmem_unmap(v[--n]);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("appmem_map");
	TCase *tc = tcase_create("views");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_view_is_the_same_memory);
	tcase_add_test(tc, lists_on_both_sides_are_followed);
	tcase_add_test(tc, atomics_work_in_a_view);
	tcase_add_test(tc, what_is_not_shared_is_not_mapped);
	tcase_add_test(tc, a_file_on_a_disk_is_not_mapped);
	tcase_add_test(tc, an_anonymous_shared_mapping_is_mapped_by_root);
	tcase_add_test(tc, a_view_grants_no_more_than_the_mapping);
	tcase_add_test(tc, a_range_may_span_mappings_of_one_file_only);
	tcase_add_test(tc, a_file_cut_short_is_an_error_and_no_crash);
	tcase_add_test_raise_signal(tc, a_bus_error_elsewhere_is_deadly, SIGBUS);
	tcase_add_test(tc, a_dead_process_has_no_views);
	tcase_add_test(tc, one_process_has_so_many_views_and_no_more);
	suite_add_tcase(s, tc);
	return s;
}
