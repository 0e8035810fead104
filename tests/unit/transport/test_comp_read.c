/* SPDX-License-Identifier: BSD-3-Clause */
/* READ responses beyond a gap: kept where they belong, and only what is missing is asked for. */
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

#define BASE 0xfffffau
#define MTU  1024u

static struct raw r;

static void setup(void)
{
	static const struct raw_conf conf = { .sq_psn = BASE };

	raw_init(&r, &conf);
}

static void teardown(void)
{
	raw_free(&r);
}

static void post_read(uint32_t off, uint32_t packets)
{
	raw_post(&r, UROCE_WR_READ, off, packets * MTU, 0);
	raw_pull(&r);
	raw_clear(&r);
}

/* Response i of a READ of n packets whose first PSN is psn. */
static void answer(uint32_t psn, uint32_t i, uint32_t n)
{
	raw_read_resp(&r,
		      n == 1       ? BTH_READ_RESP_ONLY
		      : !i         ? BTH_READ_RESP_FIRST
		      : i + 1 == n ? BTH_READ_RESP_LAST
				   : BTH_READ_RESP_MIDDLE,
		      psn + i, MTU);
}

/* The i-th request that left asks for n packets from the one numbered from on. */
static void asks(uint32_t i, uint32_t psn, uint32_t from, uint32_t n)
{
	ck_assert_uint_lt(i, r.n_answers);
	ck_assert_uint_eq(r.answer[i].opcode, BTH_READ_REQUEST);
	ck_assert_uint_eq(r.answer[i].psn, psn & BTH_PSN_MASK);
	ck_assert_uint_eq(r.answer[i].va, 0x10000 + from * MTU);
	ck_assert_uint_eq(r.answer[i].dma_len, n * MTU);
}

START_TEST(one_missing_packet_is_all_that_comes_again)
{
	post_read(0, 20);
	for (uint32_t i = 0; i < 20; i++)
		if (i != 7)
			answer(BASE, i, 20);
	ck_assert_uint_eq(r.n_answers, 1);
	asks(0, BASE + 7, 7, 1);
	raw_expect_no_cqe(&r);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE + 7, MTU);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(r.n_answers, 1);
}
END_TEST

START_TEST(several_gaps_take_two_requests)
{
	post_read(0, 20);
	for (uint32_t i = 0; i < 20; i++)
		if (i != 3 && i != 8 && i != 9 && i != 15)
			answer(BASE, i, 20);
	ck_assert_uint_eq(r.n_answers, 1);
	asks(0, BASE + 3, 3, 1);
	raw_clear(&r);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE + 3, MTU);
	ck_assert_uint_eq(r.n_answers, 1);
	asks(0, BASE + 8, 8, 8); /* through the last that is missing */
	for (uint32_t i = 0; i < 8; i++)
		answer(BASE + 8, i, 8);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	raw_expect_no_cqe(&r);
}
END_TEST

START_TEST(a_later_read_is_kept_and_completes_in_its_turn)
{
	post_read(0, 4);
	post_read(8192, 3);
	raw_post(&r, UROCE_WR_WRITE, 1, 8, 0);
	raw_post(&r, UROCE_WR_READ, 16384, MTU, 0);
	raw_pull(&r);
	raw_clear(&r);
	answer(BASE, 0, 4);
	answer(BASE, 2, 4);
	for (uint32_t i = 0; i < 3; i++)
		answer(BASE + 4, i, 3);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE + 8, MTU);
	raw_expect_no_cqe(&r);
	ck_assert_uint_eq(r.n_answers, 1);
	raw_clear(&r);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE + 1, MTU);
	asks(0, BASE + 3, 3, 1); /* it is known by now that the last one is missing as well */
	raw_expect_no_cqe(&r);
	raw_read_resp(&r, BTH_READ_RESP_LAST, BASE + 3, MTU);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	raw_expect_cqe(&r, 8192, UROCE_WC_SUCCESS);
	raw_expect_cqe(&r, 1, UROCE_WC_SUCCESS); /* answers from behind it have come */
	raw_expect_cqe(&r, 16384, UROCE_WC_SUCCESS);
}
END_TEST

/* What does not look as it must at its place is not kept, and harms nobody before its turn. */
static const struct {
	uint8_t op;
	uint32_t len;
} odd[] = { { BTH_READ_RESP_LAST, MTU },
	    { BTH_READ_RESP_ONLY, MTU },
	    { BTH_READ_RESP_MIDDLE, MTU - 4 },
	    { BTH_READ_RESP_MIDDLE, 0 },
	    { BTH_ATOMIC_ACK, 0 } };

START_TEST(an_odd_response_beyond_a_gap_is_dropped)
{
	post_read(0, 8);
	answer(BASE, 0, 8);
	raw_read_resp(&r, odd[_i].op, BASE + 4, odd[_i].len);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
	raw_clear(&r);
	for (uint32_t i = 1; i < 8; i++) {
		raw_expect_no_cqe(&r);
		if (i != 4)
			answer(BASE, i, 8);
	}
	raw_expect_no_cqe(&r);
	answer(BASE, 4, 8);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
}
END_TEST

/* A LAST in the middle ends a part that was asked for, or it is a bad response. */
START_TEST(a_last_that_ends_nothing_is_a_bad_response)
{
	post_read(0, 8);
	answer(BASE, 0, 8);
	answer(BASE, 2, 8);
	raw_read_resp(&r, BTH_READ_RESP_LAST, BASE + 1, MTU);
	raw_expect_no_cqe(&r);
	raw_read_resp(&r, BTH_READ_RESP_LAST, BASE + 3, MTU);
	raw_expect_cqe(&r, 0, UROCE_WC_BAD_RESP_ERR);
}
END_TEST

START_TEST(beyond_what_can_be_kept_nothing_is)
{
	static const struct raw_conf conf = { .sq_psn = BASE, .mem = 8u << 20 };

	raw_free(&r);
	raw_init(&r, &conf);
	post_read(0, 5000);
	answer(BASE, 4100, 5000);
	raw_clear(&r);
	for (uint32_t i = 0; i < 5000; i++)
		if (i != 4)
			answer(BASE, i, 5000);
	raw_expect_no_cqe(&r);
	asks(0, BASE + 4, 4, 1);
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE + 4, MTU);
	raw_expect_no_cqe(&r); /* the last ones are further away than it can remember */
	for (uint32_t i = 4100; i < 5000; i++)
		answer(BASE, i, 5000);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(what_was_kept_once_is_not_kept_for_ever)
{
	static const struct raw_conf conf = { .sq_psn = BASE, .mem = 8u << 20 };

	raw_free(&r);
	raw_init(&r, &conf);
	post_read(0, 4200);
	answer(BASE, 0, 4200);
	answer(BASE, 2, 4200);
	for (uint32_t i = 1; i < 4200; i++)
		if (i != 4097 && i != 4098)
			answer(BASE, i, 4200);
	raw_expect_no_cqe(&r);
	raw_read_resp(&r, BTH_READ_RESP_FIRST, BASE + 4097, MTU);
	raw_expect_no_cqe(&r);
	raw_read_resp(&r, BTH_READ_RESP_LAST, BASE + 4098, MTU);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(lost_again_is_asked_for_again)
{
	post_read(0, 20);
	r.now += 10000;
	answer(BASE, 0, 20);
	answer(BASE, 1, 20);
	for (uint32_t i = 3; i < 10; i++)
		if (i != 5)
			answer(BASE, i, 20);
	asks(0, BASE + 2, 2, 1);
	r.now += 10000;
	raw_read_resp(&r, BTH_READ_RESP_ONLY, BASE + 2, MTU);
	asks(1, BASE + 5, 5, 1);
	answer(BASE, 10, 20);
	answer(BASE, 12, 20);
	ck_assert_uint_eq(r.n_answers, 2); /* is under way */
	r.now += 10000;
	answer(BASE + 2, 6, 10); /* a repeat that lacks it once more */
	ck_assert_uint_eq(r.n_answers, 3);
	asks(2, BASE + 5, 5, 7);
}
END_TEST

/* A READ whose buffer cannot be written fails in its turn, not before the one it overtook. */
START_TEST(what_cannot_be_written_waits_for_its_turn)
{
	struct fake_region *gone = fake_reg(&r.dev, 4096, UROCE_ACCESS_LOCAL_WRITE);
	struct fake_wr wr = { .wr_id = 77,
			      .opcode = UROCE_WR_READ,
			      .flags = UROCE_WQE_SIGNALED,
			      .remote_addr = 0x10000,
			      .rkey = 0x77,
			      .n_sge = 1,
			      .sge = { fake_sge(gone, 0, MTU) } };

	post_read(0, 2);
	ck_assert(fake_post_send(r.qp, &wr));
	raw_pull(&r);
	gone->broken = true;
	answer(BASE, 0, 2);
	answer(BASE + 2, 0, 1);
	raw_expect_no_cqe(&r);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
	raw_read_resp(&r, BTH_READ_RESP_LAST, BASE + 1, MTU);
	raw_expect_cqe(&r, 0, UROCE_WC_SUCCESS);
	raw_expect_no_cqe(&r);
	answer(BASE + 2, 0, 1);
	raw_expect_cqe(&r, 77, UROCE_WC_LOC_PROT_ERR);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("comp_read");
	TCase *c = tcase_create("comp_read");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, one_missing_packet_is_all_that_comes_again);
	tcase_add_test(c, several_gaps_take_two_requests);
	tcase_add_test(c, a_later_read_is_kept_and_completes_in_its_turn);
	tcase_add_loop_test(c, an_odd_response_beyond_a_gap_is_dropped, 0, 5);
	tcase_add_test(c, a_last_that_ends_nothing_is_a_bad_response);
	tcase_add_test(c, beyond_what_can_be_kept_nothing_is);
	tcase_add_test(c, what_was_kept_once_is_not_kept_for_ever);
	tcase_add_test(c, lost_again_is_asked_for_again);
	tcase_add_test(c, what_cannot_be_written_waits_for_its_turn);
	suite_add_tcase(s, c);
	return s;
}
