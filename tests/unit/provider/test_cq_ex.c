/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended CQs: the ibv_start_poll family, field by field. */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct rig rig;
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp;
static struct ibv_poll_cq_attr none;

#define ALL_FIELDS                                                     \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static void setup(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = RIG_CQE, .wc_flags = ALL_FIELDS };
	struct ibv_cq *plain;

	rig_up(&rig);
	cq = ibv_create_cq_ex(rig.ctx, &attr);
	ck_assert_ptr_nonnull(cq);
	plain = rig.cq;
	rig.cq = ibv_cq_ex_to_cq(cq);
	qp = rig_qp(&rig, IBV_QPT_RC);
	rig.cq = plain;
	ck_assert_ptr_nonnull(qp);
	ck_assert_int_eq(rig_state(qp, IBV_QPS_RTS), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rig_down(&rig);
}

static void post_sends(unsigned n)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	for (wr.wr_id = 100; n--; wr.wr_id++)
		ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
}

static void complete(uint32_t sub, uint8_t queue, uint32_t index)
{
	struct uroce_cqe cqe = rig_cqe(qp, queue, index);

	fake_complete(&rig.fake, cq->handle, sub, &cqe);
}

START_TEST(every_field_is_that_of_the_cqe)
{
	struct uroce_cqe cqe = rig_cqe(qp, UROCE_CQE_SQ, 0);

	post_sends(1);
	cqe.status = UROCE_WC_RETRY_EXC_ERR;
	cqe.opcode = UROCE_WC_RDMA_READ; /* the provider knows what it posted */
	cqe.byte_len = 77;
	cqe.imm = 0x1234;
	cqe.src_qp = 9;
	cqe.vendor_err = 8;
	cqe.flags = UROCE_WC_GRH;
	cqe.sl = 10;
	cqe.timestamp = 123456789;
	fake_complete(&rig.fake, cq->handle, 0, &cqe);
	ck_assert_int_eq(ibv_start_poll(cq, &none), 0);
	ck_assert_uint_eq(cq->wr_id, 100);
	ck_assert_int_eq(cq->status, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(ibv_wc_read_opcode(cq), IBV_WC_SEND);
	ck_assert_uint_eq(ibv_wc_read_byte_len(cq), 77);
	ck_assert_uint_eq(ibv_wc_read_imm_data(cq), 0x1234);
	ck_assert_uint_eq(ibv_wc_read_qp_num(cq), qp->qp_num);
	ck_assert_uint_eq(ibv_wc_read_src_qp(cq), 9);
	ck_assert_uint_eq(ibv_wc_read_vendor_err(cq), 8);
	ck_assert_uint_eq(ibv_wc_read_wc_flags(cq), IBV_WC_GRH);
	ck_assert_uint_eq(ibv_wc_read_slid(cq), 0);
	ck_assert_uint_eq(ibv_wc_read_sl(cq), 10);
	ck_assert_uint_eq(ibv_wc_read_dlid_path_bits(cq), 0);
	ck_assert_uint_eq(ibv_wc_read_completion_ts(cq), 123456789);
	ibv_end_poll(cq);
}
END_TEST

static uint64_t clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

START_TEST(timestamps_are_of_the_clock_that_query_rt_values_reads)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct uroce_cqe cqe = rig_cqe(qp, UROCE_CQE_RQ, 0);
	uint64_t before, after, ts, wall = clock_of(CLOCK_REALTIME);

	ck_assert_int_eq(ibv_query_rt_values_ex(rig.ctx, &v), 0);
	before = (uint64_t)v.raw_clock.tv_nsec;
	cqe.timestamp = clock_of(CLOCK_MONOTONIC);
	fake_complete(&rig.fake, cq->handle, 0, &cqe);
	ck_assert_int_eq(ibv_query_rt_values_ex(rig.ctx, &v), 0);
	after = (uint64_t)v.raw_clock.tv_nsec;
	ck_assert_int_eq(ibv_start_poll(cq, &none), 0);
	ts = ibv_wc_read_completion_ts(cq);
	ck_assert_uint_ge(ts, before);
	ck_assert_uint_le(ts, after);
	ck_assert_uint_ge(ibv_wc_read_completion_wallclock_ns(cq) + 1000000, wall);
	ck_assert_uint_le(ibv_wc_read_completion_wallclock_ns(cq), clock_of(CLOCK_REALTIME));
	ibv_end_poll(cq);
	v.comp_mask = 1u << 5;
	ck_assert_int_eq(ibv_query_rt_values_ex(rig.ctx, &v), EINVAL);
}
END_TEST

/*
 * As it goes: with the entry a request's slot becomes free, another thread may post into it at
 * once, and in a CQ of just as many entries its completion needs the room.
 */
START_TEST(one_poll_reads_the_rings_of_all_workers_and_frees_entries_as_it_goes)
{
	struct uroce_ring *ring = (struct uroce_ring *)(rig.fake.cq[1].mem + 64);

	complete(0, UROCE_CQE_RQ, 0);
	complete(0, UROCE_CQE_RQ, 1);
	complete(1, UROCE_CQE_RQ, 2);
	ck_assert_int_eq(ibv_start_poll(cq, &none), 0);
	ck_assert_uint_eq(ring->cons, 1);
	ck_assert_int_eq(ibv_next_poll(cq), 0);
	ck_assert_uint_eq(ring->cons, 2);
	ck_assert_int_eq(ibv_next_poll(cq), 0);
	ck_assert_int_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	ck_assert_uint_eq(ring->cons, 2);
	ck_assert_int_eq(ibv_start_poll(cq, &none), ENOENT);
}
END_TEST

START_TEST(an_empty_poll_leaves_nothing_locked)
{
	struct ibv_wc wc;

	ck_assert_int_eq(ibv_start_poll(cq, &none), ENOENT);
	complete(0, UROCE_CQE_RQ, 0);
	ck_assert_int_eq(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	none.comp_mask = 1;
	ck_assert_int_eq(ibv_start_poll(cq, &none), EINVAL);
	none.comp_mask = 0;
	ck_assert_int_eq(ibv_start_poll(cq, &none), ENOENT);
}
END_TEST

START_TEST(a_dead_daemon_flushes_what_was_posted)
{
	post_sends(2);
	fake_die(&rig.fake);
	for (int i = 0; i < 1000000 && ibv_start_poll(cq, &none); i++)
		;
	ck_assert_uint_eq(cq->wr_id, 100);
	ck_assert_int_eq(cq->status, IBV_WC_FATAL_ERR);
	ck_assert_int_eq(ibv_next_poll(cq), 0);
	ck_assert_uint_eq(cq->wr_id, 101);
	ck_assert_int_eq(cq->status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	ck_assert_int_eq(ibv_start_poll(cq, &none), EIO);
}
END_TEST

static const struct {
	struct ibv_cq_init_attr_ex attr;
	int err;
} refused[] = {
	{ { .cqe = 0 }, EINVAL },
	{ { .cqe = 1u << 30 }, EINVAL },
	{ { .cqe = 1, .comp_vector = 1u << 20 }, EINVAL },
	{ { .cqe = 1, .wc_flags = IBV_WC_EX_WITH_CVLAN }, EOPNOTSUPP },
	{ { .cqe = 1, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG }, EOPNOTSUPP },
	{ { .cqe = 1, .wc_flags = IBV_WC_EX_WITH_TM_INFO }, EOPNOTSUPP },
	{ { .cqe = 1,
	    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
	    .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN },
	  EOPNOTSUPP },
	{ { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD }, EINVAL },
};

START_TEST(what_the_device_has_not_is_refused)
{
	struct ibv_cq_init_attr_ex attr = refused[_i].attr;

	errno = 0;
	ck_assert_ptr_null(ibv_create_cq_ex(rig.ctx, &attr));
	ck_assert_int_eq(errno, refused[_i].err);
}
END_TEST

static void teardown_dead(void)
{
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	ck_assert_int_eq(ibv_close_device(rig.ctx), 0);
}

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/cq_ex");
	TCase *tc = tcase_create("extended"), *dead = tcase_create("dead");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, every_field_is_that_of_the_cqe);
	tcase_add_test(tc, timestamps_are_of_the_clock_that_query_rt_values_reads);
	tcase_add_test(tc, one_poll_reads_the_rings_of_all_workers_and_frees_entries_as_it_goes);
	tcase_add_test(tc, an_empty_poll_leaves_nothing_locked);
	tcase_add_loop_test(tc, what_the_device_has_not_is_refused, 0,
			    sizeof(refused) / sizeof(*refused));
	tcase_add_checked_fixture(dead, setup, teardown_dead);
	tcase_add_test(dead, a_dead_daemon_flushes_what_was_posted);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, dead);
	return s;
}
