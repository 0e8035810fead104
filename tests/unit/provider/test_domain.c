/* SPDX-License-Identifier: BSD-3-Clause */
/* Parent and thread domains: who holds whom, whose memory is used, and which locks are left out. */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rig rig;
static unsigned n_alloc, n_free;
static size_t last_alignment;
static void *answer; /* what the allocator says; NULL: real memory */
static int context_word;

static void *take(struct ibv_pd *pd, void *ctx, size_t size, size_t alignment, uint64_t type)
{
	void *mem;

	(void)type;
	ck_assert_ptr_nonnull(pd);
	ck_assert_ptr_eq(ctx, &context_word);
	n_alloc++;
	last_alignment = alignment;
	if (answer)
		return answer == &answer ? NULL : answer;
	ck_assert_int_eq(posix_memalign(&mem, alignment, size), 0);
	memset(mem, 0xee, size);
	return mem;
}

static void give(struct ibv_pd *pd, void *ctx, void *ptr, uint64_t type)
{
	(void)pd;
	(void)type;
	ck_assert_ptr_eq(ctx, &context_word);
	n_free++;
	free(ptr);
}

static void setup(void)
{
	rig_up(&rig);
	n_alloc = n_free = 0;
	answer = NULL;
}

static void teardown(void)
{
	rig_down(&rig);
}

static struct ibv_pd *parent(struct ibv_td *td, uint32_t mask)
{
	struct ibv_parent_domain_init_attr attr = { .pd = rig.pd,
						    .td = td,
						    .comp_mask = mask,
						    .alloc = take,
						    .free = give,
						    .pd_context = &context_word };

	return ibv_alloc_parent_domain(rig.ctx, &attr);
}

static struct ibv_qp *qp_in(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = { .send_cq = rig.cq,
					 .recv_cq = rig.cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { RIG_SQ, RIG_RQ, RIG_SGE, RIG_SGE, RIG_INLINE } };

	return ibv_create_qp(pd, &init);
}

#define WITH_ALLOCATORS \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

START_TEST(a_parent_domain_is_its_pd_to_the_daemon)
{
	struct ibv_pd *pd = parent(NULL, 0);
	struct ibv_qp *qp = qp_in(pd);

	ck_assert_ptr_nonnull(qp);
	ck_assert_uint_eq(rig.fake.qp[1].req.pd, rig.pd->handle);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

START_TEST(nothing_goes_that_is_still_in_use)
{
	struct ibv_td_init_attr none = { 0 };
	struct ibv_td *td = ibv_alloc_td(rig.ctx, &none);
	struct ibv_pd *pd = parent(td, 0);
	struct ibv_qp *qp = qp_in(pd);

	ck_assert_int_eq(ibv_dealloc_td(td), EBUSY);
	ck_assert_int_eq(ibv_dealloc_pd(rig.pd), EBUSY);
	ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_dealloc_td(td), 0);
}
END_TEST

START_TEST(the_allocators_give_the_host_memory_of_queues_and_get_it_back)
{
	struct ibv_pd *pd = parent(NULL, WITH_ALLOCATORS);
	struct ibv_qp *qp = qp_in(pd);

	ck_assert_ptr_nonnull(qp);
	ck_assert_uint_eq(n_alloc, 2); /* send and receive queue */
	ck_assert_uint_ge(last_alignment, 64);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_uint_eq(n_free, 2);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

START_TEST(an_allocator_may_decline)
{
	struct ibv_pd *pd = parent(NULL, WITH_ALLOCATORS);
	struct ibv_qp *qp;

	answer = IBV_ALLOCATOR_USE_DEFAULT;
	qp = qp_in(pd);
	ck_assert_ptr_nonnull(qp);
	ck_assert_uint_eq(n_alloc, 2);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_uint_eq(n_free, 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

START_TEST(an_allocator_without_memory_fails_the_creation)
{
	struct ibv_pd *pd = parent(NULL, WITH_ALLOCATORS);

	answer = &answer;
	errno = 0;
	ck_assert_ptr_null(qp_in(pd));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert(!rig.fake.qp[1].is_used);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

START_TEST(unsound_domains_are_refused)
{
	struct ibv_pd *pd = parent(NULL, 0);
	struct ibv_parent_domain_init_attr nested = { .pd = pd }, half = { .pd = rig.pd };
	struct ibv_parent_domain_init_attr none = { 0 }, unknown = { .pd = rig.pd };
	struct ibv_td_init_attr later = { .comp_mask = 1 };

	half.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	half.alloc = take;
	unknown.comp_mask = 1u << 30;
	errno = 0;
	ck_assert_ptr_null(ibv_alloc_parent_domain(rig.ctx, &nested));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_alloc_parent_domain(rig.ctx, &half));
	ck_assert_ptr_null(ibv_alloc_parent_domain(rig.ctx, &none));
	ck_assert_ptr_null(ibv_alloc_parent_domain(rig.ctx, &unknown));
	ck_assert_ptr_null(ibv_alloc_td(rig.ctx, &later));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

/* With its lock, an extended CQ that is being read cannot be polled another way: it would wait. */
static void read_within_a_read(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq *plain = ibv_cq_ex_to_cq(cq);
	struct uroce_cqe cqe = rig_cqe(rig.qp, UROCE_CQE_SQ, 0);
	struct ibv_wc wc;

	cqe.queue = UROCE_CQE_RQ;
	fake_complete(&rig.fake, plain->handle, 0, &cqe);
	fake_complete(&rig.fake, plain->handle, 0, &cqe);
	ck_assert_int_eq(ibv_start_poll(cq, &attr), 0);
	ck_assert_int_eq(ibv_poll_cq(plain, 1, &wc), 1);
	ibv_end_poll(cq);
	ck_assert_int_eq(ibv_destroy_cq(plain), 0);
}

START_TEST(the_locks_of_a_thread_domain_are_left_out)
{
	struct ibv_td_init_attr none = { 0 };
	struct ibv_td *td = ibv_alloc_td(rig.ctx, &none);
	struct ibv_pd *pd = parent(td, 0);
	struct ibv_cq_init_attr_ex attr = { .cqe = 4,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					    .parent_domain = pd };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(rig.ctx, &attr);

	ck_assert_ptr_nonnull(cq);
	read_within_a_read(cq);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_dealloc_td(td), 0);
}
END_TEST

START_TEST(so_are_those_of_a_cq_that_says_one_thread)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(rig.ctx, &attr);

	ck_assert_ptr_nonnull(cq);
	read_within_a_read(cq);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/domain");
	TCase *tc = tcase_create("domains");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_parent_domain_is_its_pd_to_the_daemon);
	tcase_add_test(tc, nothing_goes_that_is_still_in_use);
	tcase_add_test(tc, the_allocators_give_the_host_memory_of_queues_and_get_it_back);
	tcase_add_test(tc, an_allocator_may_decline);
	tcase_add_test(tc, an_allocator_without_memory_fails_the_creation);
	tcase_add_test(tc, unsound_domains_are_refused);
	tcase_add_test(tc, the_locks_of_a_thread_domain_are_left_out);
	tcase_add_test(tc, so_are_those_of_a_cq_that_says_one_thread);
	suite_add_tcase(s, tc);
	return s;
}
