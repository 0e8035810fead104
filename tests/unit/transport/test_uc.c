/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections: no answers, no repeats; a gap costs the message it falls into (9.8.2). */
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

#define BASE   0xfffffeu
#define OP(op) (BTH_UC | (op))

static struct raw r;

static void setup(void)
{
	static const struct raw_conf conf = { .type = UROCE_QPT_UC,
					      .rq_psn = BASE,
					      .sq_psn = BASE };

	raw_init(&r, &conf);
}

static void teardown(void)
{
	raw_free(&r);
}

static void recv_at(uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct uroce_sge sge = fake_sge(r.mem, off, len);

	ck_assert(fake_post_recv(r.qp, wr_id, &sge, 1));
}

START_TEST(a_send_is_complete_when_it_has_left)
{
	raw_post(&r, UROCE_WR_SEND, 0, 3000, 0);
	raw_post(&r, UROCE_WR_WRITE, 8, 10, 0);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 4);
	ck_assert_uint_eq(r.answer[0].opcode, OP(BTH_SEND_FIRST));
	ck_assert_uint_eq(r.answer[2].opcode, OP(BTH_SEND_LAST));
	ck_assert_uint_eq(r.answer[3].opcode, OP(BTH_WRITE_ONLY));
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(r.answer[i].psn, (BASE + i) & 0xffffff);
		ck_assert(!r.answer[i].ack_req);
	}
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	raw_expect_cqe(&r, 8, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(engine_deadline(r.dev.engine), UINT64_MAX);
}
END_TEST

START_TEST(nothing_is_ever_answered)
{
	recv_at(1, 0, 64);
	raw_op(&r, OP(BTH_SEND_ONLY), BASE, 10);
	raw_write(&r, OP(BTH_WRITE_ONLY), BASE + 1, 100, 8, 8);
	raw_write(&r, OP(BTH_WRITE_ONLY), BASE + 9, 100, 8, 8);
	raw_write(&r, OP(BTH_WRITE_ONLY), BASE + 10, 1 << 20, 8, 8);
	raw_op(&r, OP(BTH_SEND_ONLY), BASE + 11, 10);
	raw_expect_none(&r);
	raw_expect_cqe(&r, 1, UROCE_WC_SUCCESS);
	raw_expect_no_cqe(&r);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

/* The receive that a broken message held serves the next whole one. */
START_TEST(a_message_with_a_gap_is_lost_and_its_receive_is_not)
{
	recv_at(1, 0, 4096);
	raw_op(&r, OP(BTH_SEND_FIRST), BASE, 1024);
	raw_op(&r, OP(BTH_SEND_LAST), BASE + 2, 100);
	raw_expect_no_cqe(&r);
	raw_op(&r, OP(BTH_SEND_FIRST), BASE + 3, 1024);
	raw_op(&r, OP(BTH_SEND_LAST), BASE + 4, 100);
	raw_expect_cqe(&r, 1, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(r.mem->mem[1024], (uint8_t)((BASE + 4) & 0xffffff));
}
END_TEST

START_TEST(a_first_inside_a_message_begins_a_new_one)
{
	recv_at(1, 0, 4096);
	raw_op(&r, OP(BTH_SEND_FIRST), BASE, 1024);
	raw_op(&r, OP(BTH_SEND_ONLY), BASE + 1, 7);
	raw_expect_cqe(&r, 1, UROCE_WC_SUCCESS);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

START_TEST(a_middle_without_a_first_is_dropped)
{
	recv_at(1, 0, 4096);
	raw_op(&r, OP(BTH_SEND_MIDDLE), BASE, 1024);
	raw_op(&r, OP(BTH_SEND_LAST), BASE + 1, 10);
	raw_write(&r, OP(BTH_WRITE_LAST), BASE + 2, 0, 0, 10);
	raw_expect_no_cqe(&r);
	ck_assert_uint_eq(r.dev.mem.n_writes, 0);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

START_TEST(a_receive_too_short_stops_the_qp)
{
	recv_at(1, 0, 8);
	recv_at(2, 64, 64);
	raw_op(&r, OP(BTH_SEND_ONLY), BASE, 10);
	raw_expect_cqe(&r, 1, UROCE_WC_LOC_LEN_ERR);
	raw_expect_cqe(&r, 2, UROCE_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
}
END_TEST

/* SQE (10.3.1.7): the SQ stops and is flushed, the RQ goes on, and RTS begins anew. */
START_TEST(a_bad_send_stops_the_send_queue_alone)
{
	struct fake_wr bad = {
		.wr_id = 5, .opcode = UROCE_WR_SEND, .n_sge = 1, .sge = { { 1, 1, 1 } }
	};

	ck_assert(fake_post_send(r.qp, &bad));
	raw_post(&r, UROCE_WR_SEND, 6, 8, 0);
	raw_pull(&r);
	raw_expect_cqe(&r, 5, UROCE_WC_LOC_PROT_ERR);
	raw_expect_cqe(&r, 6, UROCE_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_SQE);
	raw_expect_none(&r);
	recv_at(1, 0, 64);
	raw_op(&r, OP(BTH_SEND_ONLY), BASE, 10);
	raw_expect_cqe(&r, 1, UROCE_WC_SUCCESS);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_RTS), 0);
	raw_post(&r, UROCE_WR_SEND, 7, 8, 0);
	raw_pull(&r);
	raw_expect_cqe(&r, 7, UROCE_WC_SUCCESS);
}
END_TEST

static const uint8_t unknown[] = { UROCE_WR_READ, UROCE_WR_FETCH_ADD, UROCE_WR_CMP_SWAP };

START_TEST(reads_and_atomics_are_no_work_for_it)
{
	raw_post(&r, unknown[_i], 0, 8, 0);
	raw_pull(&r);
	raw_expect_cqe(&r, 0, UROCE_WC_LOC_QP_OP_ERR);
	raw_expect_none(&r);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/uc");
	TCase *c = tcase_create("uc");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_send_is_complete_when_it_has_left);
	tcase_add_test(c, nothing_is_ever_answered);
	tcase_add_test(c, a_message_with_a_gap_is_lost_and_its_receive_is_not);
	tcase_add_test(c, a_first_inside_a_message_begins_a_new_one);
	tcase_add_test(c, a_middle_without_a_first_is_dropped);
	tcase_add_test(c, a_receive_too_short_stops_the_qp);
	tcase_add_test(c, a_bad_send_stops_the_send_queue_alone);
	tcase_add_loop_test(c, reads_and_atomics_are_no_work_for_it, 0, 3);
	suite_add_tcase(s, c);
	return s;
}
