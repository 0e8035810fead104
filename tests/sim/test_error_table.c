/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The error truth table: for every misuse what both applications see. A is the requester, B the
 * responder. Where Linux rxe answers otherwise, the specification is followed (IBA vol. 1, 9.9.2
 * and 9.9.3, tables "Requester/Responder Side Error Behavior").
 */
#include <infiniband/verbs.h>

#include "tests/sim/scene.h"

#define NO_RECV 0xffu
#define LW      UROCE_ACCESS_LOCAL_WRITE
#define RW      UROCE_ACCESS_REMOTE_WRITE
#define RR      UROCE_ACCESS_REMOTE_READ
#define RA      UROCE_ACCESS_REMOTE_ATOMIC

static struct scene s;

/* What a row changes of a good WR, a good receive, or the stage. */
enum twist {
	T_NONE,
	T_LKEY,
	T_LKEY_PD,
	T_LKEY_REAR,
	T_LKEY_FRONT,
	T_LKEY_READONLY,
	T_LKEY_GONE,
	T_RKEY,
	T_RKEY_PD,
	T_REAR,
	T_FRONT,
	T_MR_LOCAL_ONLY,
	T_RKEY_GONE,
	T_WRAP,
	T_MISALIGNED,
	T_RECV_SHORT,
	T_RECV_LKEY,
	T_RECV_READONLY,
	T_RECV_SGES,
	T_PEER_ERR,
	T_PEER_RESET,
	T_PEER_GONE,
	T_PEER_DEAD,
	T_SELF_DEAD,
	T_INLINE_LONG,
	T_SGES,
	T_OPCODE,
	T_ATOMIC_LEN,
	T_TOO_LONG,
	T_EMPTY,
};

struct row {
	const char *name;
	uint8_t opcode;
	uint32_t len;
	enum twist twist;
	uint32_t qp_access; /* of B's QP; 0: all */
	uint8_t rda, drda;  /* as in struct pair_rc */
	uint8_t status;     /* A's completion */
	uint32_t verr;
	uint8_t recv; /* B's receive: status, or NO_RECV: none completes */
	enum uroce_qps a, b;
	int event; /* B's, -1: none */
	bool nothing_sent;
};

#define RTS    UROCE_QPS_RTS
#define ERR    UROCE_QPS_ERR
#define ACCESS UROCE_EVENT_QP_ACCESS_ERR
#define INVREQ UROCE_EVENT_QP_REQ_ERR

/* clang-format off */
static const struct row rows[] = {
	/* name                          opcode               len   twist            qp  rda drda  A's status                   verr                     B's receive           A    B    event  sent? */
	/* local: nothing goes out */
	{ "unknown lkey, SEND",          UROCE_WR_SEND,       3000, T_LKEY,          0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY,         NO_RECV,              ERR, RTS, -1, true },
	{ "unknown lkey, WRITE",         UROCE_WR_WRITE,      64,   T_LKEY,          0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY,         NO_RECV,              ERR, RTS, -1, true },
	{ "unknown lkey, READ",          UROCE_WR_READ,       64,   T_LKEY,          0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY,         NO_RECV,              ERR, RTS, -1, true },
	{ "lkey of another PD",          UROCE_WR_WRITE,      64,   T_LKEY_PD,       0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY,         NO_RECV,              ERR, RTS, -1, true },
	{ "lkey past the end",           UROCE_WR_WRITE,      64,   T_LKEY_REAR,     0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY_BOUNDS,  NO_RECV,              ERR, RTS, -1, true },
	{ "lkey before the start",       UROCE_WR_WRITE,      64,   T_LKEY_FRONT,    0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY_BOUNDS,  NO_RECV,              ERR, RTS, -1, true },
	{ "lkey of freed memory",        UROCE_WR_WRITE,      64,   T_LKEY_GONE,     0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY,         NO_RECV,              ERR, RTS, -1, true },
	{ "READ into read-only memory",  UROCE_WR_READ,       64,   T_LKEY_READONLY, 0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_LKEY_ACCESS,  NO_RECV,              ERR, RTS, -1, true },
	{ "WRITE from read-only memory", UROCE_WR_WRITE,      64,   T_LKEY_READONLY, 0,  0, 0, UROCE_WC_SUCCESS,            0,                       NO_RECV,              RTS, RTS, -1, false },
	{ "own memory unreachable",      UROCE_WR_WRITE,      64,   T_SELF_DEAD,     0,  0, 0, UROCE_WC_LOC_PROT_ERR,       UROCE_VERR_APP_MEMORY,   NO_RECV,              ERR, RTS, -1, true },
	{ "inline beyond max_inline",    UROCE_WR_WRITE,      257,  T_INLINE_LONG,   0,  0, 0, UROCE_WC_LOC_LEN_ERR,        UROCE_VERR_WQE,          NO_RECV,              ERR, RTS, -1, true },
	{ "more SGEs than max_send_sge", UROCE_WR_WRITE,      64,   T_SGES,          0,  0, 0, UROCE_WC_LOC_QP_OP_ERR,      UROCE_VERR_WQE,          NO_RECV,              ERR, RTS, -1, true },
	{ "unknown opcode",              200,                 64,   T_OPCODE,        0,  0, 0, UROCE_WC_LOC_QP_OP_ERR,      UROCE_VERR_WQE,          NO_RECV,              ERR, RTS, -1, true },
	{ "atomic of 4 bytes",           UROCE_WR_FETCH_ADD,  4,    T_ATOMIC_LEN,    0,  0, 0, UROCE_WC_LOC_LEN_ERR,        UROCE_VERR_WQE,          NO_RECV,              ERR, RTS, -1, true },
	{ "more than 2 GiB",             UROCE_WR_WRITE,      64,   T_TOO_LONG,      0,  0, 0, UROCE_WC_LOC_LEN_ERR,        UROCE_VERR_WQE,          NO_RECV,              ERR, RTS, -1, true },
	{ "READ with max_rd_atomic 0",   UROCE_WR_READ,       64,   T_NONE,          0,  0xff, 8, UROCE_WC_LOC_QP_OP_ERR,   UROCE_VERR_NO_RD_ATOMIC, NO_RECV,              ERR, RTS, -1, true },
	/* remote access */
	{ "unknown rkey, WRITE",         UROCE_WR_WRITE,      3000, T_RKEY,          0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "unknown rkey, READ",          UROCE_WR_READ,       3000, T_RKEY,          0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "unknown rkey, FETCH_ADD",     UROCE_WR_FETCH_ADD,  8,    T_RKEY,          0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "rkey of another PD",          UROCE_WR_WRITE,      64,   T_RKEY_PD,       0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "WRITE past the end",          UROCE_WR_WRITE,      3000, T_REAR,          0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "READ past the end",           UROCE_WR_READ,       3000, T_REAR,          0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "CMP_SWAP past the end",       UROCE_WR_CMP_SWAP,   8,    T_REAR,          0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "WRITE before the start",      UROCE_WR_WRITE,      64,   T_FRONT,         0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "READ before the start",       UROCE_WR_READ,       64,   T_FRONT,         0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "WRITE over the end of all",   UROCE_WR_WRITE,      64,   T_WRAP,          0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "MR without REMOTE_WRITE",     UROCE_WR_WRITE,      64,   T_MR_LOCAL_ONLY, 0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "MR without REMOTE_READ",      UROCE_WR_READ,       64,   T_MR_LOCAL_ONLY, 0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "MR without REMOTE_ATOMIC",    UROCE_WR_FETCH_ADD,  8,    T_MR_LOCAL_ONLY, 0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	{ "MR deregistered",             UROCE_WR_WRITE,      64,   T_RKEY_GONE,     0,  0, 0, UROCE_WC_REM_ACCESS_ERR,     UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, ACCESS, false },
	/* remote invalid request */
	{ "QP without REMOTE_WRITE",     UROCE_WR_WRITE,      64,   T_NONE,          RR, 0, 0, UROCE_WC_REM_INV_REQ_ERR,    UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, INVREQ, false },
	{ "QP without REMOTE_READ",      UROCE_WR_READ,       64,   T_NONE,          RW, 0, 0, UROCE_WC_REM_INV_REQ_ERR,    UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, INVREQ, false },
	{ "QP without REMOTE_ATOMIC",    UROCE_WR_CMP_SWAP,   8,    T_NONE,          RW, 0, 0, UROCE_WC_REM_INV_REQ_ERR,    UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, INVREQ, false },
	{ "misaligned atomic",           UROCE_WR_FETCH_ADD,  8,    T_MISALIGNED,    0,  0, 0, UROCE_WC_REM_INV_REQ_ERR,    UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, INVREQ, false },
	{ "READ, max_dest_rd_atomic 0",  UROCE_WR_READ,       64,   T_NONE,          0,  8, 0xff, UROCE_WC_REM_INV_REQ_ERR, UROCE_VERR_NAK,          NO_RECV,              ERR, ERR, INVREQ, false },
	{ "receive too short",           UROCE_WR_SEND,       65,   T_RECV_SHORT,    0,  0, 0, UROCE_WC_REM_INV_REQ_ERR,    UROCE_VERR_NAK,          UROCE_WC_LOC_LEN_ERR, ERR, ERR, -1, false },
	{ "receive too short, 3 packets", UROCE_WR_SEND,      3000, T_RECV_SHORT,    0,  0, 0, UROCE_WC_REM_INV_REQ_ERR,    UROCE_VERR_NAK,          UROCE_WC_LOC_LEN_ERR, ERR, ERR, -1, false },
	/* remote operation error */
	{ "receive with unknown lkey",   UROCE_WR_SEND,       64,   T_RECV_LKEY,     0,  0, 0, UROCE_WC_REM_OP_ERR,         UROCE_VERR_NAK,          UROCE_WC_LOC_PROT_ERR, ERR, ERR, -1, false },
	{ "receive not writable",        UROCE_WR_SEND,       64,   T_RECV_READONLY, 0,  0, 0, UROCE_WC_REM_OP_ERR,         UROCE_VERR_NAK,          UROCE_WC_LOC_PROT_ERR, ERR, ERR, -1, false },
	{ "receive with too many SGEs",  UROCE_WR_SEND,       64,   T_RECV_SGES,     0,  0, 0, UROCE_WC_REM_OP_ERR,         UROCE_VERR_NAK,          UROCE_WC_LOC_QP_OP_ERR, ERR, ERR, -1, false },
	/* nobody answers */
	{ "remote QP in ERR",            UROCE_WR_WRITE,      64,   T_PEER_ERR,      0,  0, 0, UROCE_WC_RETRY_EXC_ERR,      UROCE_VERR_TIMEOUT,      NO_RECV,              ERR, ERR, -1, false },
	{ "remote QP in RESET",          UROCE_WR_WRITE,      64,   T_PEER_RESET,    0,  0, 0, UROCE_WC_RETRY_EXC_ERR,      UROCE_VERR_TIMEOUT,      NO_RECV,              ERR, UROCE_QPS_RESET, -1, false },
	{ "remote QP destroyed",         UROCE_WR_READ,       64,   T_PEER_GONE,     0,  0, 0, UROCE_WC_RETRY_EXC_ERR,      UROCE_VERR_TIMEOUT,      NO_RECV,              ERR, RTS, -1, false },
	/* no error at all */
	{ "nothing wrong",               UROCE_WR_WRITE,      3000, T_NONE,          0,  0, 0, UROCE_WC_SUCCESS,            0,                       NO_RECV,              RTS, RTS, -1, false },
	{ "nothing wrong, SEND",         UROCE_WR_SEND,       3000, T_NONE,          0,  0, 0, UROCE_WC_SUCCESS,            0,                       UROCE_WC_SUCCESS,     RTS, RTS, -1, false },
	{ "WRITE of nothing, bad rkey",  UROCE_WR_WRITE,      0,    T_RKEY,          0,  0, 0, UROCE_WC_SUCCESS,            0,                       NO_RECV,              RTS, RTS, -1, false },
	{ "READ of nothing, bad rkey",   UROCE_WR_READ,       0,    T_RKEY,          0,  0, 0, UROCE_WC_SUCCESS,            0,                       NO_RECV,              RTS, RTS, -1, false },
	{ "WRITE of nothing, bad lkey",  UROCE_WR_WRITE,      0,    T_LKEY,          0,  0, 0, UROCE_WC_SUCCESS,            0,                       NO_RECV,              RTS, RTS, -1, false },
	{ "SEND of nothing",             UROCE_WR_SEND,       0,    T_EMPTY,         0,  0, 0, UROCE_WC_SUCCESS,            0,                       UROCE_WC_SUCCESS,     RTS, RTS, -1, false },
};
/* clang-format on */

static bool is_atomic(const struct row *r)
{
	return r->opcode == UROCE_WR_FETCH_ADD || r->opcode == UROCE_WR_CMP_SWAP;
}

/* The WR's side of the twist. */
static void twist_wr(const struct row *r, struct fake_wr *wr)
{
	struct fake_region *m;

	switch (r->twist) {
	case T_LKEY:
		wr->sge[0].lkey ^= 0x5500;
		break;
	case T_LKEY_REAR:
		wr->sge[0].addr = s.mem[0]->iova + s.mem[0]->len - r->len + 1;
		break;
	case T_LKEY_FRONT:
		wr->sge[0].addr = s.mem[0]->iova - 1;
		break;
	case T_RKEY:
		wr->rkey ^= 1;
		break;
	case T_REAR:
		wr->remote_addr = s.mem[1]->iova + s.mem[1]->len - (is_atomic(r) ? 0 : r->len - 1);
		break;
	case T_FRONT:
		wr->remote_addr = s.mem[1]->iova - 1;
		break;
	case T_WRAP:
		wr->remote_addr = UINT64_MAX - 10;
		break;
	case T_MISALIGNED:
		wr->remote_addr += 4;
		break;
	case T_INLINE_LONG:
		wr->flags |= UROCE_WQE_INLINE;
		wr->inline_len = r->len;
		break;
	case T_SGES:
		wr->n_sge = s.qp[0]->cap.max_send_sge + 1;
		break;
	case T_TOO_LONG:
		wr->n_sge = 2;
		wr->sge[1] = wr->sge[0];
		wr->sge[1].length = 0x80000000u;
		break;
	case T_EMPTY:
		wr->n_sge = 0;
		break;
	case T_LKEY_PD:
		m = fake_reg_pd(&s.p.dev[0], 4096, LW, 2);
		wr->sge[0] = fake_sge(m, 0, r->len);
		break;
	case T_LKEY_READONLY:
	case T_LKEY_GONE:
		m = fake_reg(&s.p.dev[0], 4096, 0);
		wr->sge[0] = fake_sge(m, 0, r->len);
		if (r->twist == T_LKEY_GONE)
			ck_assert_int_eq(fake_dereg(&s.p.dev[0], m), 0);
		break;
	case T_RKEY_PD:
	case T_MR_LOCAL_ONLY:
	case T_RKEY_GONE:
		m = fake_reg_pd(&s.p.dev[1], 4096, r->twist == T_MR_LOCAL_ONLY ? LW : 0xf,
				r->twist == T_RKEY_PD ? 2 : 1);
		wr->remote_addr = m->iova;
		wr->rkey = m->key;
		if (r->twist == T_RKEY_GONE)
			ck_assert_int_eq(fake_dereg(&s.p.dev[1], m), 0);
		break;
	default:
		break;
	}
}

static void twist_recv(const struct row *r, struct uroce_sge *sge, uint32_t *n)
{
	switch (r->twist) {
	case T_RECV_SHORT:
		sge->length = r->len - 1;
		break;
	case T_RECV_LKEY:
		sge->lkey ^= 0x5500;
		break;
	case T_RECV_READONLY:
		*sge = fake_sge(fake_reg(&s.p.dev[1], 4096, 0), 0, 4096);
		break;
	case T_RECV_SGES:
		*n = s.qp[1]->cap.max_recv_sge + 1;
		break;
	default:
		break;
	}
}

static void twist_stage(const struct row *r)
{
	if (r->twist == T_PEER_ERR)
		ck_assert_int_eq(fake_qp_to(s.qp[1], ERR), 0);
	if (r->twist == T_PEER_RESET)
		ck_assert_int_eq(fake_qp_to(s.qp[1], UROCE_QPS_RESET), 0);
	if (r->twist == T_PEER_GONE) {
		ck_assert_int_eq(fake_qp_del(s.qp[1]), 0);
		s.qp[1] = NULL;
	}
	if (r->twist == T_SELF_DEAD)
		s.mem[0]->broken = true;
}

static void stage(const struct row *r)
{
	struct scene_conf conf = { .rc = { .timeout = 6,
					   .retry_cnt = 2,
					   .access = r->qp_access,
					   .rd_atomic = r->rda,
					   .dest_rd_atomic = r->drda } };

	scene_init(&s, &conf);
}

static void post_recvs(const struct row *r)
{
	struct uroce_sge sge[UROCE_MAX_SGE] = { fake_sge(s.mem[1], 0, 4096) };
	uint32_t n = 1;

	twist_recv(r, sge, &n);
	ck_assert(fake_post_recv(s.qp[1], 100, sge, n));
	ck_assert(fake_post_recv(s.qp[1], 101, sge, 1));
}

/* The WR of the row, then two good ones, which share its fate in order. */
static void post_sends(const struct row *r)
{
	struct fake_wr wr = { .wr_id = 0,
			      .opcode = r->opcode,
			      .flags = UROCE_WQE_SIGNALED,
			      .n_sge = 1,
			      .sge = { fake_sge(s.mem[0], 0, r->len) },
			      .remote_addr = s.mem[1]->iova,
			      .rkey = s.mem[1]->key };

	twist_wr(r, &wr);
	ck_assert(fake_post_send(s.qp[0], &wr));
	wr = (struct fake_wr) { .opcode = UROCE_WR_WRITE, .n_sge = 0, .flags = UROCE_WQE_SIGNALED };
	for (wr.wr_id = 1; wr.wr_id < 3; wr.wr_id++)
		ck_assert(fake_post_send(s.qp[0], &wr));
}

static void check_requester(const struct row *r)
{
	bool zero_writes_fail = r->status != UROCE_WC_SUCCESS || r->qp_access == RR;

	for (uint64_t i = 0; i < 3; i++) {
		struct uroce_cqe c = scene_wait(&s, 0, 10000);

		ck_assert_uint_eq(c.wr_id, i);
		if (i == 0) {
			ck_assert_msg(c.status == r->status && c.vendor_err == r->verr,
				      "%s: status %u verr %u", r->name, c.status, c.vendor_err);
		} else {
			ck_assert_uint_eq(c.status, zero_writes_fail ? UROCE_WC_WR_FLUSH_ERR
								     : UROCE_WC_SUCCESS);
		}
	}
	scene_silence(&s, 0, 10);
	ck_assert_int_eq(fake_qp_state(s.qp[0]), r->a);
	if (r->nothing_sent)
		ck_assert_uint_eq(s.n_tx[0], 0);
}

static void check_responder(const struct row *r)
{
	static const int types[] = { ACCESS, INVREQ, UROCE_EVENT_QP_FATAL };
	struct uroce_cqe c;

	if (!s.qp[1] || r->twist == T_PEER_RESET)
		return;
	if (r->recv != NO_RECV) {
		c = scene_wait(&s, 1, 10);
		ck_assert_uint_eq(c.wr_id, 100);
		ck_assert_msg(c.status == r->recv, "%s: receive status %u", r->name, c.status);
	}
	if (r->b == ERR) {
		for (uint64_t id = r->recv == NO_RECV ? 100 : 101; id <= 101; id++) {
			c = scene_wait(&s, 1, 10);
			ck_assert_uint_eq(c.wr_id, id);
			ck_assert_uint_eq(c.status, UROCE_WC_WR_FLUSH_ERR);
		}
	}
	scene_silence(&s, 1, 1);
	ck_assert_int_eq(fake_qp_state(s.qp[1]), r->b);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(fake_events(&s.p.dev[1], (uint32_t)types[i], s.qp[1]->qpn),
				  types[i] == r->event);
}

/* A refused request leaves no byte behind. */
static void check_memory(const struct row *r)
{
	uint32_t word;

	if (r->status == UROCE_WC_SUCCESS || r->recv != NO_RECV)
		return;
	for (uint32_t k = 0; k < s.mem[1]->len; k += 4) {
		memcpy(&word, s.mem[1]->mem + k, 4);
		ck_assert_uint_eq(word, k * 2654435761u + 1);
	}
}

START_TEST(both_sides_see_what_the_table_says)
{
	const struct row *r = &rows[_i];

	stage(r);
	if (r->twist != T_PEER_GONE && r->twist != T_PEER_RESET)
		post_recvs(r);
	twist_stage(r);
	post_sends(r);
	check_requester(r);
	check_responder(r);
	check_memory(r);
	scene_free(&s);
}
END_TEST

/* A WR in the middle fails: those before it succeed first, those behind are flushed, all in order.
 */
START_TEST(a_local_error_waits_for_the_work_before_it)
{
	struct scene_conf conf = { .pair = { .link = { .delay_ns = 5000 } } };
	struct fake_wr bad = {
		.wr_id = 7, .opcode = UROCE_WR_WRITE, .n_sge = 1, .sge = { { 1, 1, 1 } }
	};

	scene_init(&s, &conf);
	scene_post(&s, 0, UROCE_WR_READ, 0, 20000);
	scene_post(&s, 0, UROCE_WR_WRITE, 32768, 20000);
	ck_assert(fake_post_send(s.qp[0], &bad));
	scene_post(&s, 0, UROCE_WR_WRITE, 65536, 100);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_expect(&s, 0, UROCE_WC_SUCCESS);
	scene_expect(&s, 0, UROCE_WC_LOC_PROT_ERR);
	scene_expect(&s, 0, UROCE_WC_WR_FLUSH_ERR);
	scene_same(&s, 0, 20000);
	scene_same(&s, 32768, 20000);
	scene_free(&s);
}
END_TEST

START_TEST(an_unsignaled_error_completes_all_the_same)
{
	struct fake_wr bad = {
		.wr_id = 7, .opcode = UROCE_WR_WRITE, .n_sge = 1, .sge = { { 1, 1, 1 } }
	};

	scene_init(&s, NULL);
	ck_assert(fake_post_send(s.qp[0], &bad));
	scene_expect(&s, 0, UROCE_WC_LOC_PROT_ERR);
	scene_free(&s);
}
END_TEST

START_TEST(what_is_posted_in_err_is_flushed)
{
	scene_init(&s, NULL);
	ck_assert_int_eq(fake_qp_to(s.qp[0], ERR), 0);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 64);
	scene_recv(&s, 0, 0, 64);
	scene_expect(&s, 0, UROCE_WC_WR_FLUSH_ERR);
	scene_expect(&s, 0, UROCE_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(s.n_tx[0], 0);
	scene_free(&s);
}
END_TEST

/* The requester's process is gone while its WRITE is on the way: no more packets, no hang. */
START_TEST(memory_that_goes_away_in_mid_message_is_a_local_error)
{
	struct scene_conf conf = { .pair = { .engine = { .window = 4 },
					     .link = { .delay_ns = 5000 } } };

	scene_init(&s, &conf);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, 60000);
	pair_turn(&s.p);
	s.mem[0]->broken = true;
	scene_expect(&s, 0, UROCE_WC_LOC_PROT_ERR);
	scene_free(&s);
}
END_TEST

/* The responder's process is gone: whatever the request, an error comes at once and B is in ERR. */
START_TEST(a_dead_peers_memory_answers_with_an_error)
{
	static const uint8_t op[] = { UROCE_WR_WRITE, UROCE_WR_READ, UROCE_WR_FETCH_ADD,
				      UROCE_WR_SEND };
	struct uroce_cqe c;

	scene_init(&s, NULL);
	scene_recv(&s, 1, 0, 4096);
	s.mem[1]->broken = true;
	scene_post(&s, 0, op[_i], 0, op[_i] == UROCE_WR_FETCH_ADD ? 8 : 3000);
	c = scene_wait(&s, 0, 10);
	ck_assert(c.status == UROCE_WC_REM_ACCESS_ERR || c.status == UROCE_WC_REM_OP_ERR);
	ck_assert_int_eq(fake_qp_state(s.qp[1]), ERR);
	scene_free(&s);
}
END_TEST

START_TEST(reset_after_err_gives_a_fresh_qp)
{
	static const struct pair_rc rc = { .psn = { 77, 0xffffff } };
	struct uroce_cqe c;

	scene_init(&s, NULL);
	scene_recv(&s, 1, 0, 64);
	for (unsigned round = 0; round < 20; round++) {
		scene_post(&s, 0, UROCE_WR_WRITE, 0, 3000);
		scene_post(&s, 1, UROCE_WR_READ, 8192, 3000);
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
		scene_expect(&s, 1, UROCE_WC_SUCCESS);
		scene_post(&s, 0, UROCE_WR_WRITE, 16384, 3000);
		pair_turn(&s.p);
		for (unsigned i = 0; i < 2; i++) {
			ck_assert_int_eq(fake_qp_to(s.qp[i], ERR), 0);
			scene_run_ms(&s, 1);
			while (fake_poll(s.cq[i], &c, 1) > 0)
				;
			ck_assert_int_eq(fake_qp_to(s.qp[i], UROCE_QPS_RESET), 0);
		}
		ck_assert_int_eq(pair_connect(&s.p, s.qp[0], s.qp[1], &rc), 0);
	}
	scene_free(&s);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/error_table");
	TCase *c = tcase_create("error_table");

	tcase_add_loop_test(c, both_sides_see_what_the_table_says, 0,
			    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(c, a_local_error_waits_for_the_work_before_it);
	tcase_add_test(c, an_unsignaled_error_completes_all_the_same);
	tcase_add_test(c, what_is_posted_in_err_is_flushed);
	tcase_add_test(c, memory_that_goes_away_in_mid_message_is_a_local_error);
	tcase_add_loop_test(c, a_dead_peers_memory_answers_with_an_error, 0, 4);
	tcase_add_test(c, reset_after_err_gives_a_fresh_qp);
	suite_add_tcase(suite, c);
	return suite;
}
