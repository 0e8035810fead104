/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs as objects: creation, flush, reset, removal, and the events that tell of them. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

static struct raw r;

static void setup(void)
{
	raw_init(&r, NULL);
}

static void teardown(void)
{
	raw_free(&r);
}

static void recv_one(uint64_t wr_id, uint32_t len)
{
	struct uroce_sge sge = fake_sge(r.mem, 4096, len);

	ck_assert(fake_post_recv(r.qp, wr_id, &sge, 1));
}

START_TEST(flush_is_in_order_and_begins_with_the_receive_in_use)
{
	for (uint64_t i = 1; i <= 4; i++)
		recv_one(100 + i, 2048);
	raw_op(&r, BTH_SEND_FIRST, 0, 1024); /* takes receive 101 */
	for (uint32_t i = 0; i < 3; i++)
		raw_post(&r, UROCE_WR_WRITE, i, 8, 0);
	raw_pull(&r); /* taken; the next two are not */
	raw_post(&r, UROCE_WR_WRITE, 3, 8, 0);
	raw_post(&r, UROCE_WR_WRITE, 4, 8, 0);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_ERR), 0);
	for (uint64_t i = 0; i < 5; i++)
		raw_expect_cqe(&r, i, UROCE_WC_WR_FLUSH_ERR);
	for (uint64_t i = 1; i <= 4; i++)
		raw_expect_cqe(&r, 100 + i, UROCE_WC_WR_FLUSH_ERR);
	raw_expect_no_cqe(&r);
}
END_TEST

START_TEST(flushing_twice_completes_nothing_twice)
{
	recv_one(1, 64);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_ERR), 0);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_ERR), 0);
	engine_doorbell(r.dev.engine, r.now, r.qp->qpn);
	raw_expect_cqe(&r, 1, UROCE_WC_WR_FLUSH_ERR);
	raw_expect_no_cqe(&r);
}
END_TEST

START_TEST(reset_forgets_everything_without_a_completion)
{
	struct cmd q = { .op = ENGINE_QP_QUERY, .key = r.qp->qpn };
	struct cmd_reply reply;

	recv_one(1, 64);
	raw_post(&r, UROCE_WR_READ, 0, 64, 0);
	raw_pull(&r);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_RESET), 0);
	raw_expect_no_cqe(&r);
	raw_clear(&r);
	raw_pull(&r);
	raw_expect_none(&r);
	ck_assert_uint_eq(engine_deadline(r.dev.engine), UINT64_MAX);
	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &q, &reply), 0);
	ck_assert_uint_eq(reply.attr.qp_state, UROCE_QPS_RESET);
	ck_assert_uint_eq(reply.attr.cap.max_send_wr, r.qp->cap.max_send_wr);
	ck_assert_uint_eq(reply.attr.dest_qp_num, 0);
}
END_TEST

START_TEST(a_deleted_qp_leaves_nothing_to_do)
{
	raw_post(&r, UROCE_WR_WRITE, 0, 30000, 0);
	raw_read(&r, 0, 0, 30000);
	raw_clear(&r);
	ck_assert_int_eq(fake_qp_del(r.qp), 0);
	ck_assert(!engine_tx_pending(r.dev.engine));
	ck_assert_uint_eq(engine_deadline(r.dev.engine), UINT64_MAX);
}
END_TEST

START_TEST(the_first_packet_in_rtr_establishes_communication)
{
	struct fake_qp_conf qc = { .send_cq = r.cq, .recv_cq = r.cq };
	struct uroce_qp_attr a = { .qp_state = UROCE_QPS_INIT,
				   .port_num = 1,
				   .access = 0xe,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = RAW_PEER_QPN,
				   .rq_psn = 5 };
	struct net_path path = { .vlan = NET_NO_VLAN, .is_ipv4 = 1 };

	memcpy(path.dgid, r.inbound.sgid, 16);
	memcpy(path.sgid, r.inbound.dgid, 16);
	fake_qp_del(r.qp);
	r.qp = fake_qp_new(&r.dev, &qc);
	ck_assert_int_eq(
		fake_qp_modify(r.qp, &a,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			       NULL),
		0);
	raw_write(&r, BTH_WRITE_ONLY, 5, 0, 8, 8); /* INIT: deaf */
	raw_expect_none(&r);
	a.qp_state = UROCE_QPS_RTR;
	ck_assert_int_eq(fake_qp_modify(r.qp, &a,
					IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
					&path),
			 0);
	raw_write(&r, BTH_WRITE_ONLY, 5, 0, 8, 8);
	raw_write(&r, BTH_WRITE_ONLY, 6, 0, 8, 8);
	ck_assert_uint_eq(r.n_answers, 2);
	ck_assert_uint_eq(fake_events(&r.dev, UROCE_EVENT_COMM_EST, r.qp->qpn), 1);
}
END_TEST

START_TEST(sends_posted_before_rts_wait_for_it)
{
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_RESET), 0);
	raw_post(&r, UROCE_WR_WRITE, 0, 8, 0);
	raw_pull(&r);
	raw_expect_none(&r);
	raw_expect_no_cqe(&r);
}
END_TEST

static struct cmd add_like(const struct fake_qp *qp)
{
	return (struct cmd) { .op = ENGINE_QP_ADD,
			      .qp_add = { .qpn = 0x20005,
					  .type = UROCE_QPT_RC,
					  .pd = 1,
					  .send_cqn = r.cq->cqn,
					  .recv_cqn = r.cq->cqn,
					  .cap = qp->cap,
					  .sq_depth = 64,
					  .rq_depth = 64,
					  .sq_stride = qp->sq_stride,
					  .rq_stride = qp->rq_stride,
					  .page = qp->page,
					  .sq = qp->sq,
					  .rq = qp->rq } };
}

/* What would let a slot reach past its end, or past what a table can hold, is refused. */
START_TEST(a_qp_that_makes_no_sense_is_refused)
{
	struct cmd c = add_like(r.qp);
	struct cmd_reply reply;
	int err;

	switch (_i) {
	case 0:
		c.qp_add.sq_depth = 3;
		break;
	case 1:
		c.qp_add.rq_depth = 48;
		break;
	case 2:
		c.qp_add.sq_stride = 32;
		break;
	case 3:
		c.qp_add.rq_stride = 8;
		break;
	case 4:
		c.qp_add.cap.max_send_sge = UROCE_MAX_SGE + 1;
		break;
	case 5:
		c.qp_add.cap.max_recv_sge = UROCE_MAX_SGE + 1;
		break;
	case 6:
		c.qp_add.cap.max_inline = UROCE_MAX_INLINE + 1;
		break;
	case 7:
		c.qp_add.cap.max_send_sge = UROCE_MAX_SGE;
		break; /* does not fit the stride */
	case 8:
		c.qp_add.send_cqn ^= 0x10000;
		break;
	case 9:
		c.qp_add.recv_cqn += 1;
		break;
	case 10:
		c.qp_add.type = 77;
		break;
	case 11:
		c.qp_add.srqn = 12;
		break;
	}
	c.qp_add.mem = calloc(1, engine_qp_size(64));
	err = engine_command(r.dev.engine, r.now, &c, &reply);
	free(c.qp_add.mem);
	ck_assert_int_lt(err, 0);
}
END_TEST

START_TEST(a_taken_slot_is_not_given_twice)
{
	struct cmd c = add_like(r.qp);
	struct cmd_reply reply;

	c.qp_add.qpn = r.qp->qpn;
	c.qp_add.mem = calloc(1, engine_qp_size(64));
	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &c, &reply), -EEXIST);
	free(c.qp_add.mem);
}
END_TEST

/* A thousand lives in the same slots: nothing leaks, or the tables would be full. */
START_TEST(a_thousand_qps_come_and_go)
{
	struct fake_qp *qp[FAKE_MAX_QP];
	struct fake_qp_conf qc = { .send_cq = r.cq, .recv_cq = r.cq, .sq_depth = 2, .rq_depth = 2 };

	for (unsigned round = 0; round < 20; round++) {
		unsigned n = FAKE_MAX_QP - 3; /* 0 and 1 are not ours, one is the stage's */

		for (unsigned i = 0; i < n; i++) {
			qp[i] = fake_qp_new(&r.dev, &qc);
			ck_assert_ptr_nonnull(qp[i]);
		}
		for (unsigned i = 0; i < n; i++)
			ck_assert_int_eq(fake_qp_del(qp[i]), 0);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/qp");
	TCase *c = tcase_create("qp");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, flush_is_in_order_and_begins_with_the_receive_in_use);
	tcase_add_test(c, flushing_twice_completes_nothing_twice);
	tcase_add_test(c, reset_forgets_everything_without_a_completion);
	tcase_add_test(c, a_deleted_qp_leaves_nothing_to_do);
	tcase_add_test(c, the_first_packet_in_rtr_establishes_communication);
	tcase_add_test(c, sends_posted_before_rts_wait_for_it);
	tcase_add_loop_test(c, a_qp_that_makes_no_sense_is_refused, 0, 12);
	tcase_add_test(c, a_taken_slot_is_not_given_twice);
	tcase_add_test(c, a_thousand_qps_come_and_go);
	suite_add_tcase(s, c);
	return s;
}
