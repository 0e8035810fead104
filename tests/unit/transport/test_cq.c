/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: overflow, events, and that nobody takes one away in use. */
#include <errno.h>

#include "dataplane/abi/ring.h"
#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

static struct raw r;

static void setup(void)
{
	static const struct raw_conf conf = { .cq_depth = 4 };

	raw_init(&r, &conf);
}

static void teardown(void)
{
	raw_free(&r);
}

/* n WRITEs, acknowledged: n completions. */
static void complete(uint32_t n)
{
	struct engine_qp_info info;

	for (uint32_t i = 0; i < n; i++)
		raw_post(&r, UROCE_WR_WRITE, i, 8, 0);
	raw_pull(&r);
	raw_clear(&r);
	ck_assert_int_eq(engine_qp_info(r.dev.engine, r.qp->qpn, &info), 0);
	raw_ack(&r, 0x1f, info.nxt_psn - 1);
}

START_TEST(a_cq_holds_as_many_as_it_is_deep)
{
	complete(4);
	ck_assert_uint_eq(r.cq->page->overrun, 0);
	for (uint32_t i = 0; i < 4; i++)
		raw_expect_cqe(&r, i, UROCE_WC_SUCCESS);
	complete(4);
	ck_assert_uint_eq(r.cq->page->overrun, 0);
}
END_TEST

START_TEST(an_overflow_is_an_error_of_the_cq_and_its_qp_once)
{
	complete(7);
	ck_assert_uint_eq(r.cq->page->overrun, 1);
	ck_assert_uint_eq(fake_events(&r.dev, UROCE_EVENT_CQ_ERR, r.cq->cqn), 1);
	ck_assert_uint_eq(fake_events(&r.dev, UROCE_EVENT_QP_FATAL, r.qp->qpn), 1);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
	for (uint32_t i = 0; i < 4; i++) /* what was there is not written over */
		raw_expect_cqe(&r, i, UROCE_WC_SUCCESS);
	raw_expect_no_cqe(&r);
}
END_TEST

START_TEST(an_impossible_consumer_index_is_an_overflow_too)
{
	uroce_ring_consume(r.cq->ring, 1000);
	complete(1);
	ck_assert_uint_eq(r.cq->page->overrun, 1);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
}
END_TEST

START_TEST(an_armed_cq_fires_once)
{
	uroce_cq_arm(r.cq->page, UROCE_ARM_ANY);
	complete(1);
	ck_assert_uint_eq(r.cq->n_notified, 1);
	complete(1);
	ck_assert_uint_eq(r.cq->n_notified, 1);
	uroce_cq_arm(r.cq->page, UROCE_ARM_ANY);
	complete(2);
	ck_assert_uint_eq(r.cq->n_notified, 2);
}
END_TEST

static void receive(bool solicited, uint32_t psn)
{
	struct uroce_sge sge = fake_sge(r.mem, 0, 64);
	struct packet pk = {
		.opcode = BTH_SEND_ONLY, .psn = psn, .solicited = solicited, .payload_len = 8
	};

	ck_assert(fake_post_recv(r.qp, 1, &sge, 1));
	raw_send(&r, &pk, NULL);
}

START_TEST(armed_for_solicited_only_solicited_and_errors_fire)
{
	uroce_cq_arm(r.cq->page, UROCE_ARM_SOLICITED);
	complete(1);
	receive(false, 0);
	ck_assert_uint_eq(r.cq->n_notified, 0);
	receive(true, 1);
	ck_assert_uint_eq(r.cq->n_notified, 1);
	uroce_cq_arm(r.cq->page, UROCE_ARM_SOLICITED);
	fake_poll(r.cq, &(struct uroce_cqe) { 0 }, 1);
	raw_post(&r, UROCE_WR_WRITE, 0, 8, 0);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_ERR), 0);
	ck_assert_uint_eq(r.cq->n_notified, 2);
}
END_TEST

START_TEST(an_armed_cq_fires_when_asked_to_and_once)
{
	struct cmd fire = { .op = ENGINE_CQ_FIRE, .key = r.cq->cqn };
	struct cmd_reply reply;

	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &fire, &reply), 0);
	ck_assert_uint_eq(r.cq->n_notified, 0);
	for (uint32_t arm = UROCE_ARM_ANY; arm <= UROCE_ARM_SOLICITED; arm++) {
		uroce_cq_arm(r.cq->page, arm);
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(engine_command(r.dev.engine, r.now, &fire, &reply), 0);
		ck_assert_uint_eq(r.cq->n_notified, arm);
	}
	fire.key ^= 0x10000;
	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &fire, &reply), -ENOENT);
}
END_TEST

START_TEST(a_completion_says_whether_it_is_solicited)
{
	struct uroce_cqe c;

	for (uint32_t psn = 0; psn < 2; psn++) {
		receive(psn == 1, psn);
		ck_assert_int_eq(fake_poll(r.cq, &c, 1), 1);
		ck_assert_uint_eq(c.solicited, psn);
	}
	raw_post(&r, UROCE_WR_WRITE, 0, 8, 0);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_ERR), 0);
	ck_assert_int_eq(fake_poll(r.cq, &c, 1), 1);
	ck_assert_uint_eq(c.solicited, 1);
}
END_TEST

START_TEST(a_cq_in_use_stays)
{
	struct cmd del = { .op = ENGINE_CQ_DEL, .key = r.cq->cqn };
	struct cmd_reply reply;

	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &del, &reply), -EBUSY);
	del.key ^= 0x10000;
	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &del, &reply), -ENOENT);
}
END_TEST

START_TEST(a_taken_number_or_an_odd_depth_is_refused)
{
	struct cmd add = { .op = ENGINE_CQ_ADD, .cq_add = { .cqn = r.cq->cqn, .depth = 4 } };
	struct cmd_reply reply;

	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &add, &reply), -EEXIST);
	add.cq_add.cqn = 7;
	add.cq_add.depth = 3;
	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &add, &reply), -EINVAL);
	add.cq_add.depth = 0;
	ck_assert_int_eq(engine_command(r.dev.engine, r.now, &add, &reply), -EINVAL);
}
END_TEST

START_TEST(a_completion_says_which_queue_slot_and_time)
{
	struct uroce_cqe c;

	r.now += 12345;
	complete(1);
	ck_assert_int_eq(fake_poll(r.cq, &c, 1), 1);
	ck_assert_uint_eq(c.qpn, r.qp->qpn);
	ck_assert_uint_eq(c.qp_slot, r.qp->slot);
	ck_assert_uint_eq(c.queue, UROCE_CQE_SQ);
	ck_assert_uint_eq(c.opcode, UROCE_WC_RDMA_WRITE);
	ck_assert_uint_eq(c.timestamp, r.now);
	ck_assert_uint_eq(c.wqe_index, 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/cq");
	TCase *c = tcase_create("cq");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_cq_holds_as_many_as_it_is_deep);
	tcase_add_test(c, an_overflow_is_an_error_of_the_cq_and_its_qp_once);
	tcase_add_test(c, an_impossible_consumer_index_is_an_overflow_too);
	tcase_add_test(c, an_armed_cq_fires_once);
	tcase_add_test(c, armed_for_solicited_only_solicited_and_errors_fire);
	tcase_add_test(c, an_armed_cq_fires_when_asked_to_and_once);
	tcase_add_test(c, a_completion_says_whether_it_is_solicited);
	tcase_add_test(c, a_cq_in_use_stays);
	tcase_add_test(c, a_taken_number_or_an_odd_depth_is_refused);
	tcase_add_test(c, a_completion_says_which_queue_slot_and_time);
	suite_add_tcase(s, c);
	return s;
}
