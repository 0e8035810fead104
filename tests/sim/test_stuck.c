/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways in which a QP, or the whole engine, could wait for ever or do the wrong thing once: each was
 * found by reading the core with hostile eyes.
 */
#include <infiniband/verbs.h>

#include "tests/sim/scene.h"
#include "tests/support/pktgen.h"

#define MW (200u << 8 | 1)

static struct scene s;

static void teardown(void)
{
	scene_free(&s);
}

static void make_window(void)
{
	struct cmd cmd = { .op = ENGINE_MW_ADD, .mw_add = { .key = MW, .pd = 1, .type = 1 } };
	struct cmd_reply none;

	ck_assert_int_eq(engine_command(s.p.dev[0].engine, s.p.clock.now, &cmd, &none), 0);
}

/* A local operation that always succeeds: unbinding a type 1 window. */
static struct fake_wr unbind(uint8_t flags)
{
	return (struct fake_wr) {
		.wr_id = 77, .opcode = UROCE_WR_BIND_MW, .flags = flags, .imm = MW, .rkey = MW
	};
}

static void drain(void)
{
	struct uroce_qp_attr attr = { .qp_state = UROCE_QPS_SQD, .en_sqd_async_notify = 1 };
	uint32_t mask = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;

	ck_assert_int_eq(fake_qp_modify(s.qp[0], &attr, mask, NULL), 0);
}

/*
 * Packets of full length never arrive (a path whose MTU is smaller than it says), short ones do:
 * NAKs come for ever, and no timeout.
 */
START_TEST(naks_without_progress_end_the_qp)
{
	static const struct scene_conf conf = {
		.pair = { .link = { .delay_ns = 5000 } },
		.rc = { .timeout = 14, .retry_cnt = 7 },
	};
	struct uroce_cqe c;

	scene_init(&s, &conf);
	scene_fault(&s, 0, BTH_WRITE_FIRST, 0, LINK_SIM_DROP);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 3000);
	c = scene_wait(&s, 0, 2000);
	ck_assert_uint_eq(c.status, UROCE_WC_RETRY_EXC_ERR);
	ck_assert_uint_ge(s.sent[0][BTH_WRITE_FIRST], 8);
	ck_assert_uint_lt(s.sent[0][BTH_WRITE_FIRST], 200);
}
END_TEST

/* The same for READs: the answers to what is behind come, those of the first never. */
START_TEST(implied_naks_without_progress_end_the_qp)
{
	static const struct scene_conf conf = {
		.pair = { .link = { .delay_ns = 5000 } },
		.rc = { .timeout = 14, .retry_cnt = 7 },
	};
	struct uroce_cqe c;

	scene_init(&s, &conf);
	scene_fault(&s, 1, BTH_READ_RESP_ONLY, 0, LINK_SIM_DROP);
	scene_post(&s, 0, UROCE_WR_READ, 0, 64);
	scene_post(&s, 0, UROCE_WR_READ, 64, 3000);
	c = scene_wait(&s, 0, 2000);
	ck_assert_uint_eq(c.status, UROCE_WC_RETRY_EXC_ERR);
	ck_assert_uint_lt(s.sent[0][BTH_READ_REQUEST], 200);
}
END_TEST

START_TEST(a_local_operation_that_ends_a_drain_tells_so)
{
	static const struct scene_conf conf = { .pair = { .link = { .delay_ns = 5000 } } };
	struct fake_wr wr = unbind(UROCE_WQE_SIGNALED | UROCE_WQE_FENCE);

	scene_init(&s, &conf);
	make_window();
	scene_post(&s, 0, UROCE_WR_READ, 0, 3000);
	ck_assert(fake_post_send(s.qp[0], &wr));
	pair_turn(&s.p);
	drain();
	scene_run_ms(&s, 10);
	ck_assert_uint_eq(fake_events(&s.p.dev[0], UROCE_EVENT_SQ_DRAINED, s.qp[0]->qpn), 1);
}
END_TEST

START_TEST(a_long_uc_message_that_ends_a_drain_tells_so)
{
	static const struct scene_conf conf = { .type = UROCE_QPT_UC };

	scene_init(&s, &conf);
	s.p.tx_burst = 8;
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 60000);
	pair_turn(&s.p);
	drain();
	ck_assert_uint_eq(fake_events(&s.p.dev[0], UROCE_EVENT_SQ_DRAINED, s.qp[0]->qpn), 0);
	scene_run_ms(&s, 10);
	ck_assert_uint_eq(fake_events(&s.p.dev[0], UROCE_EVENT_SQ_DRAINED, s.qp[0]->qpn), 1);
	scene_same(&s, 0, 60000);
}
END_TEST

/* The message broke off in its middle; the next one is a whole one again. */
START_TEST(uc_goes_on_after_a_message_that_broke_off)
{
	static const struct scene_conf conf = { .type = UROCE_QPT_UC };
	struct fake_region *gone;
	struct fake_wr wr;

	scene_init(&s, &conf);
	s.p.tx_burst = 4;
	gone = fake_reg(&s.p.dev[0], 60000, 0xf);
	wr = (struct fake_wr) { .opcode = UROCE_WR_WRITE,
				.flags = UROCE_WQE_SIGNALED,
				.n_sge = 1,
				.sge = { fake_sge(gone, 0, 60000) },
				.remote_addr = s.mem[1]->iova,
				.rkey = s.mem[1]->key };
	ck_assert(fake_post_send(s.qp[0], &wr));
	pair_turn(&s.p);
	gone->broken = true;
	scene_expect(&s, 0, UROCE_WC_LOC_PROT_ERR);
	ck_assert_int_eq(fake_qp_state(s.qp[0]), UROCE_QPS_SQE);
	ck_assert_int_eq(fake_qp_to(s.qp[0], UROCE_QPS_RTS), 0);
	scene_post(&s, 0, UROCE_WR_WRITE, 65536, 100);
	scene_post(&s, 0, UROCE_WR_WRITE, 70000, 9000);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_run_ms(&s, 1);
	scene_same(&s, 65536, 100);
	scene_same(&s, 70000, 9000);
}
END_TEST

/* Answering the peer's READs must not keep our own work waiting for as long as they last. */
START_TEST(a_stream_of_reads_leaves_room_for_own_work)
{
	static const struct scene_conf conf = {
		.pair = { .link = { .delay_ns = 5000, .ns_per_kib = 300, .tx_burst = 32 } },
		.rc = { .mtu = IBV_MTU_1024, .timeout = 18 },
	};
	struct uroce_cqe c;
	unsigned reads = 0;

	scene_init(&s, &conf);
	for (unsigned i = 0; i < 8; i++)
		scene_post(&s, 1, UROCE_WR_READ, 0, 65536);
	for (; reads < 10 || fake_poll(s.cq[0], &c, 1) == 0; reads++) {
		ck_assert_msg(reads < 40, "thirty READs were answered before one WRITE was sent");
		if (reads == 10)
			scene_post(&s, 0, UROCE_WR_WRITE, 100000, 64);
		scene_expect(&s, 1, UROCE_WC_SUCCESS);
		scene_post(&s, 1, UROCE_WR_READ, 0, 65536);
	}
	ck_assert_uint_eq(c.status, UROCE_WC_SUCCESS);
}
END_TEST

static uint32_t refills;

/* An enemy who posts as fast as the engine takes: whatever is done is posted again at once. */
static void refill(void *ctx, const struct trace_record *rec)
{
	struct fake_wr wr = unbind(UROCE_WQE_SIGNALED);
	struct uroce_cqe c;

	(void)ctx;
	if (rec->kind != TRACE_COMPLETE)
		return;
	ck_assert_msg(++refills < 100000, "the engine never leaves this queue");
	while (fake_poll(s.cq[0], &c, 1) > 0)
		;
	fake_post_send(s.qp[0], &wr);
}

START_TEST(local_operations_without_end_do_not_hold_the_engine)
{
	struct fake_wr wr = unbind(UROCE_WQE_SIGNALED);
	struct fake_qp *other;
	struct fake_qp_conf conf = { 0 };
	uint64_t before;

	scene_init(&s, NULL);
	make_window();
	conf.send_cq = conf.recv_cq = s.cq[0];
	other = fake_qp_new(&s.p.dev[0], &conf);
	ck_assert_int_eq(pair_to_rtr(&s.p, other, s.qp[1]->qpn, &(struct pair_rc) { 0 }), 0);
	ck_assert_int_eq(pair_to_rts(&s.p, other, &(struct pair_rc) { 0 }), 0);
	s.p.dev[0].on_trace = refill;
	for (unsigned i = 0; i < 4; i++)
		ck_assert(fake_post_send(s.qp[0], &wr));
	pair_turn(&s.p);
	before = s.n_tx[0];
	wr = (struct fake_wr) { .opcode = UROCE_WR_WRITE };
	ck_assert(fake_post_send(other, &wr));
	pair_turn(&s.p);
	pair_turn(&s.p);
	ck_assert_uint_gt(s.n_tx[0], before);
	ck_assert_uint_gt(refills, 10);
	s.p.dev[0].on_trace = NULL;
	scene_run_ms(&s, 1);
}
END_TEST

/* The limit of READs is lowered while one must be asked for again. */
START_TEST(a_read_under_way_is_finished_when_the_limit_becomes_zero)
{
	static const struct scene_conf conf = { .pair = { .link = { .delay_ns = 5000 } },
						.rc = { .timeout = 8 } };
	struct uroce_qp_attr attr = { .qp_state = UROCE_QPS_SQD, .max_rd_atomic = 0 };

	scene_init(&s, &conf);
	scene_fault(&s, 1, BTH_READ_RESP_ONLY, 1, LINK_SIM_DROP);
	scene_post(&s, 0, UROCE_WR_READ, 0, 64);
	pair_turn(&s.p);
	drain();
	ck_assert_int_eq(
		fake_qp_modify(s.qp[0], &attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC, NULL), 0);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_same(&s, 0, 64);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/stuck");
	TCase *c = tcase_create("stuck");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, naks_without_progress_end_the_qp);
	tcase_add_test(c, implied_naks_without_progress_end_the_qp);
	tcase_add_test(c, a_local_operation_that_ends_a_drain_tells_so);
	tcase_add_test(c, a_long_uc_message_that_ends_a_drain_tells_so);
	tcase_add_test(c, uc_goes_on_after_a_message_that_broke_off);
	tcase_add_test(c, a_stream_of_reads_leaves_room_for_own_work);
	tcase_add_test(c, local_operations_without_end_do_not_hold_the_engine);
	tcase_add_test(c, a_read_under_way_is_finished_when_the_limit_becomes_zero);
	suite_add_tcase(suite, c);
	return suite;
}
