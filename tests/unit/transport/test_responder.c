/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder, packet by packet: verdicts, ACKs and NAKs, what is executed and what is not. */
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/raw.h"

#define ACK     0x1f
#define NAK_SEQ 0x60
#define NAK_REQ 0x61
#define NAK_ACC 0x62
#define NAK_OP  0x63
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

static void recv_len(uint32_t len)
{
	struct uroce_sge sge = fake_sge(r.mem, 32768, len);

	ck_assert(fake_post_recv(r.qp, 1, &sge, 1));
}

static uint8_t poll_status(void)
{
	struct uroce_cqe c;

	ck_assert_int_eq(fake_poll(r.cq, &c, 1), 1);
	return c.status;
}

static void is_in_err(uint8_t nak, uint32_t psn, uint32_t msn)
{
	raw_expect_ack(&r, nak, psn, msn);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_ERR);
	raw_write(&r, BTH_WRITE_ONLY, psn, 0, 8, 8); /* and deaf from now on */
	raw_expect_none(&r);
}

START_TEST(a_write_is_placed_and_acknowledged)
{
	raw_write(&r, BTH_WRITE_ONLY, BASE, 100, 33, 33);
	raw_expect_ack(&r, ACK, BASE, 1);
	for (uint32_t i = 0; i < 33; i++)
		ck_assert_uint_eq(r.mem->mem[100 + i], (uint8_t)(i * 13 + BASE));
}
END_TEST

START_TEST(without_ackreq_there_is_no_ack)
{
	struct packet pk = { .opcode = BTH_WRITE_ONLY,
			     .psn = BASE,
			     .va = r.mem->iova,
			     .rkey = r.mem->key,
			     .dma_len = 8,
			     .payload_len = 8 };

	raw_send(&r, &pk, NULL);
	raw_expect_none(&r);
	raw_write(&r, BTH_WRITE_ONLY, BASE + 1, 0, 8, 8);
	raw_expect_ack(&r, ACK, BASE + 1, 2);
}
END_TEST

START_TEST(an_ack_inside_a_message_repeats_the_old_msn)
{
	raw_write(&r, BTH_WRITE_FIRST, BASE, 0, 2100, 1024);
	raw_expect_ack(&r, ACK, BASE, 0);
	raw_write(&r, BTH_WRITE_MIDDLE, BASE + 1, 0, 0, 1024);
	raw_expect_ack(&r, ACK, BASE + 1, 0);
	raw_write(&r, BTH_WRITE_LAST, BASE + 2, 0, 0, 52);
	raw_expect_ack(&r, ACK, BASE + 2, 1);
}
END_TEST

START_TEST(acks_of_one_burst_become_one)
{
	const struct frame *f[4];
	static struct pktgen gen[4];

	for (uint32_t i = 0; i < 4; i++) {
		struct packet pk = { .opcode = BTH_WRITE_ONLY,
				     .psn = (BASE + i) & 0xffffff,
				     .va = r.mem->iova,
				     .rkey = r.mem->key,
				     .dma_len = 8,
				     .payload_len = 8,
				     .ack_req = true,
				     .pkey = 0xffff,
				     .dest_qpn = r.qp->qpn };

		gen[i] = r.gen;
		f[i] = pktgen_frame(&gen[i], &pk, NULL);
	}
	engine_rx(r.dev.engine, r.now, f, 4);
	raw_pull(&r);
	raw_expect_ack(&r, ACK, BASE + 3, 4);
}
END_TEST

START_TEST(a_gap_draws_one_nak_with_the_expected_psn)
{
	raw_write(&r, BTH_WRITE_ONLY, BASE + 1, 0, 8, 8);
	raw_expect_ack(&r, NAK_SEQ, BASE, 0);
	for (uint32_t i = 2; i < 20; i++)
		raw_write(&r, BTH_WRITE_ONLY, BASE + i, 0, 8, 8);
	raw_expect_none(&r);
	raw_write(&r, BTH_WRITE_ONLY, BASE, 0, 8, 8);
	raw_expect_ack(&r, ACK, BASE, 1);
	raw_write(&r, BTH_WRITE_ONLY, BASE + 30, 0, 8, 8);
	raw_expect_ack(&r, NAK_SEQ, BASE + 1, 1);
}
END_TEST

/* A burst: the first is refused for want of a receive, the next two come in the wrong order. */
START_TEST(a_gap_behind_a_refused_packet_does_not_hide_the_refusal)
{
	static const struct {
		uint8_t op;
		uint32_t ahead;
	} burst[3] = { { BTH_SEND_ONLY, 0 }, { BTH_WRITE_ONLY, 2 }, { BTH_WRITE_ONLY, 1 } };
	static struct pktgen gen[3];
	const struct frame *f[3];

	for (uint32_t i = 0; i < 3; i++) {
		struct packet pk = { .opcode = burst[i].op,
				     .psn = (BASE + burst[i].ahead) & 0xffffff,
				     .pkey = 0xffff,
				     .dest_qpn = r.qp->qpn,
				     .va = r.mem->iova,
				     .rkey = r.mem->key,
				     .dma_len = 8,
				     .payload_len = 8,
				     .ack_req = true };

		gen[i] = r.gen;
		f[i] = pktgen_frame(&gen[i], &pk, NULL);
	}
	engine_rx(r.dev.engine, r.now, f, 3);
	raw_pull(&r);
	raw_expect_ack(&r, 0x20 | 12, BASE, 0);
}
END_TEST

/* 2^23 numbers behind the expected one are duplicates, the others are ahead (IBA 9.7.2). */
static const struct {
	uint32_t ahead;
	bool is_gap;
} halves[] = { { 1, true },
	       { 0x7fffff, true },
	       { 0x800000, false },
	       { 0x800001, false },
	       { 0xffffff, false } };

START_TEST(half_the_circle_is_ahead_and_half_is_behind)
{
	raw_write(&r, BTH_WRITE_ONLY, BASE + halves[_i].ahead, 4096, 8, 8);
	if (halves[_i].is_gap)
		raw_expect_ack(&r, NAK_SEQ, BASE, 0);
	else
		raw_expect_ack(&r, ACK, BASE - 1, 0);
	ck_assert_uint_eq(r.dev.mem.n_writes, 0);
}
END_TEST

START_TEST(a_duplicate_write_is_acknowledged_and_not_executed)
{
	raw_write(&r, BTH_WRITE_ONLY, BASE, 100, 8, 8);
	raw_clear(&r);
	memset(r.mem->mem + 100, 0x77, 8);
	raw_write(&r, BTH_WRITE_ONLY, BASE, 100, 8, 8);
	raw_expect_ack(&r, ACK, BASE, 1);
	ck_assert_uint_eq(r.mem->mem[100], 0x77);
}
END_TEST

START_TEST(a_duplicate_send_takes_no_receive)
{
	recv_len(64);
	recv_len(64);
	raw_op(&r, BTH_SEND_ONLY, BASE, 10);
	raw_clear(&r);
	raw_op(&r, BTH_SEND_ONLY, BASE, 10);
	raw_expect_ack(&r, ACK, BASE, 1);
	ck_assert_uint_eq(poll_status(), UROCE_WC_SUCCESS);
	ck_assert_int_eq(fake_poll(r.cq, &(struct uroce_cqe) { 0 }, 1), 0);
}
END_TEST

/* Opcode sequence: what may follow what. State before: none, inside a SEND, inside a WRITE. */
static const struct {
	uint8_t first, then;
	bool is_legal;
} sequence[] = {
	{ 0xff, BTH_SEND_MIDDLE, false },
	{ 0xff, BTH_SEND_LAST, false },
	{ 0xff, BTH_SEND_LAST_IMM, false },
	{ 0xff, BTH_WRITE_MIDDLE, false },
	{ 0xff, BTH_WRITE_LAST, false },
	{ 0xff, BTH_WRITE_LAST_IMM, false },
	{ 0xff, BTH_SEND_FIRST, true },
	{ 0xff, BTH_WRITE_FIRST, true },
	{ BTH_SEND_FIRST, BTH_SEND_MIDDLE, true },
	{ BTH_SEND_FIRST, BTH_SEND_LAST, true },
	{ BTH_SEND_FIRST, BTH_SEND_LAST_IMM, true },
	{ BTH_SEND_FIRST, BTH_SEND_FIRST, false },
	{ BTH_SEND_FIRST, BTH_SEND_ONLY, false },
	{ BTH_SEND_FIRST, BTH_WRITE_MIDDLE, false },
	{ BTH_SEND_FIRST, BTH_WRITE_LAST, false },
	{ BTH_SEND_FIRST, BTH_WRITE_ONLY, false },
	{ BTH_SEND_FIRST, BTH_READ_REQUEST, false },
	{ BTH_SEND_FIRST, BTH_FETCH_ADD, false },
	{ BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, true },
	{ BTH_WRITE_FIRST, BTH_WRITE_LAST, true },
	{ BTH_WRITE_FIRST, BTH_WRITE_LAST_IMM, true },
	{ BTH_WRITE_FIRST, BTH_SEND_MIDDLE, false },
	{ BTH_WRITE_FIRST, BTH_SEND_LAST, false },
	{ BTH_WRITE_FIRST, BTH_WRITE_FIRST, false },
	{ BTH_WRITE_FIRST, BTH_SEND_ONLY, false },
	{ BTH_WRITE_FIRST, BTH_CMP_SWAP, false },
};

static void packet_of(uint8_t op, uint32_t psn, uint32_t len)
{
	struct packet pk = { .opcode = op,
			     .psn = psn & 0xffffff,
			     .va = r.mem->iova,
			     .rkey = r.mem->key,
			     .dma_len = op == BTH_READ_REQUEST ? 8 : 2048,
			     .ack_req = true };

	if (opcode_get(op)->flags & OPC_PAYLOAD)
		pk.payload_len = len;
	if (opcode_get(op)->flags & OPC_FIRST && opcode_get(op)->flags & OPC_LAST)
		pk.dma_len = pk.payload_len;
	raw_send(&r, &pk, NULL);
}

START_TEST(the_opcode_sequence_is_checked)
{
	uint32_t psn = BASE;

	recv_len(4096);
	recv_len(4096);
	if (sequence[_i].first != 0xff)
		packet_of(sequence[_i].first, psn++, 1024);
	raw_clear(&r);
	packet_of(sequence[_i].then, psn, 1024);
	if (sequence[_i].is_legal)
		ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
	else
		is_in_err(NAK_REQ, psn, 0);
}
END_TEST

/* Lengths against the path MTU of 1024, and against the RETH. */
static const struct {
	const char *what;
	uint8_t op;
	uint32_t dma_len, len;
	bool is_legal;
} lengths[] = {
	{ "only beyond the MTU", BTH_WRITE_ONLY, 1025, 1025, false },
	{ "only of the MTU", BTH_WRITE_ONLY, 1024, 1024, true },
	{ "only shorter than its RETH", BTH_WRITE_ONLY, 100, 99, false },
	{ "only longer than its RETH", BTH_WRITE_ONLY, 100, 101, false },
	{ "only of nothing", BTH_WRITE_ONLY, 0, 0, true },
	{ "first short of the MTU", BTH_WRITE_FIRST, 2000, 1020, false },
	{ "first beyond the MTU", BTH_WRITE_FIRST, 3000, 1028, false },
	{ "first of the MTU", BTH_WRITE_FIRST, 2000, 1024, true },
	{ "first that is all", BTH_WRITE_FIRST, 1000, 1024, false },
	{ "SEND first short of the MTU", BTH_SEND_FIRST, 0, 100, false },
	{ "SEND only beyond the MTU", BTH_SEND_ONLY, 0, 1028, false },
};

START_TEST(lengths_are_checked)
{
	recv_len(8192);
	raw_write(&r, lengths[_i].op, BASE, 0, lengths[_i].dma_len, lengths[_i].len);
	if (lengths[_i].is_legal)
		raw_expect_ack(&r, ACK, BASE, lengths[_i].op == BTH_WRITE_ONLY);
	else
		is_in_err(NAK_REQ, BASE, 0);
}
END_TEST

START_TEST(a_write_that_ends_short_of_its_reth_is_refused)
{
	raw_write(&r, BTH_WRITE_FIRST, BASE, 0, 3000, 1024);
	raw_clear(&r);
	raw_write(&r, BTH_WRITE_LAST, BASE + 1, 0, 0, 100);
	is_in_err(NAK_REQ, BASE + 1, 0);
}
END_TEST

START_TEST(a_write_that_goes_on_past_its_reth_is_refused)
{
	raw_write(&r, BTH_WRITE_FIRST, BASE, 0, 2000, 1024);
	raw_clear(&r);
	raw_write(&r, BTH_WRITE_MIDDLE, BASE + 1, 0, 0, 1024);
	is_in_err(NAK_REQ, BASE + 1, 0);
	ck_assert_uint_eq(r.dev.mem.n_writes, 1);
}
END_TEST

START_TEST(a_last_without_payload_is_refused)
{
	raw_write(&r, BTH_WRITE_FIRST, BASE, 0, 1024, 1024);
	raw_clear(&r);
	raw_write(&r, BTH_WRITE_LAST, BASE + 1, 0, 0, 0);
	is_in_err(NAK_REQ, BASE + 1, 0);
}
END_TEST

/* Keys that almost fit: nothing of the message is written, from its first packet on. */
START_TEST(the_whole_range_of_a_write_is_checked_with_its_first_packet)
{
	raw_write(&r, BTH_WRITE_FIRST, BASE, 65536 - 2000, 2001, 1024);
	is_in_err(NAK_ACC, BASE, 0);
	ck_assert_uint_eq(r.dev.mem.n_writes, 0);
}
END_TEST

START_TEST(the_key_is_looked_up_again_for_every_packet)
{
	raw_write(&r, BTH_WRITE_FIRST, BASE, 0, 3000, 1024);
	raw_clear(&r);
	ck_assert_int_eq(fake_dereg(&r.dev, r.mem), 0);
	raw_op(&r, BTH_WRITE_MIDDLE, BASE + 1, 1024);
	is_in_err(NAK_ACC, BASE + 1, 0);
}
END_TEST

START_TEST(a_receive_that_is_late_draws_an_rnr_nak_with_the_qps_code)
{
	raw_op(&r, BTH_SEND_ONLY, BASE, 10);
	raw_expect_ack(&r, 0x20 | 12, BASE, 0);
	raw_op(&r, BTH_SEND_ONLY, BASE + 1, 10);
	raw_expect_none(&r);
	recv_len(64);
	raw_op(&r, BTH_SEND_ONLY, BASE, 10);
	raw_expect_ack(&r, ACK, BASE, 1);
	ck_assert_uint_eq(poll_status(), UROCE_WC_SUCCESS);
}
END_TEST

START_TEST(a_last_with_immediate_waits_for_its_receive_alone)
{
	raw_write(&r, BTH_WRITE_FIRST, BASE, 0, 1500, 1024);
	raw_clear(&r);
	raw_op(&r, BTH_WRITE_LAST_IMM, BASE + 1, 476);
	raw_expect_ack(&r, 0x20 | 12, BASE + 1, 0);
	recv_len(0);
	raw_op(&r, BTH_WRITE_LAST_IMM, BASE + 1, 476);
	raw_expect_ack(&r, ACK, BASE + 1, 1);
	ck_assert_uint_eq(poll_status(), UROCE_WC_SUCCESS);
}
END_TEST

/* Who may talk to the QP at all: nothing of the following has any effect or answer. */
START_TEST(strangers_are_ignored)
{
	struct packet pk = { .opcode = BTH_WRITE_ONLY,
			     .psn = BASE,
			     .va = r.mem->iova,
			     .rkey = r.mem->key,
			     .dma_len = 8,
			     .payload_len = 8,
			     .ack_req = true,
			     .pkey = 0xffff,
			     .dest_qpn = r.qp->qpn };
	struct net_path path = r.inbound;
	struct pktgen other;

	switch (_i) {
	case 0:
		pk.dest_qpn ^= 0x10000;
		break; /* an old generation */
	case 1:
		pk.dest_qpn += 1;
		break;
	case 2:
		pk.pkey = 0x1234;
		break;
	case 3:
		pk.opcode |= BTH_UC;
		break;
	case 4:
		pk.opcode = BTH_UD | BTH_SEND_ONLY;
		break;
	case 5:
		path.sgid[15] ^= 1;
		break;
	case 6:
		path.dgid[15] ^= 1;
		break;
	}
	pktgen_init(&other, &path);
	raw_frame(&r, pktgen_frame(&other, &pk, NULL));
	raw_expect_none(&r);
	ck_assert_uint_eq(r.dev.mem.n_writes, 0);
	ck_assert_int_eq(fake_qp_state(r.qp), UROCE_QPS_RTS);
}
END_TEST

START_TEST(thousands_of_hostile_packets_break_nothing)
{
	uint64_t rng = ck_seed() + (uint64_t)_i;
	struct pktgen_aim aim = {
		.dest_qpn = r.qp->qpn, .rkey = r.mem->key, .mtu = 1024, .va = r.mem->iova + 1000
	};
	struct engine_qp_info info;

	for (int i = 0; i < 400; i++) {
		recv_len(ck_below(&rng, 4000));
		ck_assert_int_eq(engine_qp_info(r.dev.engine, r.qp->qpn, &info), 0);
		aim.psn = info.epsn;
		raw_frame(&r, pktgen_hostile(&r.gen, &rng, &aim));
		raw_clear(&r);
		while (fake_poll(r.cq, &(struct uroce_cqe) { 0 }, 1) > 0)
			;
		if (fake_qp_state(r.qp) == UROCE_QPS_ERR) {
			raw_free(&r);
			setup();
			aim.dest_qpn = r.qp->qpn;
			aim.rkey = r.mem->key;
			aim.va = r.mem->iova + 1000;
		}
	}
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/responder");
	TCase *c = tcase_create("responder");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, a_write_is_placed_and_acknowledged);
	tcase_add_test(c, without_ackreq_there_is_no_ack);
	tcase_add_test(c, an_ack_inside_a_message_repeats_the_old_msn);
	tcase_add_test(c, acks_of_one_burst_become_one);
	tcase_add_test(c, a_gap_draws_one_nak_with_the_expected_psn);
	tcase_add_test(c, a_gap_behind_a_refused_packet_does_not_hide_the_refusal);
	tcase_add_loop_test(c, half_the_circle_is_ahead_and_half_is_behind, 0, N(halves));
	tcase_add_test(c, a_duplicate_write_is_acknowledged_and_not_executed);
	tcase_add_test(c, a_duplicate_send_takes_no_receive);
	tcase_add_loop_test(c, the_opcode_sequence_is_checked, 0, N(sequence));
	tcase_add_loop_test(c, lengths_are_checked, 0, N(lengths));
	tcase_add_test(c, a_write_that_ends_short_of_its_reth_is_refused);
	tcase_add_test(c, a_write_that_goes_on_past_its_reth_is_refused);
	tcase_add_test(c, a_last_without_payload_is_refused);
	tcase_add_test(c, the_whole_range_of_a_write_is_checked_with_its_first_packet);
	tcase_add_test(c, the_key_is_looked_up_again_for_every_packet);
	tcase_add_test(c, a_receive_that_is_late_draws_an_rnr_nak_with_the_qps_code);
	tcase_add_test(c, a_last_with_immediate_waits_for_its_receive_alone);
	tcase_add_loop_test(c, strangers_are_ignored, 0, 7);
	tcase_add_loop_test(c, thousands_of_hostile_packets_break_nothing, 0, 8);
	suite_add_tcase(s, c);
	return s;
}
