/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Somebody scribbles over a WQE while it is written: the slot is shared memory, and what the
 * provider has put there it must not believe. The moment is exact: the program's data lies in a
 * page whose first access faults, and the handler does the scribbling.
 */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct rig rig;
static uint8_t *trap; /* two pages, the second not accessible */
static size_t page;

static void scribble(int sig)
{
	struct uroce_wqe *wqe =
		(struct uroce_wqe *)(rig.fake.qp[0].mem + rig.fake.qp[0].rep.sq_off);

	(void)sig;
	memset(wqe, 0xfe, sizeof(*wqe));
	if (mprotect(trap + page, page, PROT_READ | PROT_WRITE))
		_exit(2);
}

static void setup(void)
{
	struct sigaction act = { .sa_handler = scribble };

	rig_up(&rig);
	page = (size_t)sysconf(_SC_PAGESIZE);
	trap = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(trap, MAP_FAILED);
	memset(trap, 0x5a, 2 * page);
	ck_assert_int_eq(sigaction(SIGSEGV, &act, NULL), 0);
}

static void teardown(void)
{
	signal(SIGSEGV, SIG_DFL);
	munmap(trap, 2 * page);
	rig_down(&rig);
}

static void arm(void)
{
	ck_assert_int_eq(mprotect(trap + page, page, PROT_NONE), 0);
}

static int post(struct ibv_sge *sge, int n, unsigned flags)
{
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = sge, .num_sge = n, .opcode = IBV_WR_SEND, .send_flags = flags
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(rig.qp, &wr, &bad);
}

static const uint8_t *body(void)
{
	return (const uint8_t *)(rig_wqe(&rig, 0) + 1);
}

START_TEST(inline_data_goes_on_where_it_was)
{
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)trap + page, .length = 8 }, /* faults */
		{ .addr = (uintptr_t) "12345678", .length = 8 },
	};

	arm();
	ck_assert_int_eq(post(sge, 2, IBV_SEND_INLINE), 0);
	ck_assert_uint_eq(rig_wqe(&rig, 0)->inline_len, 16);
	ck_assert_mem_eq(body() + 8, "12345678", 8);
}
END_TEST

START_TEST(inline_data_beyond_the_limit_is_refused)
{
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)trap + page, .length = 8 },
		{ .addr = (uintptr_t)trap, .length = RIG_INLINE },
	};

	arm();
	ck_assert_int_eq(post(sge, 2, IBV_SEND_INLINE), EINVAL);
}
END_TEST

START_TEST(entries_go_on_where_they_were)
{
	/* The list crosses into the page that faults. */
	struct ibv_sge *sge = (struct ibv_sge *)(trap + page) - 1;
	const struct uroce_sge *put = (const struct uroce_sge *)body();

	sge[0] = (struct ibv_sge) { .addr = 0x1000, .length = 1, .lkey = 11 };
	sge[1] = (struct ibv_sge) { .addr = 0x2000, .length = 2, .lkey = 22 };
	arm();
	ck_assert_int_eq(post(sge, 2, 0), 0);
	ck_assert_uint_eq(rig_wqe(&rig, 0)->num_sge, 2);
	ck_assert_uint_eq(put[0].lkey, 11);
	ck_assert_uint_eq(put[1].lkey, 22);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/hostile");
	TCase *tc = tcase_create("a WQE under the pen");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, inline_data_goes_on_where_it_was);
	tcase_add_test(tc, inline_data_beyond_the_limit_is_refused);
	tcase_add_test(tc, entries_go_on_where_they_were);
	suite_add_tcase(s, tc);
	return s;
}
