/* SPDX-License-Identifier: BSD-3-Clause */
/* What a RoCE device of ours has not is refused as other drivers refuse it, so that programs go on.
 */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct rig rig;

static void setup(void)
{
	rig_up(&rig);
}

static void teardown(void)
{
	rig_down(&rig);
}

START_TEST(enhanced_connections_are_not_offered)
{
	struct ibv_ece none = { 0 }, some = { .vendor_id = 1 };

	ck_assert_int_eq(ibv_set_ece(rig.qp, &none), EOPNOTSUPP);
	ck_assert_int_eq(ibv_set_ece(rig.qp, &some), EOPNOTSUPP);
	ck_assert_int_eq(ibv_query_ece(rig.qp, &some), EOPNOTSUPP);
}
END_TEST

START_TEST(rates_of_queue_pairs_are_not_limited)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000 };
	struct ibv_device_attr_ex dev;

	ck_assert_int_eq(ibv_modify_qp_rate_limit(rig.qp, &attr), EOPNOTSUPP);
	ck_assert_int_eq(ibv_query_device_ex(rig.ctx, NULL, &dev), 0);
	ck_assert_uint_eq(dev.packet_pacing_caps.qp_rate_limit_max, 0);
}
END_TEST

START_TEST(data_may_land_in_any_order)
{
	ck_assert_int_eq(ibv_query_qp_data_in_order(rig.qp, IBV_WR_SEND, 0), 0);
	ck_assert_int_eq(ibv_query_qp_data_in_order(rig.qp, IBV_WR_RDMA_WRITE, 0), 0);
}
END_TEST

START_TEST(packets_flows_and_hashes_are_not_ours)
{
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = rig.pd, .cq = rig.cq
	};
	struct ibv_flow_attr flow = { .size = sizeof(flow) };
	struct ibv_counters_init_attr counters = { 0 };
	struct ibv_qp_init_attr raw = { .qp_type = IBV_QPT_RAW_PACKET,
					.send_cq = rig.cq,
					.recv_cq = rig.cq };
	struct ibv_device_attr_ex dev;

	errno = 0;
	ck_assert_ptr_null(ibv_create_qp(rig.pd, &raw));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_ptr_null(ibv_create_wq(rig.ctx, &wq));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_ptr_null(ibv_create_flow(rig.qp, &flow));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_ptr_null(ibv_create_counters(rig.ctx, &counters));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_int_eq(ibv_query_device_ex(rig.ctx, NULL, &dev), 0);
	ck_assert_uint_eq(dev.raw_packet_caps | dev.tso_caps.max_tso | dev.max_wq_type_rq |
				  dev.rss_caps.supported_qpts | dev.tm_caps.max_num_tags,
			  0);
}
END_TEST

/* A pipe is open and is no memory; a descriptor that is not open is the program's mistake. */
START_TEST(dma_buffers_that_no_cpu_reaches_are_not_registered)
{
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	errno = 0;
	ck_assert_ptr_null(ibv_reg_dmabuf_mr(rig.pd, 0, 4096, 0, fd[0], 0));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	close(fd[0]);
	close(fd[1]);
	ck_assert_ptr_null(ibv_reg_dmabuf_mr(rig.pd, 0, 4096, 0, fd[0], 0));
	ck_assert_int_eq(errno, EBADF);
}
END_TEST

/* libfabric doubles the inline size until it is refused. */
START_TEST(caps_beyond_the_device_are_einval_whichever_it_is)
{
	const struct ibv_qp_cap cap[] = {
		{ .max_send_wr = 0xffffffff },   { .max_recv_wr = 0xffffffff },
		{ .max_send_sge = 0xffff },      { .max_recv_sge = 0xffff },
		{ .max_inline_data = 1u << 30 },
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = rig.cq, .recv_cq = rig.cq, .cap = cap[_i]
	};

	errno = 0;
	ck_assert_ptr_null(ibv_create_qp(rig.pd, &init));
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/refusals");
	TCase *tc = tcase_create("refusals");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, enhanced_connections_are_not_offered);
	tcase_add_test(tc, rates_of_queue_pairs_are_not_limited);
	tcase_add_test(tc, data_may_land_in_any_order);
	tcase_add_test(tc, packets_flows_and_hashes_are_not_ours);
	tcase_add_test(tc, dma_buffers_that_no_cpu_reaches_are_not_registered);
	tcase_add_loop_test(tc, caps_beyond_the_device_are_einval_whichever_it_is, 0, 5);
	suite_add_tcase(s, tc);
	return s;
}
