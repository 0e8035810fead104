/* SPDX-License-Identifier: BSD-3-Clause */
/* Replays that meet what has changed since the request was first answered, and a full queue. */
#include "dataplane/transport/core.h"
#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

static struct raw r;

static void start(void)
{
	static const struct raw_conf conf = { .rq_psn = 100, .dest_rd_atomic = 16 };

	raw_init(&r, &conf);
}

static void teardown(void)
{
	raw_free(&r);
}

/* In, without letting anything out. */
static void feed(struct packet pk)
{
	const struct frame *f;

	pk.dest_qpn = r.qp->qpn;
	pk.pkey = 0xffff;
	pk.va = r.mem->iova;
	pk.rkey = r.mem->key;
	pk.ack_req = true;
	f = pktgen_frame(&r.gen, &pk, NULL);
	engine_rx(r.dev.engine, r.now, &f, 1);
}

static void feed_read(uint32_t psn)
{
	feed((struct packet) { .opcode = BTH_READ_REQUEST, .psn = psn, .dma_len = 64 });
}

static void feed_write(uint32_t psn)
{
	feed((struct packet) { .opcode = BTH_WRITE_ONLY, .psn = psn, .dma_len = 64,
			       .payload_len = 64 });
}

/* A packet that went astray and came late must not cost a connection that has moved on. */
START_TEST(a_late_duplicate_of_a_read_does_no_harm_when_its_region_goes)
{
	start();
	raw_read(&r, 100, 0, 64);
	ck_assert_uint_eq(r.n_answers, 1);
	feed_read(100);
	ck_assert_int_eq(fake_dereg(&r.dev, r.mem), 0);
	raw_clear(&r);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 0);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
	ck_assert_uint_eq(fake_counter(&r.dev, "drop_replay_unknown"), 1);
}
END_TEST

/* The first answer to a READ, however, is owed: its loss is a NAK. */
START_TEST(a_fresh_read_whose_region_goes_is_refused)
{
	start();
	feed_read(100);
	ck_assert_int_eq(fake_dereg(&r.dev, r.mem), 0);
	raw_pull(&r);
	ck_assert_uint_eq(r.n_answers, 1);
	ck_assert_uint_eq(r.answer[0].syndrome, AETH_NAK_ACCESS);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
}
END_TEST

/* 2^24 packets ago there was an atomic with the same PSN, and few since. */
START_TEST(a_result_of_the_last_round_of_psns_answers_nobody)
{
	struct qp *qp;
	uint64_t word;

	start();
	qp = r.qp->mem;
	qp->resp.saved[0] = (struct resp_saved) { .is_valid = true, .opcode = BTH_FETCH_ADD,
						  .psn = { 100 }, .orig = 0xdead };
	qp->resp.saved_at = 1;
	memcpy(&word, r.mem->mem, sizeof(word));
	raw_atomic(&r, BTH_FETCH_ADD, 100, 0, 5, 0);
	raw_atomic(&r, BTH_FETCH_ADD, 100, 0, 5, 0);
	ck_assert_uint_eq(r.n_answers, 2);
	ck_assert_uint_eq(r.answer[0].atomic_orig, word);
	ck_assert_uint_eq(r.answer[1].atomic_orig, word);
}
END_TEST

/* The most that a peer within its rights can have waiting: all of it is answered. */
START_TEST(reads_writes_and_replays_all_find_room)
{
	uint32_t reads = 0, acks = 0;

	start();
	for (uint32_t i = 0; i < 16; i++) /* answered, to be asked for again */
		raw_read(&r, 100 + i, 0, 64);
	raw_clear(&r);
	for (uint32_t i = 0; i < 16; i++) {
		feed_read(116 + 2 * i);
		feed_write(117 + 2 * i);
	}
	for (uint32_t i = 0; i < 16; i++)
		feed_read(100 + i);
	raw_pull(&r);
	for (uint32_t i = 0; i < r.n_answers; i++) {
		reads += (r.answer[i].opcode & 0x1f) == BTH_READ_RESP_ONLY;
		acks += (r.answer[i].opcode & 0x1f) == BTH_ACKNOWLEDGE;
	}
	ck_assert_uint_eq(fake_counter(&r.dev, "drop_replay_unknown"), 0);
	ck_assert_uint_eq(reads, 32);
	ck_assert_uint_eq(acks, 16);
	ck_assert_uint_eq(r.answer[r.n_answers - 1].psn, 147);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("transport/replay");
	TCase *c = tcase_create("replay");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_test(c, a_late_duplicate_of_a_read_does_no_harm_when_its_region_goes);
	tcase_add_test(c, a_fresh_read_whose_region_goes_is_refused);
	tcase_add_test(c, a_result_of_the_last_round_of_psns_answers_nobody);
	tcase_add_test(c, reads_writes_and_replays_all_find_room);
	suite_add_tcase(suite, c);
	return suite;
}
