/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/slice.h"

#include <linux/sched/types.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/ck_main.h"

static struct sched_attr get(void)
{
	struct sched_attr a;

	memset(&a, 0, sizeof(a));
	ck_assert_int_eq(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0), 0);
	return a;
}

START_TEST(policy_and_niceness_stay_as_they_were)
{
	struct sched_attr before, after;

	ck_assert_int_eq(nice(3) < 0, 0);
	before = get();
	ck_assert_int_eq(slice_set(100000), 0);
	after = get();
	ck_assert_uint_eq(after.sched_policy, before.sched_policy);
	ck_assert_int_eq(after.sched_nice, 3);
}
END_TEST

START_TEST(a_kernel_that_knows_slices_takes_it)
{
	uint64_t before = get().sched_runtime;

	ck_assert_int_eq(slice_set(300000), 0);
	if (before) /* older ones report none */
		ck_assert_uint_eq(get().sched_runtime, 300000);
	else
		ck_assert_uint_eq(get().sched_runtime, 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("host/slice");
	TCase *c = tcase_create("slice");

	tcase_add_test(c, policy_and_niceness_stay_as_they_were);
	tcase_add_test(c, a_kernel_that_knows_slices_takes_it);
	suite_add_tcase(s, c);
	return s;
}
