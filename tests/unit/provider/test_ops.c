/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of libibverbs' private interface, release by release. */
#include "tests/support/ck_main.h"

#include <string.h>

#include "provider/abi/library.h"

/* Counted in the struct verbs_context_ops of each release. */
static const struct {
	unsigned release, count;
} counts[] = {
	{ 34, 73 }, { 35, 75 }, { 36, 76 }, { 39, 76 }, { 44, 76 }, { 50, 76 }, { 56, 76 },
	{ 58, 76 }, { 59, 79 }, { 61, 79 }, { 62, 81 }, { 63, 81 }, { 64, 83 }, { 65, 93 },
};

START_TEST(every_release_has_its_number_of_ops)
{
	ck_assert_uint_eq(uroce_verbs_op_count(counts[_i].release), counts[_i].count);
}
END_TEST

/* Read off the headers of rdma-core. */
static const struct {
	enum verbs_op op;
	unsigned release;
	int index;
} indices[] = {
	{ VERBS_OP_advise_mr, 34, 0 },    { VERBS_OP_advise_mr, 65, 0 },
	{ VERBS_OP_alloc_buf, 44, -1 },   { VERBS_OP_alloc_buf, 64, 1 },
	{ VERBS_OP_alloc_pd, 44, 5 },     { VERBS_OP_alloc_pd, 65, 7 },
	{ VERBS_OP_poll_cq, 34, 52 },     { VERBS_OP_poll_cq, 44, 53 },
	{ VERBS_OP_poll_cq, 59, 55 },     { VERBS_OP_poll_cq, 62, 56 },
	{ VERBS_OP_poll_cq, 64, 58 },     { VERBS_OP_poll_cq, 65, 62 },
	{ VERBS_OP_unimport_pd, 34, 72 }, { VERBS_OP_unimport_pd, 44, 75 },
	{ VERBS_OP_unimport_pd, 65, 92 }, { VERBS_OP_query_qp_data_in_order, 35, -1 },
};

START_TEST(ops_stand_where_the_release_has_them)
{
	ck_assert_int_eq(uroce_verbs_op_index(indices[_i].op, indices[_i].release),
			 indices[_i].index);
}
END_TEST

START_TEST(ops_are_in_alphabetical_order)
{
	for (unsigned op = 1; op < VERBS_N_OPS; op++)
		ck_assert_str_lt(uroce_verbs_op_name((enum verbs_op)(op - 1)),
				 uroce_verbs_op_name((enum verbs_op)op));
}
END_TEST

static void some_op(void)
{
}

START_TEST(a_table_holds_what_the_release_knows_and_nothing_else)
{
	static const struct verbs_impl impl[] = { { VERBS_OP_alloc_buf, some_op },
						  { VERBS_OP_poll_cq, some_op } };
	verbs_fn slots[VERBS_N_OPS];
	unsigned used = 0;

	uroce_verbs_ops_fill(slots, 44, impl, 2);
	for (unsigned i = 0; i < VERBS_N_OPS; i++)
		used += slots[i] != NULL;
	ck_assert_uint_eq(used, 1);
	ck_assert(slots[53] == some_op);
}
END_TEST

/* The numbers of rdma-core's own headers, compiled release by release. */
static const struct {
	unsigned release, pabi, context_size, comp_mask, port_attr;
} layouts[] = {
	{ 34, 34, 648, 344, 52 }, { 39, 34, 648, 344, 52 }, { 43, 34, 648, 344, 52 },
	{ 44, 34, 648, 352, 52 }, { 45, 34, 648, 360, 52 }, { 49, 34, 648, 360, 56 },
	{ 56, 34, 648, 360, 56 }, { 58, 57, 648, 360, 56 }, { 59, 59, 672, 360, 56 },
	{ 63, 59, 680, 360, 56 }, { 64, 64, 696, 360, 56 }, { 65, 65, 696, 360, 56 },
};

START_TEST(layouts_follow_the_release)
{
	const struct verbs_layout *l = uroce_verbs_layout(layouts[_i].release);

	ck_assert_ptr_nonnull(l);
	ck_assert_uint_eq(l->pabi, layouts[_i].pabi);
	ck_assert_uint_eq(l->context_size, layouts[_i].context_size);
	ck_assert_uint_eq(l->qp_comp_mask, layouts[_i].comp_mask);
	ck_assert_uint_eq(l->port_attr_size, layouts[_i].port_attr);
}
END_TEST

START_TEST(releases_outside_the_table_are_unknown)
{
	ck_assert_ptr_null(uroce_verbs_layout(0));
	ck_assert_ptr_null(uroce_verbs_layout(33));
	ck_assert_ptr_null(uroce_verbs_layout(66));
}
END_TEST

static const struct {
	const char *name;
	unsigned release;
} names[] = {
	{ "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0", 44 },
	{ "libibverbs.so.1.11.34.1", 34 },
	{ "/opt/lib/libibverbs.so.1.16.65.0", 65 },
	{ "/usr/lib/libibverbs.so.1", 0 },
	{ "/usr/lib/libibverbs.so.1.14.44.0.old", 0 },
	{ "/usr/lib/libibverbs.so.1.14.44", 0 },
	{ "/usr/lib/libsomething.so.1.14.44.0", 0 },
};

START_TEST(the_file_name_tells_the_release)
{
	ck_assert_uint_eq(uroce_verbs_release_of(names[_i].name), names[_i].release);
}
END_TEST

START_TEST(the_library_of_this_machine_is_known_and_passes_the_check)
{
	struct verbs_library lib;

	ck_assert_msg(uroce_verbs_library_find(&lib), "%s", lib.why);
	ck_assert_msg(uroce_verbs_library_check(&lib), "%s", lib.why);
}
END_TEST

/* The check must bite: a table of another release puts sentinels elsewhere. */
START_TEST(a_library_with_another_table_is_refused)
{
	struct verbs_library lib;

	ck_assert(uroce_verbs_library_find(&lib));
	lib.release = lib.release >= 36 && lib.release < 59 ? 34 : 44;
	ck_assert(!uroce_verbs_library_check(&lib));
	ck_assert_ptr_null(lib.layout);
	ck_assert_ptr_nonnull(strstr(lib.why, "another layout"));
}
END_TEST

START_TEST(a_library_with_another_context_is_refused)
{
	struct verbs_library lib;

	ck_assert(uroce_verbs_library_find(&lib));
	lib.layout = uroce_verbs_layout(lib.release < 59 ? 65 : 34);
	ck_assert(!uroce_verbs_library_check(&lib));
	ck_assert_ptr_nonnull(strstr(lib.why, "struct verbs_context"));
}
END_TEST

#define N(a) (sizeof(a) / sizeof(*(a)))

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/ops");
	TCase *tc = tcase_create("private interface");

	tcase_add_loop_test(tc, every_release_has_its_number_of_ops, 0, N(counts));
	tcase_add_loop_test(tc, ops_stand_where_the_release_has_them, 0, N(indices));
	tcase_add_test(tc, ops_are_in_alphabetical_order);
	tcase_add_test(tc, a_table_holds_what_the_release_knows_and_nothing_else);
	tcase_add_loop_test(tc, layouts_follow_the_release, 0, N(layouts));
	tcase_add_test(tc, releases_outside_the_table_are_unknown);
	tcase_add_loop_test(tc, the_file_name_tells_the_release, 0, N(names));
	tcase_add_test(tc, the_library_of_this_machine_is_known_and_passes_the_check);
	tcase_add_test(tc, a_library_with_another_table_is_refused);
	tcase_add_test(tc, a_library_with_another_context_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
