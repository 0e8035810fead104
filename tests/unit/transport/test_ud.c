/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams: addressing, Q_Key, the 40 bytes before the payload, and errors of either queue. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/pair.h"
#include "tests/support/pktgen.h"

#define QKEY 0x11111111u
#define AH   0x10003u
#define GRH  40u

static struct pair p;
static struct fake_cq *cq[2];
static struct fake_qp *qp[2];
static struct fake_region *mem[2];

static void to_rts(unsigned side)
{
	struct uroce_qp_attr a = { .qp_state = UROCE_QPS_INIT, .port_num = 1, .qkey = QKEY };

	ck_assert_int_eq(
		fake_qp_modify(qp[side], &a,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, NULL),
		0);
	ck_assert_int_eq(fake_qp_to(qp[side], UROCE_QPS_RTR), 0);
	a.qp_state = UROCE_QPS_RTS;
	a.sq_psn = 5;
	ck_assert_int_eq(fake_qp_modify(qp[side], &a, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL), 0);
}

static int ah_add(unsigned side, uint32_t ah, uint32_t pd)
{
	struct cmd c = { .op = ENGINE_AH_ADD,
			 .ah_add = { .ah = ah, .pd = pd, .path = pair_path(&p, side) } };
	struct cmd_reply reply;

	return engine_command(p.dev[side].engine, p.clock.now, &c, &reply);
}

static void setup(void)
{
	static const struct pair_conf conf = { .engine = { .max_ah = 16 } };

	pair_init(&p, &conf);
	for (unsigned i = 0; i < 2; i++) {
		struct fake_qp_conf qc = { .type = UROCE_QPT_UD };

		cq[i] = qc.send_cq = qc.recv_cq = fake_cq_new(&p.dev[i], 64);
		qp[i] = fake_qp_new(&p.dev[i], &qc);
		ck_assert_ptr_nonnull(qp[i]);
		mem[i] = fake_reg(&p.dev[i], 16384, 0xf);
		to_rts(i);
	}
	ck_assert_int_eq(ah_add(0, AH, 1), 0);
}

static void teardown(void)
{
	for (unsigned i = 0; i < 2; i++)
		ck_assert_msg(!p.dev[i].mem.violations, "%s", p.dev[i].mem.violation);
	ck_assert_uint_eq(p.link.malformed, 0);
	pair_free(&p);
}

static void post(uint32_t len, uint32_t ah, uint32_t qpn, uint32_t qkey, uint8_t opcode)
{
	struct fake_wr wr = { .wr_id = 1,
			      .opcode = opcode,
			      .flags = UROCE_WQE_SIGNALED,
			      .n_sge = 1,
			      .sge = { fake_sge(mem[0], 0, len) },
			      .imm = 0xa1b2c3d4,
			      .ah = ah,
			      .remote_qpn = qpn,
			      .remote_qkey = qkey };

	ck_assert(fake_post_send(qp[0], &wr));
}

static void receive(uint32_t len)
{
	struct uroce_sge sge = fake_sge(mem[1], 0, len);

	ck_assert(fake_post_recv(qp[1], 2, &sge, 1));
}

static uint8_t status(unsigned side)
{
	struct uroce_cqe c;

	ck_assert(pair_wait(&p, cq[side], &c, p.clock.now + 1000000));
	return c.status;
}

static bool is_silent(unsigned side)
{
	struct uroce_cqe c;

	return !pair_wait(&p, cq[side], &c, p.clock.now + 1000000);
}

static const uint32_t sizes[] = { 0, 1, 3, 4, 1024, 4096 };

START_TEST(a_datagram_arrives_behind_forty_bytes_that_tell_its_sender)
{
	struct uroce_cqe c;
	uint32_t len = sizes[_i];

	receive(GRH + len);
	post(len, AH, qp[1]->qpn, QKEY, UROCE_WR_SEND_IMM);
	ck_assert_uint_eq(status(0), UROCE_WC_SUCCESS);
	ck_assert(pair_wait(&p, cq[1], &c, p.clock.now + 1000000));
	ck_assert_uint_eq(c.status, UROCE_WC_SUCCESS);
	ck_assert_uint_eq(c.byte_len, GRH + len);
	ck_assert_uint_eq(c.src_qp, qp[0]->qpn);
	ck_assert_uint_eq(c.imm, 0xa1b2c3d4);
	ck_assert_uint_eq(c.flags, UROCE_WC_GRH | UROCE_WC_WITH_IMM);
	ck_assert_mem_eq(mem[1]->mem + GRH, mem[0]->mem, len);
	ck_assert_uint_eq(mem[1]->mem[20], 0x45); /* the IPv4 header, in the last 20 of the 40 */
	ck_assert_mem_eq(mem[1]->mem + 32, p.dev[0].gid + 12, 4);
	ck_assert_mem_eq(mem[1]->mem + 36, p.dev[1].gid + 12, 4);
}
END_TEST

START_TEST(a_wrong_qkey_is_dropped_and_counted)
{
	receive(200);
	post(10, AH, qp[1]->qpn, QKEY + 1, UROCE_WR_SEND);
	ck_assert_uint_eq(status(0), UROCE_WC_SUCCESS);
	ck_assert(is_silent(1));
	ck_assert_int_eq(fake_qp_state(qp[1]), UROCE_QPS_RTS);
}
END_TEST

/* A Q_Key with its high bit set is not the program's to choose (10.2.5): the QP's own goes out. */
START_TEST(a_controlled_qkey_gives_way_to_the_qps_own)
{
	receive(200);
	post(10, AH, qp[1]->qpn, 0x80000000u | 77, UROCE_WR_SEND);
	ck_assert_uint_eq(status(1), UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(without_a_receive_or_a_qp_it_is_lost_in_silence)
{
	post(10, AH, qp[1]->qpn, QKEY, UROCE_WR_SEND);
	ck_assert_uint_eq(status(0), UROCE_WC_SUCCESS);
	post(10, AH, qp[1]->qpn + 1, QKEY, UROCE_WR_SEND);
	ck_assert_uint_eq(status(0), UROCE_WC_SUCCESS);
	ck_assert(is_silent(1));
}
END_TEST

START_TEST(a_receive_too_short_for_header_and_payload_is_a_length_error)
{
	receive(GRH + 9);
	post(10, AH, qp[1]->qpn, QKEY, UROCE_WR_SEND);
	ck_assert_uint_eq(status(1), UROCE_WC_LOC_LEN_ERR);
	ck_assert_int_eq(fake_qp_state(qp[1]), UROCE_QPS_ERR);
}
END_TEST

/* What a datagram may not be: each stops the SQ (SQE), and sends nothing. */
static const struct {
	uint32_t len, ah;
	uint8_t opcode, status;
} bad[] = {
	{ 4097, AH, UROCE_WR_SEND, UROCE_WC_LOC_LEN_ERR },
	{ 10, AH + 1, UROCE_WR_SEND, UROCE_WC_LOC_QP_OP_ERR },       /* no such handle */
	{ 10, AH ^ 0x10000, UROCE_WR_SEND, UROCE_WC_LOC_QP_OP_ERR }, /* an older one */
	{ 10, 0x10004, UROCE_WR_SEND, UROCE_WC_LOC_QP_OP_ERR },      /* another PD's */
	{ 10, AH, UROCE_WR_WRITE, UROCE_WC_LOC_QP_OP_ERR },
	{ 10, AH, UROCE_WR_READ, UROCE_WC_LOC_QP_OP_ERR },
};

START_TEST(a_bad_datagram_stops_the_send_queue)
{
	ck_assert_int_eq(ah_add(0, 0x10004, 2), 0);
	post(bad[_i].len, bad[_i].ah, qp[1]->qpn, QKEY, bad[_i].opcode);
	post(10, AH, qp[1]->qpn, QKEY, UROCE_WR_SEND);
	ck_assert_uint_eq(status(0), bad[_i].status);
	ck_assert_uint_eq(status(0), UROCE_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(fake_qp_state(qp[0]), UROCE_QPS_SQE);
	ck_assert_uint_eq(p.link.n_sent[0], 0);
}
END_TEST

START_TEST(a_handle_is_taken_once_and_goes_once)
{
	struct cmd del = { .op = ENGINE_AH_DEL, .key = AH };
	struct cmd_reply reply;

	ck_assert_int_eq(ah_add(0, AH, 1), -EEXIST);
	ck_assert_int_eq(engine_command(p.dev[0].engine, p.clock.now, &del, &reply), 0);
	ck_assert_int_eq(engine_command(p.dev[0].engine, p.clock.now, &del, &reply), -ENOENT);
	ck_assert_int_eq(ah_add(0, AH, 1), 0);
}
END_TEST

START_TEST(hostile_datagrams_break_nothing)
{
	uint64_t rng = ck_seed() + (uint64_t)_i;
	struct pktgen_aim aim = { .dest_qpn = qp[1]->qpn, .service = BTH_UD, .mtu = 1024 };
	struct net_path path = pair_path(&p, 0);
	static struct pktgen gen;

	pktgen_init(&gen, &path);
	for (int i = 0; i < 500; i++) {
		const struct frame *f = pktgen_hostile(&gen, &rng, &aim);

		engine_rx(p.dev[1].engine, p.clock.now, &f, 1);
		while (fake_poll(cq[1], &(struct uroce_cqe) { 0 }, 1) > 0)
			;
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/ud");
	TCase *c = tcase_create("ud");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, a_datagram_arrives_behind_forty_bytes_that_tell_its_sender, 0, 6);
	tcase_add_test(c, a_wrong_qkey_is_dropped_and_counted);
	tcase_add_test(c, a_controlled_qkey_gives_way_to_the_qps_own);
	tcase_add_test(c, without_a_receive_or_a_qp_it_is_lost_in_silence);
	tcase_add_test(c, a_receive_too_short_for_header_and_payload_is_a_length_error);
	tcase_add_loop_test(c, a_bad_datagram_stops_the_send_queue, 0, 6);
	tcase_add_test(c, a_handle_is_taken_once_and_goes_once);
	tcase_add_loop_test(c, hostile_datagrams_break_nothing, 0, 4);
	suite_add_tcase(s, c);
	return s;
}
