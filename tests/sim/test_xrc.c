/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC (IBA vol. 1, annex A14): the SRQ that a request names gives receive, PD and CQ. */
#include <errno.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/fake_srq.h"
#include "tests/support/pair.h"

#define XRCD    7u
#define SRQ_A   1u
#define SRQ_B   2u
#define SRQ_FAR 3u /* of another domain */
#define PD_B    5u
#define MEM     262144u
#define WAIT_MS 2000u

static struct pair p;
static struct fake_cq *send_cq, *cq_a, *cq_b;
static struct fake_qp *ini, *tgt;
static struct fake_srq *a, *b, *far;
static struct fake_region *src, *dst, *dst_b; /* dst_b: of SRQ_B's PD */
static uint32_t n_naks[256];
static bool lose_read_answers;

static enum link_sim_act look(void *ctx, unsigned from, const struct packet *pk)
{
	uint8_t op = pk->opcode & 0x1f;

	(void)ctx;
	if (from == 1 && op == BTH_ACKNOWLEDGE)
		n_naks[pk->syndrome]++;
	if (from == 1 && op == BTH_READ_RESP_ONLY && lose_read_answers) {
		lose_read_answers = false;
		return LINK_SIM_DROP;
	}
	return LINK_SIM_PASS;
}

static void setup(void)
{
	static const struct pair_conf conf = { .engine = { .max_srq = 64 } };
	static const struct pair_rc rc = { .min_rnr_timer = 14 };
	struct fake_qp_conf ic = { .type = UROCE_QPT_XRC_SEND };
	const struct fake_qp_conf tc = { .type = UROCE_QPT_XRC_RECV, .xrcd = XRCD };

	memset(n_naks, 0, sizeof(n_naks));
	lose_read_answers = false;
	pair_init(&p, &conf);
	p.link.filter = look;
	ic.send_cq = send_cq = fake_cq_new(&p.dev[0], 64);
	cq_a = fake_cq_new(&p.dev[1], 64);
	cq_b = fake_cq_new(&p.dev[1], 64);
	ini = fake_qp_new(&p.dev[0], &ic);
	tgt = fake_qp_new(&p.dev[1], &tc);
	ck_assert(ini && tgt);
	a = fake_srq_new_xrc(&p.dev[1], SRQ_A, 16, 1, XRCD, cq_a);
	b = fake_srq_new_xrc(&p.dev[1], SRQ_B, 16, PD_B, XRCD, cq_b);
	far = fake_srq_new_xrc(&p.dev[1], SRQ_FAR, 16, 1, XRCD + 1, cq_a);
	src = fake_reg(&p.dev[0], MEM, 0xf);
	dst = fake_reg(&p.dev[1], MEM, 0xf);
	dst_b = fake_reg_pd(&p.dev[1], MEM, 0xf, PD_B);
	for (uint32_t i = 0; i < MEM; i++)
		src->mem[i] = (uint8_t)(i * 7 + i / 251);
	ck_assert_int_eq(pair_connect(&p, ini, tgt, &rc), 0);
}

static void teardown(void)
{
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_msg(!p.dev[i].mem.violations, "%s", p.dev[i].mem.violation);
		ck_assert(fake_mem_guards_hold(&p.dev[i].mem));
	}
	ck_assert_uint_eq(p.link.malformed, 0);
	if (a)
		fake_srq_del(a);
	fake_srq_del(b);
	fake_srq_del(far);
	pair_free(&p);
}

static void post(uint8_t op, uint32_t srqn, const struct fake_region *to, uint32_t off,
		 uint32_t len)
{
	struct fake_wr wr = { .wr_id = off,
			      .opcode = op,
			      .flags = UROCE_WQE_SIGNALED,
			      .n_sge = 1,
			      .sge = { fake_sge(src, off, len) },
			      .imm = 0x01020304,
			      .remote_addr = to->iova + off,
			      .rkey = to->key,
			      .compare_add = 3,
			      .remote_qpn = srqn };

	ck_assert(fake_post_send(ini, &wr));
}

static void recv_into(struct fake_srq *srq, const struct fake_region *r, uint32_t off, uint32_t len)
{
	struct uroce_sge sge = fake_sge(r, off, len);

	ck_assert(fake_srq_post(srq, off, &sge, 1));
}

static struct uroce_cqe expect(struct fake_cq *cq, uint8_t status)
{
	struct uroce_cqe c = { 0 };

	ck_assert(pair_wait(&p, cq, &c, p.clock.now + WAIT_MS * 1000000ull));
	ck_assert_uint_eq(c.status, status);
	return c;
}

static void expect_none(struct fake_cq *cq)
{
	struct uroce_cqe c;

	ck_assert_int_eq(fake_poll(cq, &c, 1), 0);
}

START_TEST(a_send_completes_on_the_cq_of_the_srq_it_names)
{
	struct uroce_cqe c;

	recv_into(a, dst, 0, 8192);
	recv_into(b, dst_b, 8192, 8192);
	post(UROCE_WR_SEND, SRQ_B, dst, 0, 5000);
	expect(send_cq, UROCE_WC_SUCCESS);
	c = expect(cq_b, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(c.byte_len, 5000);
	ck_assert_uint_eq(c.qpn, tgt->qpn);
	ck_assert_uint_eq(c.queue, UROCE_CQE_SRQ);
	ck_assert_uint_eq(c.src_qp, ini->qpn);
	ck_assert_mem_eq(dst_b->mem + 8192, src->mem, 5000);
	expect_none(cq_a);
	post(UROCE_WR_SEND_IMM, SRQ_A, dst, 100, 64);
	c = expect(cq_a, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(c.flags, UROCE_WC_WITH_IMM);
	ck_assert_mem_eq(dst->mem, src->mem + 100, 64);
}
END_TEST

START_TEST(writes_reads_and_atomics_work_in_the_pd_of_the_srq)
{
	uint64_t word = 40, sum;

	memcpy(dst_b->mem, &word, sizeof(word));
	post(UROCE_WR_WRITE, SRQ_B, dst_b, 4096, 5000);
	expect(send_cq, UROCE_WC_SUCCESS);
	ck_assert_mem_eq(dst_b->mem + 4096, src->mem + 4096, 5000);
	memset(src->mem + 4096, 0, 5000);
	post(UROCE_WR_READ, SRQ_B, dst_b, 4096, 5000);
	expect(send_cq, UROCE_WC_SUCCESS);
	ck_assert_mem_eq(dst_b->mem + 4096, src->mem + 4096, 5000);
	post(UROCE_WR_FETCH_ADD, SRQ_B, dst_b, 0, 8);
	expect(send_cq, UROCE_WC_SUCCESS);
	memcpy(&sum, dst_b->mem, sizeof(sum));
	ck_assert_uint_eq(sum, 43);
	ck_assert_mem_eq(src->mem, &word, sizeof(word));
	recv_into(a, dst, 0, 64);
	post(UROCE_WR_WRITE_IMM, SRQ_A, dst, 2048, 3000);
	ck_assert_uint_eq(expect(cq_a, UROCE_WC_SUCCESS).opcode, UROCE_WC_RECV_IMM);
	ck_assert_mem_eq(dst->mem + 2048, src->mem + 2048, 3000);
}
END_TEST

static const uint8_t remote_op[] = { UROCE_WR_WRITE, UROCE_WR_READ, UROCE_WR_FETCH_ADD };

START_TEST(a_key_of_another_pd_than_the_srq_s_is_an_access_error)
{
	post(remote_op[_i], SRQ_A, dst_b, 0, 8);
	expect(send_cq, UROCE_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(fake_qp_state(tgt), UROCE_QPS_ERR);
}
END_TEST

static const struct {
	uint8_t op;
	uint32_t srqn;
} bad_srq[] = {
	{ UROCE_WR_SEND, 9 },       { UROCE_WR_WRITE, 9 },           { UROCE_WR_READ, 9 },
	{ UROCE_WR_FETCH_ADD, 9 },  { UROCE_WR_SEND, SRQ_FAR },      { UROCE_WR_WRITE, SRQ_FAR },
	{ UROCE_WR_READ, SRQ_FAR }, { UROCE_WR_FETCH_ADD, SRQ_FAR },
};

START_TEST(an_srq_that_is_not_in_the_domain_is_an_invalid_request)
{
	recv_into(far, dst, 0, 64);
	post(bad_srq[_i].op, bad_srq[_i].srqn, dst, 0, 8);
	expect(send_cq, UROCE_WC_REM_INV_REQ_ERR);
	ck_assert_uint_eq(n_naks[0x61], 1);
	ck_assert_int_eq(fake_qp_state(tgt), UROCE_QPS_ERR);
	ck_assert_uint_eq(fake_events(&p.dev[1], UROCE_EVENT_QP_REQ_ERR, tgt->qpn), 1);
	ck_assert_uint_eq(fake_srq_left(far), 1);
	expect_none(cq_a);
}
END_TEST

START_TEST(an_empty_srq_is_receiver_not_ready_and_not_an_error)
{
	post(UROCE_WR_SEND, SRQ_A, dst, 0, 3000);
	pair_run(&p, p.clock.now + 5000000, NULL, NULL);
	ck_assert_uint_gt(n_naks[0x20 | 14], 1);
	expect_none(send_cq);
	recv_into(b, dst_b, 0, 8192); /* another SRQ's does not help */
	pair_run(&p, p.clock.now + 5000000, NULL, NULL);
	expect_none(send_cq);
	recv_into(a, dst, 0, 8192);
	expect(send_cq, UROCE_WC_SUCCESS);
	expect(cq_a, UROCE_WC_SUCCESS);
	ck_assert_mem_eq(dst->mem, src->mem, 3000);
	ck_assert_uint_eq(fake_srq_left(b), 1);
}
END_TEST

static bool has_taken(void *ctx)
{
	return fake_srq_left(ctx) == 0;
}

START_TEST(an_srq_destroyed_in_mid_message_ends_it_as_an_invalid_request)
{
	p.tx_burst = 2; /* so that the message takes many turns */
	recv_into(a, dst, 0, 60000);
	post(UROCE_WR_SEND, SRQ_A, dst, 0, 60000);
	ck_assert(pair_run(&p, p.clock.now + 1000000000, has_taken, a));
	ck_assert_int_eq(fake_srq_del(a), 0);
	a = NULL;
	expect(send_cq, UROCE_WC_REM_INV_REQ_ERR);
	ck_assert_int_eq(fake_qp_state(tgt), UROCE_QPS_ERR);
	expect_none(cq_a);
	ck_assert_int_eq(fake_cq_del(cq_a), -EBUSY); /* `far` completes there as well */
	fake_srq_del(far);
	far = fake_srq_new_xrc(&p.dev[1], SRQ_FAR, 16, 1, XRCD + 1, cq_b);
	ck_assert_int_eq(fake_cq_del(cq_a), 0);
}
END_TEST

/* The answer to a READ through one SRQ is lost while a SEND through another is half received. */
START_TEST(a_repeated_read_of_another_srq_does_not_disturb_the_message)
{
	p.tx_burst = 2;
	lose_read_answers = true;
	memcpy(dst_b->mem, src->mem + 512, 512);
	recv_into(a, dst, 4096, 200000); /* long enough to ask for ACKs in its midst */
	post(UROCE_WR_READ, SRQ_B, dst_b, 0, 512);
	post(UROCE_WR_SEND, SRQ_A, dst, 4096, 200000);
	expect(send_cq, UROCE_WC_SUCCESS);
	expect(send_cq, UROCE_WC_SUCCESS);
	expect(cq_a, UROCE_WC_SUCCESS);
	ck_assert_mem_eq(src->mem, dst_b->mem, 512);
	ck_assert_mem_eq(dst->mem + 4096, src->mem + 4096, 200000);
	ck_assert_uint_gt(fake_counter(&p.dev[1], "duplicate_request"), 0);
	ck_assert_uint_eq(fake_counter(&p.dev[1], "drop_replay_unknown"), 0);
}
END_TEST

START_TEST(a_flushed_receive_goes_to_the_cq_of_its_srq_and_the_rest_stays)
{
	p.tx_burst = 2;
	recv_into(a, dst, 0, 60000);
	recv_into(a, dst, 0, 64);
	post(UROCE_WR_SEND, SRQ_A, dst, 0, 60000);
	while (fake_srq_left(a) == 2)
		ck_assert(pair_turn(&p) || pair_advance(&p, p.clock.now + 1000000));
	ck_assert_int_eq(fake_qp_to(tgt, UROCE_QPS_ERR), 0);
	expect(cq_a, UROCE_WC_WR_FLUSH_ERR);
	expect_none(cq_a);
	ck_assert_uint_eq(fake_srq_left(a), 1);
	ck_assert_uint_eq(fake_events(&p.dev[1], UROCE_EVENT_QP_LAST_WQE, tgt->qpn), 0);
}
END_TEST

START_TEST(the_send_half_executes_nothing)
{
	const struct fake_qp_conf c = { .type = UROCE_QPT_XRC_SEND, .send_cq = cq_a };
	struct fake_qp *victim;
	static const struct pair_rc rc;

	victim = fake_qp_new(&p.dev[1], &c);
	ck_assert_ptr_nonnull(victim);
	ck_assert_int_eq(pair_to_rtr(&p, victim, ini->qpn, &rc), 0);
	fake_qp_to(ini, UROCE_QPS_RESET);
	ini->sq_prod = ini->sq_done = 0;
	ini->page->sq = (struct uroce_ring) { 0 };
	ck_assert_int_eq(pair_to_rtr(&p, ini, victim->qpn, &rc), 0);
	ck_assert_int_eq(pair_to_rts(&p, ini, &rc), 0);
	post(UROCE_WR_WRITE, SRQ_A, dst, 0, 64);
	pair_run(&p, p.clock.now + 1000000, NULL, NULL);
	ck_assert_uint_eq(p.dev[1].mem.n_writes, 0);
	ck_assert_uint_eq(fake_counter(&p.dev[1], "drop_wrong_service"), 1);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("xrc");
	TCase *tc = tcase_create("xrc");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_send_completes_on_the_cq_of_the_srq_it_names);
	tcase_add_test(tc, writes_reads_and_atomics_work_in_the_pd_of_the_srq);
	tcase_add_loop_test(tc, a_key_of_another_pd_than_the_srq_s_is_an_access_error, 0, 3);
	tcase_add_loop_test(tc, an_srq_that_is_not_in_the_domain_is_an_invalid_request, 0, 8);
	tcase_add_test(tc, an_empty_srq_is_receiver_not_ready_and_not_an_error);
	tcase_add_test(tc, an_srq_destroyed_in_mid_message_ends_it_as_an_invalid_request);
	tcase_add_test(tc, a_repeated_read_of_another_srq_does_not_disturb_the_message);
	tcase_add_test(tc, a_flushed_receive_goes_to_the_cq_of_its_srq_and_the_rest_stays);
	tcase_add_test(tc, the_send_half_executes_nothing);
	suite_add_tcase(s, tc);
	return s;
}
