/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request streams that Linux rxe got in the captures of tests/vectors, fed to our responder: it
 * answers with the same operations, PSNs, MSNs, syndromes, lengths and results, one answer for each
 * of rxe's. Where we differ, the row says how and why.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/pcap_read.h"
#include "tests/support/raw.h"

#define SILENCE 0xff /* ours, where rxe answers */
#define ANSWERS 512u

/* How the responder's side differs from a plain one. */
enum {
	BAD_KEY = 1,       /* requests name no region of ours, or go past it */
	LOCAL_MR = 2,      /* the region lets nobody else in */
	READONLY_RECV = 4, /* the receives lie in memory that may not be written */
	IN_ERR = 8,
};

struct row {
	const char *file;
	uint32_t mtu;
	uint32_t recvs, recv_len;
	unsigned flags;
	uint32_t access; /* of the QP; 0: all */
	uint8_t drda, rnrt;
	uint8_t lost_op; /* the nth request of that operation never arrived; 0: none */
	uint32_t lost_nth;
	uint32_t late;        /* receives are posted after so many answers */
	uint8_t theirs, ours; /* a syndrome of rxe's that is another one of ours */
	const char *why;
};

/* clang-format off */
static const struct row rows[] = {
	{ "rxe/01_rc_send_sizes", IBV_MTU_1024, 9, 8192 },
	{ "rxe/02_rc_send_imm", IBV_MTU_1024, 3, 8192 },
	{ "rxe/03_rc_write_mtu256", IBV_MTU_256 },
	{ "rxe/03_rc_write_mtu1024", IBV_MTU_1024 },
	{ "rxe/03_rc_write_mtu4096", IBV_MTU_4096 },
	{ "rxe/04_rc_read_mtu256", IBV_MTU_256 },
	{ "rxe/04_rc_read_mtu1024", IBV_MTU_1024 },
	{ "rxe/04_rc_read_mtu4096", IBV_MTU_4096 },
	{ "rxe/05_rc_write_imm", IBV_MTU_1024, 3, 64 },
	{ "rxe/06_rc_atomic", IBV_MTU_1024 },
	{ "rxe/07_rc_pipelined_writes", IBV_MTU_1024 },
	{ "rxe/08_rc_pipelined_reads", IBV_MTU_1024, .drda = 4 },
	{ "rxe/11_rc_rnr_exceeded", IBV_MTU_1024, .rnrt = 14 },
	{ "rxe/12_rc_nak_rem_access", IBV_MTU_1024, .flags = BAD_KEY },
	{ "rxe/13_rc_nak_inv_req", IBV_MTU_1024, .access = UROCE_ACCESS_LOCAL_WRITE },
	{ "rxe/14_rc_nak_rem_op", IBV_MTU_1024, 1, 32, .theirs = 0x63, .ours = 0x61,
	  .why = "IBA 9.7.4.1.7: a message longer than its receive is an invalid request" },
	{ "rxe/20_drop_write_middle", IBV_MTU_1024, .lost_op = BTH_WRITE_MIDDLE, .lost_nth = 2 },
	{ "rxe/21_drop_write_last", IBV_MTU_1024, .lost_op = BTH_WRITE_LAST, .lost_nth = 1 },
	{ "rxe/22_drop_ack", IBV_MTU_1024 },
	{ "rxe/24_drop_read_req", IBV_MTU_1024, .lost_op = BTH_READ_REQUEST, .lost_nth = 1 },
	{ "rxe/28_bad_icrc", IBV_MTU_1024, .lost_op = BTH_WRITE_MIDDLE, .lost_nth = 1 },
	{ "rxe/31_ecn_ce", IBV_MTU_1024 },
	{ "rxe/43_rc_ipv6", IBV_MTU_1024, 1, 64 },
	{ "rxe/45_rc_srq", IBV_MTU_1024, 2, 64 },
	{ "rxe-faults/01_write_bad_rkey_key", IBV_MTU_1024, .flags = BAD_KEY },
	{ "rxe-faults/02_write_bad_rkey_index", IBV_MTU_1024, .flags = BAD_KEY },
	{ "rxe-faults/04_write_past_mr_end", IBV_MTU_1024, .flags = BAD_KEY },
	{ "rxe-faults/05_read_past_mr_end", IBV_MTU_1024, .flags = BAD_KEY },
	{ "rxe-faults/06_write_mr_no_remote_write", IBV_MTU_1024, .flags = LOCAL_MR },
	{ "rxe-faults/07_read_mr_no_remote_read", IBV_MTU_1024, .flags = LOCAL_MR },
	{ "rxe-faults/09_write_qp_no_remote_write", IBV_MTU_1024, .access = UROCE_ACCESS_REMOTE_READ },
	{ "rxe-faults/09b_read_qp_no_remote_read", IBV_MTU_1024, .access = UROCE_ACCESS_REMOTE_WRITE },
	{ "rxe-faults/12_no_recv_rnr3_timer", IBV_MTU_1024, .rnrt = 20 },
	{ "rxe-faults/13_no_recv_rnr7_late_recv", IBV_MTU_1024, 1, 64, .rnrt = 14, .late = 40 },
	{ "rxe-faults/15_recv_too_small", IBV_MTU_1024, 1, 32, .theirs = 0x63, .ours = 0x61,
	  .why = "as 14" },
	{ "rxe-faults/15b_recv_too_small_multi_pkt", IBV_MTU_1024, 1, 1500, .theirs = 0x63, .ours = 0x61,
	  .why = "as 14" },
	{ "rxe-faults/16b_recv_mr_not_writable", IBV_MTU_1024, 1, 64, .flags = READONLY_RECV },
	{ "rxe-faults/21_remote_qp_err", IBV_MTU_1024, .flags = IN_ERR },
	{ "rxe-faults/26_write_len0_bad_rkey", IBV_MTU_1024, .flags = BAD_KEY },
	{ "rxe-faults/27b_send_len0", IBV_MTU_1024, 1, 64 },
	{ "rxe-faults/28_read_depth_over_responder", IBV_MTU_1024, .drda = 1 },
	{ "rxe-faults/30_read_with_drda0", IBV_MTU_1024, .drda = 0xff },
	{ "rxe-faults/34_send_inv_bad_rkey", IBV_MTU_1024, 1, 64, .theirs = 0x1f, .ours = SILENCE,
	  .why = "IBA 9.9.6.3: a key that cannot be invalidated is an error of class J, without an answer" },
	{ "rxe-faults/36_remote_mr_deregistered", IBV_MTU_1024, .flags = BAD_KEY },
	{ "rxe-faults/37_mtu_mismatch_sender_bigger", IBV_MTU_256, 1, 1024, .theirs = 0x1f, .ours = 0x61,
	  .why = "IBA 9.7.4.1.6: payload beyond the path MTU is an invalid request" },
	{ "rxe-faults/38_cq_overflow", IBV_MTU_1024 },
	{ "rxe-faults/42_srq_no_recv_rnr0", IBV_MTU_1024 },
};
/* clang-format on */

struct answer {
	uint8_t op, syndrome;
	uint32_t psn, msn, len;
	uint64_t orig;
};

static struct raw r;
static struct answer want[ANSWERS];
static uint32_t n_want, n_got;
static struct fake_region *recv_mem;
static uint64_t va_base;
static uint32_t lost_seen;

static bool is_answer(const struct packet *pk)
{
	return opcode_get(pk->opcode)->flags & OPC_RESPONSE;
}

static bool has_aeth(const struct packet *pk)
{
	return opcode_get(pk->opcode)->flags & OPC_AETH;
}

static void post_recvs(const struct row *row)
{
	for (uint32_t i = 0; i < row->recvs; i++) {
		struct uroce_sge sge = fake_sge(recv_mem, i * row->recv_len, row->recv_len);

		ck_assert(fake_post_recv(r.qp, i, &sge, 1));
	}
}

static void start(const struct row *row, uint32_t rq_psn)
{
	struct raw_conf conf = { .mtu = row->mtu,
				 .rq_psn = rq_psn,
				 .access = row->access,
				 .dest_rd_atomic = row->drda,
				 .min_rnr_timer = row->rnrt,
				 .mem = 1 << 19 };

	raw_init(&r, &conf);
	if (row->flags & LOCAL_MR) {
		ck_assert_int_eq(fake_dereg(&r.dev, r.mem), 0);
		r.mem = fake_reg(&r.dev, 1 << 19, UROCE_ACCESS_LOCAL_WRITE);
	}
	memset(r.mem->mem, 0, 65536 + 16); /* 06: the atomics' word is 0 */
	recv_mem = fake_reg(&r.dev, 1 << 17,
			    row->flags & READONLY_RECV ? 0 : UROCE_ACCESS_LOCAL_WRITE);
	if (!row->late)
		post_recvs(row);
	if (row->flags & IN_ERR)
		ck_assert_int_eq(fake_qp_to(r.qp, UROCE_QPS_ERR), 0);
}

/* The same request for our QP and our region: numbers and addresses are ours, all else is rxe's. */
static void feed(const struct row *row, const struct packet *in)
{
	static uint8_t payload[FRAME_PAYLOAD];
	struct packet pk = *in;
	uint32_t at = 0;

	for (uint32_t i = 0; i < in->n_segs; at += in->seg[i++].len)
		memcpy(payload + at, in->seg[i].base, in->seg[i].len);
	if (opcode_get(pk.opcode)->flags & (OPC_RETH | OPC_ATOMICETH)) {
		if (!va_base)
			va_base = pk.va & ~0xffffull;
		pk.va = r.mem->iova + (pk.va - va_base);
		pk.rkey = row->flags & BAD_KEY ? r.mem->key ^ 1 : r.mem->key;
	}
	raw_send(&r, &pk, payload);
}

static void judge(const struct row *row)
{
	for (; n_got < r.n_answers; n_got++) {
		const struct packet *a = &r.answer[n_got];
		struct answer w;

		ck_assert_msg(n_got < n_want,
			      "an answer more than rxe's: op 0x%x psn %06x syndrome 0x%x",
			      a->opcode, a->psn, a->syndrome);
		w = want[n_got];
		if (row->why && w.syndrome == row->theirs)
			w.syndrome = row->ours;
		ck_assert_uint_eq(a->opcode, w.op);
		ck_assert_uint_eq(a->psn, w.psn);
		ck_assert_uint_eq(a->payload_len, w.len);
		ck_assert_uint_eq(a->atomic_orig, w.orig);
		if (!has_aeth(a))
			continue;
		ck_assert_msg(a->syndrome == w.syndrome, "psn %06x: syndrome 0x%x, rxe's 0x%x",
			      a->psn, a->syndrome, w.syndrome);
		if (!row->why) /* where rxe accepted what we refuse, the count differs too */
			ck_assert_uint_eq(a->msn, w.msn);
	}
}

/* Two passes over the capture: what rxe answered, then its requests to us. */
static void pass(const struct row *row, bool is_feeding)
{
	static struct pcap_reader p;
	char path[512];
	uint8_t responder[16];
	bool begun = false;

	snprintf(path, sizeof(path), "%s/%s.pcap", VECTORS_DIR, row->file);
	ck_assert_int_eq(pcap_open(&p, path), 0);
	while (pcap_next(&p) == 1) {
		struct frame f = { .head = p.bytes, .head_len = p.len };
		struct packet pk;

		if (packet_parse(&pk, &f, true) != PACKET_OK)
			continue;
		if (!begun) {
			memcpy(responder, pk.net.dgid, 16);
			if (is_feeding)
				start(row, pk.psn);
			begun = true;
		}
		if (row->ours == SILENCE && is_answer(&pk) && pk.syndrome == row->theirs)
			continue;
		if (!is_feeding && is_answer(&pk) && !memcmp(pk.net.sgid, responder, 16)) {
			ck_assert_uint_lt(n_want, ANSWERS);
			want[n_want++] =
				(struct answer) { pk.opcode, pk.syndrome,    pk.psn,
						  pk.msn,    pk.payload_len, pk.atomic_orig };
		}
		if (!is_feeding || is_answer(&pk) || memcmp(pk.net.dgid, responder, 16))
			continue;
		if (row->lost_op && (pk.opcode & 0x1f) == row->lost_op &&
		    ++lost_seen == row->lost_nth)
			continue;
		if (row->late && n_got == row->late)
			post_recvs(row);
		feed(row, &pk);
		judge(row);
	}
	pcap_close(&p);
}

START_TEST(our_responder_answers_as_rxe_did)
{
	const struct row *row = &rows[_i];

	pass(row, false);
	pass(row, true);
	ck_assert_msg(n_got == n_want, "%s: %u answers, rxe gave %u", row->file, n_got, n_want);
	raw_free(&r);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/golden");
	TCase *c = tcase_create("golden");

	tcase_add_loop_test(c, our_responder_answers_as_rxe_did, 0,
			    (int)(sizeof(rows) / sizeof(rows[0])));
	suite_add_tcase(s, c);
	return s;
}
