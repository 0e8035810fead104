/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement: many messages by one call of the memory port, and what happens when one fails. */
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/frame_make.h"
#include "tests/support/raw.h"

#define ACK      0x1f
#define NAK_ACC  0x62
#define NAK_OP   0x63
#define BASE     0xfffffeu
#define LEN      40u
#define MAX_HELD 48u

static struct raw r;
static struct fake_region *bad;
static uint8_t bytes[MAX_HELD][256];
static struct frame held[MAX_HELD];
static unsigned n_held;
static uint32_t cqes_at_write; /* completions there were when data was written */

static void setup(void)
{
	static const struct raw_conf conf = { .rq_psn = BASE };

	raw_init(&r, &conf);
	bad = fake_reg(&r.dev, 4096, 0xf);
	bad->broken = true;
	n_held = 0;
}

static void teardown(void)
{
	raw_free(&r);
}

/* Keeps a packet for the next burst. */
static void hold(struct packet pk)
{
	const struct frame *f;

	pk.dest_qpn = r.qp->qpn;
	pk.pkey = 0xffff;
	pk.ack_req = true;
	pk.psn &= BTH_PSN_MASK;
	ck_assert_uint_lt(n_held, MAX_HELD);
	f = pktgen_frame(&r.gen, &pk, NULL);
	held[n_held] = frame_flat(bytes[n_held], frame_bytes(f, bytes[n_held]));
	n_held++;
}

static void hold_write(const struct fake_region *to, uint32_t psn, uint64_t off)
{
	hold((struct packet){ .opcode = BTH_WRITE_ONLY,
			      .psn = psn,
			      .va = to->iova + off,
			      .rkey = to->key,
			      .dma_len = LEN,
			      .payload_len = LEN });
}

static void hold_send(uint32_t psn)
{
	hold((struct packet){ .opcode = BTH_SEND_ONLY, .psn = psn, .payload_len = LEN });
}

static void burst(void)
{
	const struct frame *f[MAX_HELD];

	for (unsigned i = 0; i < n_held; i++)
		f[i] = &held[i];
	r.dev.now = r.now;
	r.dev.mem.n_writes = 0;
	engine_rx(r.dev.engine, r.now, f, n_held);
	n_held = 0;
}

static void recv_into(const struct fake_region *to, uint64_t wr_id, uint64_t off)
{
	struct uroce_sge sge = fake_sge(to, off, LEN);

	ck_assert(fake_post_recv(r.qp, wr_id, &sge, 1));
}

static bool is_placed(const struct fake_region *to, uint32_t psn, uint64_t off)
{
	for (uint32_t i = 0; i < LEN; i++)
		if (to->mem[off + i] != (uint8_t)(i * 13 + (psn & BTH_PSN_MASK)))
			return false;
	return true;
}

static void expect_cqe(uint64_t wr_id, uint8_t status)
{
	struct uroce_cqe c;

	ck_assert_int_eq(fake_poll(r.cq, &c, 1), 1);
	ck_assert_uint_eq(c.wr_id, wr_id);
	ck_assert_uint_eq(c.status, status);
}

static void note_write(void *ctx, const struct fake_region *to, uint64_t off, const uint8_t *p,
		       uint64_t n)
{
	(void)ctx;
	(void)to;
	(void)off;
	(void)p;
	(void)n;
	cqes_at_write = r.cq->ring->prod;
}

START_TEST(writes_of_one_burst_are_one_call_and_one_ack)
{
	for (uint32_t i = 0; i < 20; i++)
		hold_write(r.mem, BASE + i, 100 + i * 128);
	burst();
	ck_assert_uint_eq(r.dev.mem.n_writes, 1);
	for (uint32_t i = 0; i < 20; i++)
		ck_assert(is_placed(r.mem, BASE + i, 100 + i * 128));
	raw_pull(&r);
	raw_expect_ack(&r, ACK, (BASE + 19) & BTH_PSN_MASK, 20);
}
END_TEST

/* More than a batch takes is several calls, and nothing is lost. */
START_TEST(a_full_batch_is_written_and_another_begun)
{
	for (uint32_t i = 0; i < MAX_HELD; i++)
		hold_write(r.mem, BASE + i, i * 64);
	burst();
	ck_assert_uint_eq(r.dev.mem.n_writes, 2);
	for (uint32_t i = 0; i < MAX_HELD; i++)
		ck_assert(is_placed(r.mem, BASE + i, i * 64));
}
END_TEST

START_TEST(receives_complete_in_order_after_their_data)
{
	cqes_at_write = UINT32_MAX;
	r.dev.mem.on_write = note_write;
	for (uint32_t i = 0; i < 8; i++) {
		recv_into(r.mem, i, i * 64);
		hold_send(BASE + i);
	}
	burst();
	ck_assert_uint_eq(r.dev.mem.n_writes, 1);
	ck_assert_uint_eq(cqes_at_write, 0);
	for (uint32_t i = 0; i < 8; i++) {
		expect_cqe(i, UROCE_WC_SUCCESS);
		ck_assert(is_placed(r.mem, BASE + i, i * 64));
	}
}
END_TEST

/* A SEND without data completes behind those before it. */
START_TEST(an_empty_message_does_not_overtake)
{
	for (uint32_t i = 0; i < 4; i++)
		recv_into(r.mem, i, i * 64);
	hold_send(BASE);
	hold((struct packet){ .opcode = BTH_SEND_ONLY, .psn = BASE + 1 });
	hold((struct packet){ .opcode = BTH_SEND_ONLY, .psn = BASE + 2 });
	hold_send(BASE + 3);
	burst();
	for (uint32_t i = 0; i < 4; i++)
		expect_cqe(i, UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(a_write_that_fails_takes_back_what_was_said_of_it)
{
	hold_write(r.mem, BASE, 0);
	hold_write(bad, BASE + 1, 0);
	hold_write(r.mem, BASE + 2, 1000);
	burst();
	ck_assert(is_placed(r.mem, BASE, 0));
	ck_assert(!is_placed(r.mem, BASE + 2, 1000));
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 1);
	ck_assert_uint_eq(r.answer[0].syndrome, NAK_ACC);
	ck_assert_uint_eq(r.answer[0].psn, BASE + 1);
}
END_TEST

START_TEST(a_read_behind_a_failed_write_is_not_answered)
{
	hold_write(bad, BASE, 0);
	hold((struct packet){ .opcode = BTH_READ_REQUEST,
			      .psn = BASE + 1,
			      .va = r.mem->iova,
			      .rkey = r.mem->key,
			      .dma_len = 8 });
	burst();
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 1);
	ck_assert_uint_eq(r.answer[0].syndrome, NAK_ACC);
	ck_assert_uint_eq(r.answer[0].psn, BASE);
}
END_TEST

START_TEST(a_receive_that_fails_flushes_those_behind_it)
{
	recv_into(r.mem, 1, 0);
	recv_into(bad, 2, 0);
	recv_into(r.mem, 3, 1000);
	recv_into(r.mem, 4, 2000);
	for (uint32_t i = 0; i < 3; i++)
		hold_send(BASE + i);
	burst();
	expect_cqe(1, UROCE_WC_SUCCESS);
	expect_cqe(2, UROCE_WC_LOC_PROT_ERR);
	expect_cqe(3, UROCE_WC_WR_FLUSH_ERR);
	expect_cqe(4, UROCE_WC_WR_FLUSH_ERR);
	ck_assert(is_placed(r.mem, BASE, 0));
	ck_assert(!is_placed(r.mem, BASE + 2, 1000));
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 1);
	ck_assert_uint_eq(r.answer[0].syndrome, NAK_OP);
	ck_assert_uint_eq(r.answer[0].psn, BASE + 1);
}
END_TEST

/* What arrived whole before a bad request is in place, and its receive completes. */
START_TEST(an_error_later_in_the_burst_spoils_nothing_before_it)
{
	recv_into(r.mem, 1, 0);
	recv_into(r.mem, 2, 500);
	hold_send(BASE);
	hold_write(r.mem, BASE + 1, 1u << 20); /* out of bounds */
	burst();
	expect_cqe(1, UROCE_WC_SUCCESS);
	expect_cqe(2, UROCE_WC_WR_FLUSH_ERR);
	ck_assert(is_placed(r.mem, BASE, 0));
	raw_pull(&r);
	ck_assert_uint_eq(r.answer[r.n_answers - 1].syndrome, NAK_ACC);
	ck_assert_uint_eq(r.answer[r.n_answers - 1].psn, BASE + 1);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("place");
	TCase *tc = tcase_create("place");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, writes_of_one_burst_are_one_call_and_one_ack);
	tcase_add_test(tc, a_full_batch_is_written_and_another_begun);
	tcase_add_test(tc, receives_complete_in_order_after_their_data);
	tcase_add_test(tc, an_empty_message_does_not_overtake);
	tcase_add_test(tc, a_write_that_fails_takes_back_what_was_said_of_it);
	tcase_add_test(tc, a_read_behind_a_failed_write_is_not_answered);
	tcase_add_test(tc, a_receive_that_fails_flushes_those_behind_it);
	tcase_add_test(tc, an_error_later_in_the_burst_spoils_nothing_before_it);
	suite_add_tcase(s, tc);
	return s;
}
