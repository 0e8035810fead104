/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the truth table where R refuses the request, or is not there to answer it. */
#include <infiniband/verbs.h>

#include "tests/sim/truth.h"

#define LW UROCE_ACCESS_LOCAL_WRITE
#define RW UROCE_ACCESS_REMOTE_WRITE
#define RR UROCE_ACCESS_REMOTE_READ
#define RA UROCE_ACCESS_REMOTE_ATOMIC

#define OPERATION(name, opcode, len)                 \
	static struct fake_wr name(struct truth *t)  \
	{                                            \
		return truth_wr(t, (opcode), (len)); \
	}
OPERATION(a_write, UROCE_WR_WRITE, 64)
OPERATION(a_long_write, UROCE_WR_WRITE, 5000)
OPERATION(a_read, UROCE_WR_READ, 3000)
OPERATION(an_atomic, UROCE_WR_FETCH_ADD, 8)
OPERATION(a_send, UROCE_WR_SEND, 64)
OPERATION(a_write_imm, UROCE_WR_WRITE_IMM, 64)

static void unknown_key(struct truth *t, struct fake_wr wr)
{
	wr.rkey ^= 1;
	truth_post(t, wr);
}

static void write_rkey(struct truth *t)
{
	unknown_key(t, a_write(t));
}

static void read_rkey(struct truth *t)
{
	unknown_key(t, a_read(t));
}

static void atomic_rkey(struct truth *t)
{
	unknown_key(t, an_atomic(t));
}

static void write_nothing_rkey(struct truth *t)
{
	unknown_key(t, truth_wr(t, UROCE_WR_WRITE, 0));
}

static void read_nothing_rkey(struct truth *t)
{
	unknown_key(t, truth_wr(t, UROCE_WR_READ, 0));
}

/* To a region of its own at R. */
static void to_region(struct truth *t, struct fake_wr wr, uint32_t access, uint32_t pd,
		      bool is_gone)
{
	struct fake_region *m = fake_reg_pd(&t->s.p.dev[1], 8192, access, pd);

	wr.remote_addr = m->iova;
	wr.rkey = m->key;
	if (is_gone)
		ck_assert_int_eq(fake_dereg(&t->s.p.dev[1], m), 0);
	truth_post(t, wr);
}

static void write_pd(struct truth *t)
{
	to_region(t, a_write(t), LW | RW | RR | RA, 2, false);
}

static void write_gone(struct truth *t)
{
	to_region(t, a_write(t), LW | RW | RR | RA, 1, true);
}

static void write_no_access(struct truth *t)
{
	to_region(t, a_write(t), LW | RR | RA, 1, false);
}

static void read_no_access(struct truth *t)
{
	to_region(t, a_read(t), LW | RW | RA, 1, false);
}

static void atomic_no_access(struct truth *t)
{
	to_region(t, an_atomic(t), LW | RW | RR, 1, false);
}

static void before(struct truth *t, struct fake_wr wr)
{
	wr.remote_addr = t->s.mem[1]->iova - 1;
	truth_post(t, wr);
}

static void past(struct truth *t, struct fake_wr wr, uint32_t len)
{
	wr.remote_addr = t->s.mem[1]->iova + t->s.mem[1]->len - len + 1;
	truth_post(t, wr);
}

static void write_before(struct truth *t)
{
	before(t, a_write(t));
}

static void read_before(struct truth *t)
{
	before(t, a_read(t));
}

static void write_past(struct truth *t)
{
	past(t, a_write(t), 64);
}

static void read_past(struct truth *t)
{
	past(t, a_read(t), 3000);
}

static void long_write_past(struct truth *t)
{
	past(t, a_long_write(t), 5000);
}

static void atomic_past(struct truth *t)
{
	past(t, an_atomic(t), 1); /* aligned: right behind the last word */
}

static void write_over_all(struct truth *t)
{
	struct fake_wr wr = a_write(t);

	wr.remote_addr = UINT64_MAX - 10;
	truth_post(t, wr);
}

static void do_write(struct truth *t)
{
	truth_post(t, a_write(t));
}

static void do_long_write(struct truth *t)
{
	truth_post(t, a_long_write(t));
}

static void do_read(struct truth *t)
{
	truth_post(t, a_read(t));
}

static void do_atomic(struct truth *t)
{
	truth_post(t, an_atomic(t));
}

static void do_send(struct truth *t)
{
	truth_post(t, a_send(t));
}

static void do_write_imm(struct truth *t)
{
	truth_post(t, a_write_imm(t));
}

static void do_atomic_write(struct truth *t, uint64_t off)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_ATOMIC_WRITE, 0);

	wr.remote_addr += off;
	truth_post(t, wr);
}

static void atomic_misaligned(struct truth *t)
{
	struct fake_wr wr = an_atomic(t);

	wr.remote_addr += 4;
	truth_post(t, wr);
}

static void atomic_write_misaligned(struct truth *t)
{
	do_atomic_write(t, 4);
}

#define RF UROCE_ACCESS_FLUSH_GLOBAL

/* Of R's memory, or of a region that may be flushed; bits: the FETH's. */
static void flush(struct truth *t, uint32_t access, uint32_t bits, uint64_t off, uint64_t len)
{
	struct fake_region *m = fake_reg_pd(&t->s.p.dev[1], 8192, access, 1);
	struct fake_wr wr = truth_wr(t, UROCE_WR_FLUSH, 0);

	wr.remote_addr = m->iova + off;
	wr.rkey = m->key;
	wr.compare_add = len;
	wr.imm = bits;
	truth_post(t, wr);
}

static void flush_range(struct truth *t)
{
	flush(t, RF, FETH_GLOBAL, 0, 8192);
}

static void flush_region(struct truth *t)
{
	flush(t, RF, FETH_GLOBAL | FETH_REGION, 100000, 0); /* the range is not looked at */
}

static void flush_past(struct truth *t)
{
	flush(t, RF, FETH_GLOBAL, 1, 8192);
}

static void flush_no_access(struct truth *t)
{
	flush(t, LW | RW | RR, FETH_GLOBAL, 0, 64);
}

static void flush_persistent(struct truth *t)
{
	flush(t, RF, FETH_GLOBAL | FETH_PERSISTENT, 0, 64);
}

/* R's first receive is bad; a good one behind it. */
static void send_to(struct truth *t, struct uroce_sge sge)
{
	truth_recv(t, 1, sge);
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 4096));
	do_send(t);
}

static void recv_short(struct truth *t)
{
	send_to(t, fake_sge(t->s.mem[1], 0, 63));
}

static void recv_lkey(struct truth *t)
{
	struct uroce_sge sge = fake_sge(t->s.mem[1], 0, 64);

	sge.lkey ^= 0x5500;
	send_to(t, sge);
}

static void recv_readonly(struct truth *t)
{
	send_to(t, fake_sge(fake_reg(&t->s.p.dev[1], 4096, 0), 0, 64));
}

static void recv_sges(struct truth *t)
{
	static struct uroce_sge none[UROCE_MAX_SGE];

	truth_recv_list(t, 1, none, t->s.qp[1]->cap.max_recv_sge + 1);
	do_send(t);
}

static void recv_memory_gone(struct truth *t)
{
	struct fake_region *m = fake_reg(&t->s.p.dev[1], 4096, LW);

	m->broken = true;
	send_to(t, fake_sge(m, 0, 64));
}

static void remote_memory_gone(struct truth *t, struct fake_wr wr)
{
	struct fake_region *m = fake_reg(&t->s.p.dev[1], 8192, LW | RW | RR | RA);

	m->broken = true;
	wr.remote_addr = m->iova;
	wr.rkey = m->key;
	truth_post(t, wr);
}

static void write_memory_gone(struct truth *t)
{
	remote_memory_gone(t, a_long_write(t));
}

static void read_memory_gone(struct truth *t)
{
	remote_memory_gone(t, a_read(t));
}

static void atomic_memory_gone(struct truth *t)
{
	remote_memory_gone(t, an_atomic(t));
}

/* The receive comes after the first refusals. */
static void receive_later(struct truth *t)
{
	scene_run_ms(&t->s, 20);
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 4096));
}

static void send_receive_later(struct truth *t)
{
	do_send(t);
	receive_later(t);
}

static void write_imm_receive_later(struct truth *t)
{
	do_write_imm(t);
	receive_later(t);
}

static void send_peer_err(struct truth *t)
{
	ck_assert_int_eq(fake_qp_to(t->s.qp[1], UROCE_QPS_ERR), 0);
	do_send(t);
}

static void send_peer_reset(struct truth *t)
{
	ck_assert_int_eq(fake_qp_to(t->s.qp[1], UROCE_QPS_RESET), 0);
	do_send(t);
}

static void peer_destroyed(struct truth *t)
{
	ck_assert_int_eq(fake_qp_del(t->s.qp[1]), 0);
	t->s.qp[1] = NULL;
}

static void send_peer_gone(struct truth *t)
{
	peer_destroyed(t);
	do_send(t);
}

/* What the daemon does when a process dies: first its memory fails, then all it had is destroyed.
 */
static void peer_killed(struct truth *t)
{
	scene_run_ms(&t->s, 1);
	do_long_write(t);
	pair_turn(&t->s.p);
	t->s.mem[1]->broken = true;
	peer_destroyed(t);
	ck_assert_int_eq(fake_dereg(&t->s.p.dev[1], t->s.mem[1]), 0);
}

static void wire_cut(struct truth *t)
{
	t->s.p.link.is_cut = true;
	do_send(t);
}

/* R has a smaller path MTU. */
static void small_mtu(struct truth *t)
{
	struct pair_rc rc = { .mtu = IBV_MTU_256 };

	ck_assert_int_eq(fake_qp_to(t->s.qp[1], UROCE_QPS_RESET), 0);
	ck_assert_int_eq(pair_to_rtr(&t->s.p, t->s.qp[1], t->s.qp[0]->qpn, &rc), 0);
	ck_assert_int_eq(pair_to_rts(&t->s.p, t->s.qp[1], &rc), 0);
}

#define RC(...)                                                    \
	{                                                          \
		.rc = {.timeout = 6, .retry_cnt = 2, __VA_ARGS__ } \
	}
#define PLAIN(name, run)                                   \
	{                                                  \
		(name), NULL, (run), 0, RC(.rd_atomic = 8) \
	}
#define OWN_RECVS(name, run)                                           \
	{                                                              \
		(name), NULL, (run), TRUTH_NO_RECV, RC(.rd_atomic = 8) \
	}

/* clang-format off */
static const struct truth_case cases[] = {
	PLAIN("WRITE, rkey unknown", write_rkey),
	PLAIN("READ, rkey unknown", read_rkey),
	PLAIN("atomic, rkey unknown", atomic_rkey),
	PLAIN("WRITE, rkey of another PD", write_pd),
	PLAIN("WRITE, region deregistered", write_gone),
	PLAIN("WRITE before the region", write_before),
	PLAIN("READ before the region", read_before),
	PLAIN("WRITE past the region", write_past),
	PLAIN("READ past the region", read_past),
	PLAIN("atomic past the region", atomic_past),
	PLAIN("WRITE over the end of the address space", write_over_all),
	PLAIN("WRITE of many packets past the region", long_write_past),
	PLAIN("WRITE, region without remote write", write_no_access),
	PLAIN("READ, region without remote read", read_no_access),
	PLAIN("atomic, region without remote atomic", atomic_no_access),
	{ "WRITE, QP without remote write", NULL, do_write, TRUTH_ALONE, RC(.access = RR | RA) },
	{ "READ, QP without remote read", NULL, do_read, 0, RC(.access = RW | RA) },
	{ "atomic, QP without remote atomic", NULL, do_atomic, 0, RC(.access = RW | RR) },
	PLAIN("atomic, misaligned", atomic_misaligned),
	PLAIN("ATOMIC WRITE, misaligned", atomic_write_misaligned),
	{ "FLUSH of a range", NULL, flush_range, 0, RC(.access = RF | RW | RR | RA, .rd_atomic = 8) },
	{ "FLUSH of a region", NULL, flush_region, 0, RC(.access = RF | RW | RR | RA, .rd_atomic = 8) },
	{ "FLUSH past the region", NULL, flush_past, 0, RC(.access = RF | RW | RR | RA, .rd_atomic = 8) },
	{ "FLUSH, region without flush", NULL, flush_no_access, 0, RC(.access = RF | RW | RR | RA, .rd_atomic = 8) },
	{ "FLUSH, QP without flush", NULL, flush_range, 0, RC(.access = RW | RR, .rd_atomic = 8) },
	{ "FLUSH to persistence", NULL, flush_persistent, 0, RC(.access = RF | RW | RR | RA, .rd_atomic = 8) },
	{ "READ, max_dest_rd_atomic 0", NULL, do_read, 0, RC(.dest_rd_atomic = 0xff) },
	PLAIN("WRITE of zero bytes, rkey unknown", write_nothing_rkey),
	PLAIN("READ of zero bytes, rkey unknown", read_nothing_rkey),
	PLAIN("WRITE, remote memory gone", write_memory_gone),
	PLAIN("READ, remote memory gone", read_memory_gone),
	PLAIN("atomic, remote memory gone", atomic_memory_gone),
	{ "path MTU of L larger than R's", small_mtu, do_long_write, 0, RC(.mtu = IBV_MTU_1024) },
	OWN_RECVS("SEND, receive too short", recv_short),
	OWN_RECVS("SEND, receive with unknown lkey", recv_lkey),
	OWN_RECVS("SEND, receive in a region without local write", recv_readonly),
	OWN_RECVS("SEND, receive with too many entries", recv_sges),
	OWN_RECVS("SEND, memory of the receive gone", recv_memory_gone),
	{ "SEND, no receive, rnr_retry 0", NULL, do_send, TRUTH_NO_RECV, RC(.rnr_retry = 0xff) },
	{ "SEND, no receive, rnr_retry 3", NULL, do_send, TRUTH_NO_RECV, RC(.rnr_retry = 3) },
	{ "SEND, no receive, rnr_retry 7, receive later", NULL, send_receive_later, TRUTH_NO_RECV, RC(.rnr_retry = 7) },
	{ "WRITE with immediate, no receive, rnr_retry 0", NULL, do_write_imm, TRUTH_NO_RECV, RC(.rnr_retry = 0xff) },
	{ "WRITE with immediate, no receive, rnr_retry 7, receive later", NULL, write_imm_receive_later, TRUTH_NO_RECV, RC(.rnr_retry = 7) },
	{ "SEND, remote QP in ERR", NULL, send_peer_err, TRUTH_ALONE, RC(.rd_atomic = 8) },
	{ "SEND, remote QP in RESET", NULL, send_peer_reset, TRUTH_ALONE, RC(.rd_atomic = 8) },
	{ "SEND, remote QP destroyed", NULL, send_peer_gone, TRUTH_ALONE, RC(.rd_atomic = 8) },
	{ "remote process killed", NULL, peer_killed, 0, { .pair = { .link = { .delay_ns = 5000 } }, .rc = { .timeout = 6, .retry_cnt = 2 } } },
	{ "remote device removed, or nobody at the other end", NULL, wire_cut, TRUTH_ALONE, RC(.rd_atomic = 8) },
};
/* clang-format on */

const struct truth_list truth_remote = { cases, sizeof(cases) / sizeof(cases[0]) };
