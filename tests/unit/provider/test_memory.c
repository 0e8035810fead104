/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory, on-demand paging and its advice, the null region. */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define ZB   (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

static struct rig rig;

static void setup(void)
{
	rig_up(&rig);
}

static void teardown(void)
{
	rig_down(&rig);
}

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(rig.ctx, &attr);
}

static size_t max_dm(void)
{
	struct ibv_device_attr_ex attr;

	ck_assert_int_eq(ibv_query_device_ex(rig.ctx, NULL, &attr), 0);
	return attr.max_dm_size;
}

START_TEST(what_is_copied_to_the_device_is_there)
{
	struct ibv_dm *dm = alloc(100);
	char in[100], out[8] = "";

	memset(in, 'a', sizeof(in));
	in[96] = 'z';
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 0, in, 100), 0);
	ck_assert_int_eq(ibv_memcpy_from_dm(out, dm, 92, 8), 0);
	ck_assert_mem_eq(out, "aaaazaaa", 8);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
}
END_TEST

static const struct {
	uint64_t offset;
	size_t length;
	int err;
} copies[] = {
	{ 0, 100, 0 },    { 96, 4, 0 },       { 100, 0, 0 },      { 3, 4, EINVAL },
	{ 4, 3, EINVAL }, { 104, 4, EFAULT }, { 0, 104, EFAULT }, { UINT64_MAX - 3, 4, EFAULT },
};

START_TEST(copies_stay_inside_and_in_words)
{
	struct ibv_dm *dm = alloc(100);
	char buf[128] = "";

	ck_assert_int_eq(ibv_memcpy_to_dm(dm, copies[_i].offset, buf, copies[_i].length),
			 copies[_i].err);
	ck_assert_int_eq(ibv_memcpy_from_dm(buf, dm, copies[_i].offset, copies[_i].length),
			 copies[_i].err);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
}
END_TEST

START_TEST(a_device_has_so_much_memory_and_no_more)
{
	struct ibv_alloc_dm_attr coarse = { .length = 4, .log_align_req = 31 };
	struct ibv_alloc_dm_attr unknown = { .length = 4, .comp_mask = 1 };
	size_t max = max_dm();
	struct ibv_dm *all, *more;

	ck_assert_uint_gt(max, 0);
	errno = 0;
	ck_assert_ptr_null(alloc(max + 1));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(alloc(0));
	ck_assert_ptr_null(ibv_alloc_dm(rig.ctx, &coarse));
	ck_assert_ptr_null(ibv_alloc_dm(rig.ctx, &unknown));
	all = alloc(max);
	ck_assert_ptr_nonnull(all);
	ck_assert_ptr_null(alloc(1));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_int_eq(ibv_free_dm(all), 0);
	more = alloc(1);
	ck_assert_ptr_nonnull(more);
	ck_assert_int_eq(ibv_free_dm(more), 0);
}
END_TEST

START_TEST(its_regions_begin_at_zero_and_hold_it)
{
	struct ibv_dm *dm = alloc(100);
	struct ibv_mr *mr = ibv_reg_dm_mr(rig.pd, dm, 60, 40, ZB);

	ck_assert_ptr_nonnull(mr);
	ck_assert_ptr_null(mr->addr);
	ck_assert_uint_eq(mr->length, 40);
	ck_assert_uint_eq(rig.fake.mr.iova, 0);
	ck_assert_uint_eq(rig.fake.mr.length, 40);
	ck_assert_uint_eq(rig.fake.mr.access, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
}
END_TEST

static const struct {
	uint64_t offset;
	size_t length;
	unsigned access;
} bad_regions[] = {
	{ 0, 101, ZB },
	{ 101, 0, ZB },
	{ UINT64_MAX, 2, ZB },
	{ 0, 100, IBV_ACCESS_LOCAL_WRITE },
	{ 0, 100, ZB | IBV_ACCESS_ON_DEMAND },
	{ 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE },
};

START_TEST(regions_of_it_are_sound)
{
	struct ibv_dm *dm = alloc(100);

	errno = 0;
	ck_assert_ptr_null(ibv_reg_dm_mr(rig.pd, dm, bad_regions[_i].offset, bad_regions[_i].length,
					 bad_regions[_i].access));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
}
END_TEST

START_TEST(what_is_not_the_programs_memory_is_not_registered_anew)
{
	struct ibv_dm *dm = alloc(100);
	struct ibv_mr *on_device = ibv_reg_dm_mr(rig.pd, dm, 0, 100, ZB);
	struct ibv_mr *null = ibv_alloc_null_mr(rig.pd);
	static char memory[16];

	errno = 0;
	ck_assert_int_ne(ibv_rereg_mr(on_device, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory,
				      sizeof(memory), 0),
			 0);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_ne(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	ck_assert_int_eq(ibv_dereg_mr(null), 0);
	ck_assert_int_eq(ibv_dereg_mr(on_device), 0);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
}
END_TEST

START_TEST(the_whole_address_space_is_one_implicit_region)
{
	struct ibv_mr *mr =
		ibv_reg_mr(rig.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);

	ck_assert_ptr_nonnull(mr);
	ck_assert_uint_eq(rig.fake.mr.addr, 0);
	ck_assert_uint_eq(rig.fake.mr.length, UINT64_MAX);
	ck_assert_uint_eq(rig.fake.mr.access, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

START_TEST(the_null_region_has_a_local_key_only)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(rig.pd);

	ck_assert_ptr_nonnull(mr);
	ck_assert_uint_eq(mr->lkey, 0x4321);
	ck_assert_uint_eq(mr->rkey, 0);
	ck_assert_uint_eq(mr->length, SIZE_MAX);
	ck_assert_ptr_eq(mr->pd, rig.pd);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

static size_t resident(void *at, size_t n_pages)
{
	unsigned char vec[16];
	size_t n = 0;

	ck_assert_int_eq(mincore(at, n_pages * PAGE, vec), 0);
	for (size_t i = 0; i < n_pages; i++)
		n += vec[i] & 1;
	return n;
}

static int advise(struct ibv_mr *mr, int advice, uint32_t flags, void *addr, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)addr, length, mr->lkey };

	return ibv_advise_mr(rig.pd, (enum ibv_advise_mr_advice)advice, flags, &sge, 1);
}

#define FLUSH IBV_ADVISE_MR_FLAG_FLUSH

START_TEST(prefetching_brings_pages_in_and_without_faults_it_does_not)
{
	uint8_t *area =
		mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr =
		ibv_reg_mr(rig.pd, area, 16 * PAGE, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);

	ck_assert_int_eq(advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, FLUSH, area, 16 * PAGE),
			 0);
	ck_assert_uint_eq(resident(area, 16), 0);
	ck_assert_int_eq(
		advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, FLUSH, area + PAGE + 1, PAGE), 0);
	ck_assert_uint_eq(resident(area, 16), 2);
	ck_assert_int_eq(advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, area, PAGE), 0);
	munmap(area + 8 * PAGE, PAGE);
	ck_assert_int_eq(advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH, FLUSH, area, 16 * PAGE), EFAULT);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

START_TEST(advice_about_nothing_of_the_kind_is_refused)
{
	uint8_t *area =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(rig.pd, area, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge other = { (uintptr_t)area, 4, mr->lkey + 1 };
	struct ibv_mr *pinned;

	ck_assert_int_eq(advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, area, PAGE + 1), EFAULT);
	ck_assert_int_eq(advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, area - 1, 1), EFAULT);
	ck_assert_int_eq(advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, area, 4), EPERM);
	ck_assert_int_eq(advise(mr, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 7, area, 4), EINVAL);
	ck_assert_int_eq(advise(mr, 77, 0, area, 4), EOPNOTSUPP);
	ck_assert_int_eq(ibv_advise_mr(rig.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &other, 0),
			 EINVAL);
	ck_assert_int_eq(ibv_advise_mr(rig.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &other, 1),
			 ENOENT);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	pinned = ibv_reg_mr(rig.pd, area, PAGE, 0);
	ck_assert_int_eq(advise(pinned, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, area, 4), EINVAL);
	ck_assert_int_eq(ibv_dereg_mr(pinned), 0);
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof(*(a))))

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/memory");
	TCase *tc = tcase_create("memory");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_copied_to_the_device_is_there);
	tcase_add_loop_test(tc, copies_stay_inside_and_in_words, 0, N(copies));
	tcase_add_test(tc, a_device_has_so_much_memory_and_no_more);
	tcase_add_test(tc, its_regions_begin_at_zero_and_hold_it);
	tcase_add_loop_test(tc, regions_of_it_are_sound, 0, N(bad_regions));
	tcase_add_test(tc, what_is_not_the_programs_memory_is_not_registered_anew);
	tcase_add_test(tc, the_whole_address_space_is_one_implicit_region);
	tcase_add_test(tc, the_null_region_has_a_local_key_only);
	tcase_add_test(tc, prefetching_brings_pages_in_and_without_faults_it_does_not);
	tcase_add_test(tc, advice_about_nothing_of_the_kind_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
