/* SPDX-License-Identifier: BSD-3-Clause */
/* READs and atomics at the responder: answers, their order, duplicates, and how many at a time. */
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

#define ACK     0x1f
#define NAK_REQ 0x61
#define BASE    0xfffffeu /* of every test: the wrap is two packets away */

static struct raw r;

static void setup(void)
{
	static const struct raw_conf conf = { .rq_psn = BASE };

	raw_init(&r, &conf);
}

static void teardown(void)
{
	raw_free(&r);
}

static void expect_read(uint32_t from, uint32_t n, uint64_t off, uint32_t len, uint32_t msn)
{
	ck_assert_uint_eq(r.n_answers, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct packet *a = &r.answer[i];
		uint8_t op = n == 1       ? BTH_READ_RESP_ONLY
			     : i == 0     ? BTH_READ_RESP_FIRST
			     : i == n - 1 ? BTH_READ_RESP_LAST
					  : BTH_READ_RESP_MIDDLE;
		uint32_t part = i == n - 1 ? len - i * 1024 : 1024;

		ck_assert_uint_eq(a->opcode, op);
		ck_assert_uint_eq(a->psn, (from + i) & 0xffffff);
		ck_assert_uint_eq(a->payload_len, part);
		if (op != BTH_READ_RESP_MIDDLE) {
			ck_assert_uint_eq(a->syndrome, ACK);
			ck_assert_uint_eq(a->msn, msn);
		}
		ck_assert_mem_eq(r.payload[i], r.mem->mem + off + i * 1024, part < 64 ? part : 64);
	}
	raw_clear(&r);
}

static const struct {
	uint32_t len, packets;
} reads[] = {
	{ 0, 1 }, { 1, 1 }, { 1024, 1 }, { 1025, 2 }, { 2048, 2 }, { 2049, 3 }, { 20000, 20 }
};

START_TEST(a_read_is_answered_by_its_packets)
{
	raw_read(&r, BASE, 77, reads[_i].len);
	expect_read(BASE, reads[_i].packets, 77, reads[_i].len, 1);
	raw_write(&r, BTH_WRITE_ONLY, BASE + reads[_i].packets, 0, 8, 8);
	raw_expect_ack(&r, ACK, BASE + reads[_i].packets, 2);
}
END_TEST

START_TEST(a_duplicate_read_is_executed_again_from_any_psn_inside)
{
	raw_read(&r, BASE, 64, 10000);
	raw_clear(&r);
	memset(r.mem->mem, 0x3c, 20000);
	for (uint32_t k = 0; k < 10; k++) {
		raw_read(&r, BASE + k, 64 + 1024 * k, 10000 - 1024 * k);
		expect_read(BASE + k, 10 - k, 64 + 1024 * k, 10000 - 1024 * k, 1);
	}
}
END_TEST

START_TEST(a_duplicate_read_may_ask_for_a_part)
{
	raw_read(&r, BASE, 64, 10000);
	raw_clear(&r);
	raw_read(&r, BASE + 3, 64 + 3072, 2048);
	expect_read(BASE + 3, 2, 64 + 3072, 2048, 1);
}
END_TEST

/* A "duplicate" that reaches past what was ever asked is no duplicate. */
START_TEST(a_duplicate_read_past_the_expected_psn_is_dropped)
{
	raw_read(&r, BASE, 0, 2048);
	raw_clear(&r);
	raw_read(&r, BASE + 1, 0, 2048);
	raw_expect_none(&r);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

START_TEST(a_duplicate_read_with_a_bad_key_changes_nothing)
{
	struct packet pk = { .opcode = BTH_READ_REQUEST,
			     .psn = BASE,
			     .va = r.mem->iova,
			     .rkey = r.mem->key ^ 1,
			     .dma_len = 1024 };

	raw_read(&r, BASE, 0, 1024);
	raw_clear(&r);
	raw_send(&r, &pk, NULL);
	raw_expect_none(&r);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

/* Atomics. */
static void expect_atomic(uint32_t psn, uint64_t orig, uint32_t msn)
{
	ck_assert_uint_eq(r.n_answers, 1);
	ck_assert_uint_eq(r.answer[0].opcode, BTH_ATOMIC_ACK);
	ck_assert_uint_eq(r.answer[0].psn, psn & 0xffffff);
	ck_assert_uint_eq(r.answer[0].syndrome, ACK);
	ck_assert_uint_eq(r.answer[0].atomic_orig, orig);
	ck_assert_uint_eq(r.answer[0].msn, msn);
	raw_clear(&r);
}

START_TEST(atomics_return_what_was_there)
{
	uint64_t word = 1000, now;

	memcpy(r.mem->mem + 64, &word, 8);
	raw_atomic(&r, BTH_FETCH_ADD, BASE, 64, 5, 0);
	expect_atomic(BASE, 1000, 1);
	raw_atomic(&r, BTH_CMP_SWAP, BASE + 1, 64, 7, 1005);
	expect_atomic(BASE + 1, 1005, 2);
	raw_atomic(&r, BTH_CMP_SWAP, BASE + 2, 64, 9, 1005);
	expect_atomic(BASE + 2, 7, 3);
	raw_atomic(&r, BTH_FETCH_ADD, BASE + 3, 64, UINT64_MAX, 0);
	expect_atomic(BASE + 3, 7, 4);
	memcpy(&now, r.mem->mem + 64, 8);
	ck_assert_uint_eq(now, 6);
}
END_TEST

START_TEST(a_duplicate_atomic_is_answered_and_not_executed)
{
	uint64_t word = 1000, now;

	memcpy(r.mem->mem + 64, &word, 8);
	for (uint32_t i = 0; i < 8; i++)
		raw_atomic(&r, BTH_FETCH_ADD, BASE + i, 64, 1, 0);
	raw_clear(&r);
	for (uint32_t i = 0; i < 8; i++) { /* as deep as max_dest_rd_atomic, in any order */
		uint32_t k = (i * 5) % 8;

		raw_atomic(&r, BTH_FETCH_ADD, BASE + k, 64, 1, 0);
		ck_assert_uint_eq(r.answer[0].atomic_orig, 1000 + k);
		ck_assert_uint_eq(r.n_answers, 1);
		raw_clear(&r);
	}
	memcpy(&now, r.mem->mem + 64, 8);
	ck_assert_uint_eq(now, 1008);
}
END_TEST

START_TEST(a_duplicate_atomic_too_old_or_of_another_kind_is_dropped)
{
	for (uint32_t i = 0; i < 40; i++)
		raw_atomic(&r, BTH_FETCH_ADD, BASE + i, 64, 1, 0);
	raw_clear(&r);
	raw_atomic(&r, BTH_FETCH_ADD, BASE, 64, 1, 0);
	raw_expect_none(&r);
	raw_atomic(&r, BTH_CMP_SWAP, BASE + 39, 64, 1, 0);
	raw_expect_none(&r);
	ck_assert_uint_eq(r.dev.mem.n_atomics, 40);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

/* FLUSH: once the WRITE before it is in memory; a duplicate is answered, and whatever it names. */
START_TEST(a_flush_answers_when_all_before_it_is_placed)
{
	struct fake_region *m = fake_reg(&r.dev, 4096, UROCE_ACCESS_FLUSH_GLOBAL);
	const struct uroce_qp_attr a = { .access = 0xe | UROCE_ACCESS_FLUSH_GLOBAL };
	struct packet pk = { .opcode = BTH_FLUSH,
			     .psn = (BASE + 1) & 0xffffff,
			     .va = m->iova,
			     .rkey = m->key,
			     .dma_len = 4096,
			     .flush = FETH_GLOBAL,
			     .ack_req = true };

	ck_assert_int_eq(fake_qp_modify(r.qp, &a, IBV_QP_ACCESS_FLAGS, NULL), 0);
	raw_write(&r, BTH_WRITE_ONLY, BASE, 100, 8, 8);
	raw_clear(&r);
	for (unsigned i = 0; i < 2; i++) {
		raw_send(&r, &pk, NULL);
		ck_assert_uint_eq(r.dev.mem.n_writes, 1);
		expect_read((BASE + 1) & 0xffffff, 1, 0, 0, 2);
		pk.va++; /* of a duplicate nothing is looked at */
	}
	pk.psn = (BASE + 2) & 0xffffff; /* but of a new one: a byte past the end */
	raw_send(&r, &pk, NULL);
	raw_expect_ack(&r, 0x62, BASE + 2, 2);
}
END_TEST

/* The IRD: READs not yet answered. Nothing is pulled in between, so they pile up. */
START_TEST(one_read_too_many_is_refused)
{
	static struct pktgen gen[9];

	for (uint32_t i = 0; i < 9; i++) {
		struct packet pk = { .opcode = BTH_READ_REQUEST,
				     .psn = (BASE + i) & 0xffffff,
				     .va = r.mem->iova,
				     .rkey = r.mem->key,
				     .dma_len = 64,
				     .ack_req = true,
				     .pkey = 0xffff,
				     .dest_qpn = r.qp->qpn };
		const struct frame *f;

		gen[i] = r.gen;
		f = pktgen_frame(&gen[i], &pk, NULL);
		engine_rx(r.dev.engine, r.now, &f, 1);
	}
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
	raw_pull(&r);
	ck_assert_uint_eq(r.answer[r.n_answers - 1].syndrome, NAK_REQ);
	ck_assert_uint_eq(r.answer[r.n_answers - 1].psn, (BASE + 8) & 0xffffff);
}
END_TEST

/* Answers leave in PSN order: an ACK behind a READ waits for its data. */
START_TEST(an_ack_never_overtakes_a_read)
{
	static struct pktgen gen[2];
	struct packet rd = { .opcode = BTH_READ_REQUEST,
			     .psn = BASE,
			     .va = r.mem->iova,
			     .rkey = r.mem->key,
			     .dma_len = 5000,
			     .pkey = 0xffff,
			     .dest_qpn = r.qp->qpn };
	struct packet wr = { .opcode = BTH_WRITE_ONLY,
			     .psn = (BASE + 5) & 0xffffff,
			     .va = r.mem->iova,
			     .rkey = r.mem->key,
			     .dma_len = 8,
			     .payload_len = 8,
			     .ack_req = true,
			     .pkey = 0xffff,
			     .dest_qpn = r.qp->qpn };
	const struct frame *f[2];

	gen[0] = gen[1] = r.gen;
	f[0] = pktgen_frame(&gen[0], &rd, NULL);
	f[1] = pktgen_frame(&gen[1], &wr, NULL);
	engine_rx(r.dev.engine, r.now, f, 2);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 6);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(r.answer[i].psn, (BASE + i) & 0xffffff);
	ck_assert_uint_eq(r.answer[5].opcode, BTH_ACKNOWLEDGE);
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/resp_replay");
	TCase *c = tcase_create("resp_replay");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, a_read_is_answered_by_its_packets, 0, N(reads));
	tcase_add_test(c, a_duplicate_read_is_executed_again_from_any_psn_inside);
	tcase_add_test(c, a_duplicate_read_may_ask_for_a_part);
	tcase_add_test(c, a_duplicate_read_past_the_expected_psn_is_dropped);
	tcase_add_test(c, a_duplicate_read_with_a_bad_key_changes_nothing);
	tcase_add_test(c, atomics_return_what_was_there);
	tcase_add_test(c, a_duplicate_atomic_is_answered_and_not_executed);
	tcase_add_test(c, a_duplicate_atomic_too_old_or_of_another_kind_is_dropped);
	tcase_add_test(c, a_flush_answers_when_all_before_it_is_placed);
	tcase_add_test(c, one_read_too_many_is_refused);
	tcase_add_test(c, an_ack_never_overtakes_a_read);
	suite_add_tcase(s, c);
	return s;
}
