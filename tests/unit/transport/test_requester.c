/* SPDX-License-Identifier: BSD-3-Clause */
/* Requester and completer, packet by packet: what leaves, when, and what an answer completes. */
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

#define ACK     0x1f
#define NAK_SEQ 0x60
#define BASE    0xfffffdu

static struct raw r;

static void setup(void)
{
	static const struct raw_conf conf = { .sq_psn = BASE };

	raw_init(&r, &conf);
}

/* The same stage with another window. */
static void start(uint32_t window)
{
	struct raw_conf conf = { .sq_psn = BASE, .window = window };

	raw_free(&r);
	raw_init(&r, &conf);
}

static void teardown(void)
{
	raw_free(&r);
}

/* The i-th packet that left is this one. */
static void is_packet(uint32_t i, uint8_t op, uint32_t psn, uint32_t len)
{
	ck_assert_uint_lt(i, r.n_answers);
	ck_assert_msg(r.answer[i].opcode == op && r.answer[i].psn == (psn & 0xffffff) &&
			      r.answer[i].payload_len == len,
		      "packet %u: op 0x%x psn %06x len %u", i, r.answer[i].opcode, r.answer[i].psn,
		      r.answer[i].payload_len);
}

START_TEST(a_message_is_cut_at_the_mtu)
{
	raw_post(&r, UROCE_WR_WRITE, 0, 3000, 0);
	raw_post(&r, UROCE_WR_SEND_IMM, 8, 1024, UROCE_WQE_SOLICITED);
	raw_post(&r, UROCE_WR_SEND, 16, 0, 0);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 5);
	is_packet(0, BTH_WRITE_FIRST, BASE, 1024);
	is_packet(1, BTH_WRITE_MIDDLE, BASE + 1, 1024);
	is_packet(2, BTH_WRITE_LAST, BASE + 2, 952);
	is_packet(3, BTH_SEND_ONLY_IMM, BASE + 3, 1024);
	is_packet(4, BTH_SEND_ONLY, BASE + 4, 0);
	ck_assert_uint_eq(r.answer[0].va, 0x10000);
	ck_assert_uint_eq(r.answer[0].rkey, 0x77);
	ck_assert_uint_eq(r.answer[0].dma_len, 3000);
	ck_assert_uint_eq(r.answer[3].imm, 0x44332211);
	ck_assert(r.answer[3].solicited && !r.answer[4].solicited && !r.answer[2].solicited);
	ck_assert(!r.answer[0].ack_req && !r.answer[1].ack_req);
	ck_assert(r.answer[2].ack_req && r.answer[3].ack_req && r.answer[4].ack_req);
	ck_assert_mem_eq(r.payload[2], r.mem->mem + 2048, 64);
}
END_TEST

START_TEST(an_atomic_carries_its_operands)
{
	raw_post(&r, UROCE_WR_CMP_SWAP, 0, 8, 0);
	raw_post(&r, UROCE_WR_FETCH_ADD, 8, 8, 0);
	raw_pull(&r);
	is_packet(0, BTH_CMP_SWAP, BASE, 0);
	is_packet(1, BTH_FETCH_ADD, BASE + 1, 0);
	ck_assert_uint_eq(r.answer[0].compare, 3);
	ck_assert_uint_eq(r.answer[0].swap_add, 4);
	ck_assert_uint_eq(r.answer[1].swap_add, 3);
	ck_assert(r.answer[0].ack_req && r.answer[1].ack_req);
}
END_TEST

START_TEST(the_window_bounds_what_flies)
{
	start(8);
	raw_post(&r, UROCE_WR_WRITE, 0, 40 * 1024, 0);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 8);
	raw_clear(&r);
	raw_ack(&r, ACK, BASE + 2);
	ck_assert_uint_eq(r.n_answers, 3);
	is_packet(0, BTH_WRITE_MIDDLE, BASE + 8, 1024);
	raw_clear(&r);
	raw_ack(&r, NAK_SEQ, BASE + 5); /* loss shrinks it, and never beyond the configuration */
	ck_assert_uint_le(r.n_answers, 8);
	is_packet(0, BTH_WRITE_MIDDLE, BASE + 5, 1024);
}
END_TEST

START_TEST(long_messages_ask_for_an_ack_often_enough)
{
	uint32_t since = 0;

	start(4);
	raw_post(&r, UROCE_WR_WRITE, 0, 60 * 1024, 0);
	raw_pull(&r);
	for (uint32_t i = 0; i < r.n_answers; i++)
		since = r.answer[i].ack_req ? 0 : since + 1;
	ck_assert_uint_lt(since, 4); /* or the window would wait for an ACK nobody was asked for */
}
END_TEST

START_TEST(reads_and_atomics_outstanding_are_bounded)
{
	for (uint32_t i = 0; i < 12; i++)
		raw_post(&r, i % 3 ? UROCE_WR_READ : UROCE_WR_FETCH_ADD, 64 * i, 8, 0);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 8); /* max_rd_atomic of the stage */
	raw_clear(&r);
	raw_send(&r, &(struct packet) { .opcode = BTH_ATOMIC_ACK, .psn = BASE, .syndrome = ACK },
		 NULL);
	ck_assert_uint_eq(r.n_answers, 1);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE + 1, 8);
	ck_assert_uint_eq(r.n_answers, 2);
}
END_TEST

START_TEST(a_fence_waits_for_reads_and_atomics)
{
	raw_post(&r, UROCE_WR_READ, 0, 8, 0);
	raw_post(&r, UROCE_WR_WRITE, 8, 8, 0);
	raw_post(&r, UROCE_WR_WRITE, 16, 8, UROCE_WQE_FENCE);
	raw_post(&r, UROCE_WR_WRITE, 24, 8, 0);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 2);
	is_packet(1, BTH_WRITE_ONLY, BASE + 1, 8);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE, 8);
	ck_assert_uint_eq(r.n_answers, 4);
}
END_TEST

START_TEST(one_ack_completes_all_before_it)
{
	for (uint32_t i = 0; i < 4; i++)
		raw_post(&r, UROCE_WR_WRITE, i, 8, 0);
	raw_pull(&r);
	raw_ack(&r, ACK, BASE + 2);
	for (uint32_t i = 0; i < 3; i++)
		raw_expect_cqe(&r, i, UROCE_WC_SUCCESS);
	raw_expect_no_cqe(&r);
	raw_ack(&r, ACK, BASE + 3);
	raw_expect_cqe(&r, 3, UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(an_ack_inside_a_message_completes_nothing)
{
	raw_post(&r, UROCE_WR_WRITE, 0, 3000, 0);
	raw_pull(&r);
	raw_ack(&r, ACK, BASE + 1);
	raw_expect_no_cqe(&r);
	raw_clear(&r);
	raw_ack(&r, NAK_SEQ, BASE + 2);
	ck_assert_uint_eq(r.n_answers, 1);
	is_packet(0, BTH_WRITE_LAST, BASE + 2, 952);
}
END_TEST

/* Answers from outside [una, sent) are ghosts: IBA 9.7.5.1. */
static const uint32_t ghosts[] = { BASE - 1, BASE - 1000, BASE + 3, BASE + 0x400000 };

START_TEST(ghosts_change_nothing)
{
	raw_post(&r, UROCE_WR_WRITE, 0, 3000, 0);
	raw_pull(&r);
	raw_clear(&r);
	raw_ack(&r, ACK, ghosts[_i]);
	raw_ack(&r, NAK_SEQ, ghosts[_i]);
	raw_ack(&r, 0x62, ghosts[_i]);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, ghosts[_i], 8);
	raw_expect_no_cqe(&r);
	raw_expect_none(&r);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
	raw_ack(&r, ACK, BASE + 2);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(an_ack_behind_a_read_is_an_implied_nak)
{
	raw_post(&r, UROCE_WR_READ, 0, 2000, 0);
	raw_post(&r, UROCE_WR_WRITE, 4096, 8, 0);
	raw_pull(&r);
	raw_clear(&r);
	raw_ack(&r, ACK, BASE + 2);
	raw_expect_no_cqe(&r);
	ck_assert_uint_eq(r.n_answers, 1); /* the WRITE is acknowledged, only the data is missing */
	is_packet(0, BTH_READ_REQUEST, BASE, 0);
	ck_assert_uint_eq(r.answer[0].dma_len, 2000);
	raw_read_resp(&r, BTH_READ_RESP_FIRST, BASE, 1024);
	raw_expect_no_cqe(&r);
	raw_read_resp(&r, BTH_READ_RESP_LAST, BASE + 1, 976);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	raw_expect_cqe(&r, 4096, UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(a_read_answered_in_part_asks_for_the_rest)
{
	raw_post(&r, UROCE_WR_READ, 0, 5000, 0);
	raw_pull(&r);
	raw_clear(&r);
	raw_read_resp(&r, BTH_READ_RESP_FIRST, BASE, 1024);
	raw_read_resp(&r, BTH_READ_RESP_MIDDLE, BASE + 1, 1024);
	raw_read_resp(&r, BTH_READ_RESP_MIDDLE, BASE + 3, 1024);
	ck_assert_uint_eq(r.n_answers, 1);
	is_packet(0, BTH_READ_REQUEST, BASE + 2, 0);
	ck_assert_uint_eq(r.answer[0].va, 0x10000 + 2048);
	ck_assert_uint_eq(r.answer[0].dma_len, 1024);
	/* The answer is an ONLY, or goes on with LAST as Linux rxe does: both are right. */
	raw_read_resp(&r, _i ? BTH_READ_RESP_ONLY : BTH_READ_RESP_LAST, BASE + 2, 1024);
	raw_expect_no_cqe(&r);
	raw_read_resp(&r, BTH_READ_RESP_LAST, BASE + 4, 904);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
}
END_TEST

/* As Linux rxe: it ends the answer that has the gap before it looks at what is asked for anew. */
START_TEST(a_gap_in_a_long_answer_is_asked_for_once)
{
	const uint32_t n = 40;

	raw_post(&r, UROCE_WR_WRITE, 1, 8, 0);
	raw_pull(&r);
	r.now += 10000; /* a round trip is known from here on */
	raw_ack(&r, ACK, BASE);
	raw_expect_cqe(&r, 1, UROCE_WC_SUCCESS);
	raw_post(&r, UROCE_WR_READ, 0, n * 1024, 0);
	raw_pull(&r);
	raw_clear(&r);
	raw_read_resp(&r, BTH_READ_RESP_FIRST, BASE + 1, 1024);
	for (uint32_t i = 2; i < n; i++) {
		r.now += 1000000; /* many round trips */
		raw_read_resp(&r, i + 1 < n ? BTH_READ_RESP_MIDDLE : BTH_READ_RESP_LAST,
			      BASE + 1 + i, 1024);
	}
	ck_assert_uint_eq(r.n_answers, 1);
	is_packet(0, BTH_READ_REQUEST, BASE + 2, 0);
	for (uint32_t i = 1; i < n; i++)
		raw_read_resp(&r, i + 1 < n ? BTH_READ_RESP_MIDDLE : BTH_READ_RESP_LAST,
			      BASE + 1 + i, 1024);
	ck_assert_uint_eq(r.n_answers, 1);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
}
END_TEST

static const struct {
	uint8_t op;
	uint32_t len;
} misfits[] = { { BTH_READ_RESP_FIRST, 1000 }, { BTH_READ_RESP_ONLY, 1024 },
		{ BTH_READ_RESP_LAST, 976 },   { BTH_READ_RESP_FIRST, 0 },
		{ BTH_READ_RESP_FIRST, 1028 }, { BTH_READ_RESP_ONLY, 2000 } };

START_TEST(a_response_of_the_wrong_size_is_a_bad_response)
{
	memset(r.mem->mem, 0x42, 8192);
	raw_post(&r, UROCE_WR_READ, 0, 2000, 0);
	raw_pull(&r);
	raw_read_resp(&r, misfits[_i].op, BASE, misfits[_i].len);
	raw_expect_cqe(&r, 0, UROCE_WC_BAD_RESP_ERR);
	for (uint32_t i = 0; i < 8192; i++)
		ck_assert_uint_eq(r.mem->mem[i], 0x42);
}
END_TEST

START_TEST(an_atomic_answer_to_a_read_is_none)
{
	raw_post(&r, UROCE_WR_READ, 0, 8, 0);
	raw_pull(&r);
	raw_send(&r, &(struct packet) { .opcode = BTH_ATOMIC_ACK, .psn = BASE, .syndrome = ACK },
		 NULL);
	raw_expect_no_cqe(&r);
	ck_assert_uint_eq(r.dev.mem.n_writes, 0);
}
END_TEST

START_TEST(a_nak_goes_back_to_its_psn_and_once)
{
	raw_post(&r, UROCE_WR_WRITE, 1, 8, 0);
	raw_pull(&r);
	r.now += 10000; /* a round trip is known from here on */
	raw_ack(&r, ACK, BASE);
	raw_post(&r, UROCE_WR_WRITE, 0, 5000, 0);
	raw_pull(&r);
	raw_clear(&r);
	r.now += 10000;
	raw_ack(&r, NAK_SEQ, BASE + 3);
	ck_assert_uint_eq(r.n_answers, 3);
	is_packet(0, BTH_WRITE_MIDDLE, BASE + 3, 1024);
	raw_clear(&r);
	for (unsigned i = 0; i < 5; i++)
		raw_ack(&r, NAK_SEQ, BASE + 3);
	raw_expect_none(&r);
}
END_TEST

START_TEST(an_sge_list_that_changes_after_the_post_is_a_protection_error)
{
	struct uroce_sge *sge;

	start(4);
	raw_post(&r, UROCE_WR_WRITE, 0, 10 * 1024, 0);
	raw_pull(&r);
	sge = (struct uroce_sge *)(r.qp->sq + sizeof(struct uroce_wqe));
	sge->length = 50000;
	raw_ack(&r, ACK, BASE + 3);
	raw_expect_cqe(&r, 0, UROCE_WC_LOC_PROT_ERR);
}
END_TEST

START_TEST(unsignaled_work_that_succeeds_is_silent)
{
	struct fake_wr wr = { .wr_id = 9, .opcode = UROCE_WR_WRITE };

	ck_assert(fake_post_send(r.qp, &wr));
	raw_post(&r, UROCE_WR_WRITE, 3, 8, 0);
	raw_pull(&r);
	raw_ack(&r, ACK, BASE + 1);
	raw_expect_cqe(&r, 3, UROCE_WC_SUCCESS);
	raw_expect_no_cqe(&r);
}
END_TEST

START_TEST(with_sq_sig_all_everything_completes)
{
	static const struct raw_conf conf = { .sq_psn = BASE, .sq_sig_all = 1 };
	struct fake_wr wr = { .wr_id = 9, .opcode = UROCE_WR_WRITE };

	raw_free(&r);
	raw_init(&r, &conf);
	ck_assert(fake_post_send(r.qp, &wr));
	raw_pull(&r);
	raw_ack(&r, ACK, BASE);
	raw_expect_cqe(&r, 9, UROCE_WC_SUCCESS);
}
END_TEST

/* SQD (IBA 10.3.1.5): what was begun is finished, nothing is begun, and an event tells when. */
START_TEST(a_draining_queue_finishes_and_begins_nothing)
{
	struct uroce_qp_attr a = { .qp_state = UROCE_QPS_SQD, .en_sqd_async_notify = 1 };

	raw_post(&r, UROCE_WR_WRITE, 0, 3000, 0);
	raw_pull(&r);
	ck_assert_int_eq(fake_qp_modify(r.qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL),
			 0);
	raw_post(&r, UROCE_WR_WRITE, 4096, 8, 0);
	raw_clear(&r);
	raw_pull(&r);
	raw_expect_none(&r);
	ck_assert_uint_eq(fake_events(&r.dev, UROCE_EVENT_SQ_DRAINED, r.qp->qpn), 0);
	raw_ack(&r, NAK_SEQ, BASE + 1); /* repeats are part of finishing */
	ck_assert_uint_eq(r.n_answers, 2);
	raw_ack(&r, ACK, BASE + 2);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(fake_events(&r.dev, UROCE_EVENT_SQ_DRAINED, r.qp->qpn), 1);
	raw_clear(&r);
	ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_RTS), 0);
	raw_pull(&r);
	is_packet(0, BTH_WRITE_ONLY, BASE + 3, 8);
}
END_TEST

START_TEST(reserved_syndromes_are_dropped)
{
	raw_post(&r, UROCE_WR_WRITE, 0, 8, 0);
	raw_pull(&r);
	raw_clear(&r);
	raw_ack(&r, 0x40, BASE);
	raw_ack(&r, 0x64 + (uint8_t)_i, BASE);
	raw_expect_no_cqe(&r);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

/* A ring index that jumps is a broken process: that QP fails, with an event, and nothing else. */
START_TEST(an_impossible_ring_index_fails_the_qp)
{
	__atomic_store_n(&r.qp->page->sq.prod, 5000, __ATOMIC_RELAXED);
	r.qp->rung = true;
	raw_pull(&r);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
	ck_assert_uint_eq(fake_events(&r.dev, UROCE_EVENT_QP_FATAL, r.qp->qpn), 1);
	raw_expect_none(&r);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/requester");
	TCase *c = tcase_create("requester");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_message_is_cut_at_the_mtu);
	tcase_add_test(c, an_atomic_carries_its_operands);
	tcase_add_test(c, the_window_bounds_what_flies);
	tcase_add_test(c, long_messages_ask_for_an_ack_often_enough);
	tcase_add_test(c, reads_and_atomics_outstanding_are_bounded);
	tcase_add_test(c, a_fence_waits_for_reads_and_atomics);
	tcase_add_test(c, one_ack_completes_all_before_it);
	tcase_add_test(c, an_ack_inside_a_message_completes_nothing);
	tcase_add_loop_test(c, ghosts_change_nothing, 0, 4);
	tcase_add_test(c, an_ack_behind_a_read_is_an_implied_nak);
	tcase_add_loop_test(c, a_read_answered_in_part_asks_for_the_rest, 0, 2);
	tcase_add_test(c, a_gap_in_a_long_answer_is_asked_for_once);
	tcase_add_loop_test(c, a_response_of_the_wrong_size_is_a_bad_response, 0, 6);
	tcase_add_test(c, an_atomic_answer_to_a_read_is_none);
	tcase_add_test(c, a_nak_goes_back_to_its_psn_and_once);
	tcase_add_test(c, an_sge_list_that_changes_after_the_post_is_a_protection_error);
	tcase_add_test(c, unsignaled_work_that_succeeds_is_silent);
	tcase_add_test(c, with_sq_sig_all_everything_completes);
	tcase_add_test(c, a_draining_queue_finishes_and_begins_nothing);
	tcase_add_loop_test(c, reserved_syndromes_are_dropped, 0, 28);
	tcase_add_test(c, an_impossible_ring_index_fails_the_qp);
	suite_add_tcase(s, c);
	return s;
}
