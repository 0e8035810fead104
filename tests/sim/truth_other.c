/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the truth table about states, shared receive queues, memory windows, UC and UD. */
#include <infiniband/verbs.h>

#include "tests/sim/truth.h"

#define AH    5u
#define QKEY  0x1234u
#define SRQN  9u
#define MW    (200u << 8 | 1)
#define BOUND (200u << 8 | 2)

static int command(struct truth *t, unsigned side, struct cmd cmd)
{
	struct cmd_reply none;

	return engine_command(t->s.p.dev[side].engine, t->s.p.clock.now, &cmd, &none);
}

static void do_send(struct truth *t)
{
	truth_post(t, truth_wr(t, UROCE_WR_SEND, 64));
}

/* ---- states */

static void send_in_err(struct truth *t)
{
	ck_assert_int_eq(fake_qp_to(t->s.qp[0], UROCE_QPS_ERR), 0);
	do_send(t);
}

static void recv_in_err(struct truth *t)
{
	ck_assert_int_eq(fake_qp_to(t->s.qp[0], UROCE_QPS_ERR), 0);
	truth_recv(t, 0, fake_sge(t->s.mem[0], 0, 64));
}

static void err_under_work(struct truth *t)
{
	truth_post(t, truth_wr(t, UROCE_WR_READ, 64000));
	pair_turn(&t->s.p);
	ck_assert_int_eq(fake_qp_to(t->s.qp[0], UROCE_QPS_ERR), 0);
}

/* The READ has begun when the SQ is told to drain. */
static void drain(struct truth *t, bool shall_tell)
{
	struct uroce_qp_attr attr = { .qp_state = UROCE_QPS_SQD,
				      .en_sqd_async_notify = shall_tell };

	truth_post(t, truth_wr(t, UROCE_WR_READ, 64000));
	pair_turn(&t->s.p);
	ck_assert_int_eq(
		fake_qp_modify(t->s.qp[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL),
		0);
}

static void drain_told(struct truth *t)
{
	drain(t, true);
}

static void drain_silent(struct truth *t)
{
	drain(t, false);
}

static void only_rtr(struct truth *t)
{
	ck_assert_int_eq(fake_qp_to(t->s.qp[1], UROCE_QPS_RESET), 0);
	ck_assert_int_eq(pair_to_rtr(&t->s.p, t->s.qp[1], t->s.qp[0]->qpn, &(struct pair_rc) { 0 }),
			 0);
}

/* ---- shared receive queues */

static void with_srq(struct truth *t)
{
	t->srq = fake_srq_new(&t->s.p.dev[1], SRQN, 16);
	truth_new_qp(t, 1,
		     &(struct fake_qp_conf) {
			     .send_cq = t->s.cq[1], .recv_cq = t->s.cq[1], .srqn = SRQN });
	ck_assert_int_eq(fake_qp_to(t->s.qp[0], UROCE_QPS_RESET), 0);
	ck_assert_int_eq(pair_connect(&t->s.p, t->s.qp[0], t->s.qp[1],
				      &(struct pair_rc) { .timeout = 6, .rnr_retry = 0xff }),
			 0);
}

static void srq_rkey(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_WRITE, 64);

	wr.rkey ^= 1;
	truth_post(t, wr);
}

static void srq_short(struct truth *t)
{
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 63));
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 64));
	do_send(t);
}

/* Three receives, of which one will remain below the limit of two. */
static void srq_below_limit(struct truth *t)
{
	for (unsigned i = 0; i < 3; i++)
		truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 64));
	ck_assert_int_eq(fake_srq_limit(t->srq, 2), 0);
	do_send(t);
	do_send(t);
}

/* ---- memory windows; the region is R's and so is the bind, when R has one bound */

static struct fake_wr bind_wr(struct truth *t, unsigned side, uint32_t len)
{
	uint64_t access = UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ;

	return (struct fake_wr) { .opcode = UROCE_WR_BIND_MW,
				  .flags = UROCE_WQE_SIGNALED,
				  .imm = MW,
				  .rkey = BOUND,
				  .remote_addr = t->s.mem[side]->iova,
				  .compare_add = len,
				  .swap = access << 32 | t->s.mem[side]->key };
}

static void make_window(struct truth *t, unsigned side)
{
	ck_assert_int_eq(command(t, side,
				 (struct cmd) { .op = ENGINE_MW_ADD,
						.mw_add = { .key = MW, .pd = 1, .type = 2 } }),
			 0);
}

static void own_window(struct truth *t)
{
	make_window(t, 0);
}

/* L's memory was registered without MW_BIND. */
static void bind_refused(struct truth *t)
{
	truth_post(t, bind_wr(t, 0, 4096));
}

static void inv_refused(struct truth *t)
{
	struct fake_wr wr = { .opcode = UROCE_WR_LOCAL_INV,
			      .flags = UROCE_WQE_SIGNALED,
			      .imm = BOUND };

	truth_post(t, wr);
}

/* R binds the first 4096 bytes of a region, through its own QP or through another one. */
static void bind_at_peer(struct truth *t, struct fake_qp *qp)
{
	struct fake_region *m = fake_reg(&t->s.p.dev[1], 8192, 0x1f);
	struct fake_wr wr = bind_wr(t, 1, 4096);
	struct uroce_cqe c = { 0 };

	make_window(t, 1);
	wr.remote_addr = m->iova;
	wr.swap = (wr.swap >> 32) << 32 | m->key;
	t->s.mem[1] = m;
	ck_assert(fake_post_send(qp, &wr));
	ck_assert(pair_wait(&t->s.p, t->s.cq[1], &c, t->s.p.clock.now + ms_ns(10)));
	ck_assert_uint_eq(c.status, UROCE_WC_SUCCESS);
}

static struct fake_wr window_wr(struct truth *t, uint64_t off)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_WRITE, 64);

	wr.remote_addr = t->s.mem[1]->iova + off;
	wr.rkey = BOUND;
	return wr;
}

static void window_past(struct truth *t)
{
	bind_at_peer(t, t->s.qp[1]);
	truth_post(t, window_wr(t, 4096 - 63));
}

static void window_of_another(struct truth *t)
{
	struct fake_qp_conf conf = { .send_cq = t->s.cq[1], .recv_cq = t->s.cq[1] };
	struct fake_qp *other = fake_qp_new(&t->s.p.dev[1], &conf);

	ck_assert_int_eq(pair_to_rtr(&t->s.p, other, 2, &(struct pair_rc) { 0 }), 0);
	ck_assert_int_eq(pair_to_rts(&t->s.p, other, &(struct pair_rc) { 0 }), 0);
	bind_at_peer(t, other);
	truth_post(t, window_wr(t, 0));
}

static void window_invalidated(struct truth *t)
{
	struct fake_wr wr = { .opcode = UROCE_WR_LOCAL_INV,
			      .flags = UROCE_WQE_SIGNALED,
			      .imm = BOUND };
	struct uroce_cqe c = { 0 };

	bind_at_peer(t, t->s.qp[1]);
	ck_assert(fake_post_send(t->s.qp[1], &wr));
	ck_assert(pair_wait(&t->s.p, t->s.cq[1], &c, t->s.p.clock.now + ms_ns(10)));
	truth_post(t, window_wr(t, 0));
}

static void send_inv_unknown(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND_INV, 64);

	wr.imm = BOUND;
	truth_post(t, wr);
}

/* ---- UC */

static void uc_lkey(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, 64);

	wr.sge[0].lkey ^= 0x5500;
	truth_post(t, wr);
}

static void uc_memory_gone(struct truth *t)
{
	struct fake_region *m = fake_reg(&t->s.p.dev[0], 4096, 0xf);
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, 64);

	m->broken = true;
	wr.sge[0] = fake_sge(m, 0, 64);
	truth_post(t, wr);
}

static void uc_read(struct truth *t)
{
	truth_post(t, truth_wr(t, UROCE_WR_READ, 64));
}

static void uc_recv_short(struct truth *t)
{
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 63));
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 64));
	do_send(t);
}

/* ---- UD */

static void ud_qp(struct truth *t, unsigned side)
{
	struct fake_qp_conf conf = { .type = UROCE_QPT_UD,
				     .send_cq = t->s.cq[side],
				     .recv_cq = t->s.cq[side] };
	struct uroce_qp_attr attr = { .qp_state = UROCE_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct fake_qp *qp;

	truth_new_qp(t, side, &conf);
	qp = t->s.qp[side];
	ck_assert_int_eq(
		fake_qp_modify(qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, NULL),
		0);
	ck_assert_int_eq(fake_qp_to(qp, UROCE_QPS_RTR), 0);
	attr.qp_state = UROCE_QPS_RTS;
	ck_assert_int_eq(fake_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL), 0);
}

static void with_ud(struct truth *t)
{
	struct cmd cmd = { .op = ENGINE_AH_ADD,
			   .ah_add = { .ah = AH, .pd = 1, .path = pair_path(&t->s.p, 0) } };

	ud_qp(t, 0);
	ud_qp(t, 1);
	ck_assert_int_eq(command(t, 0, cmd), 0);
	cmd.ah_add.ah = AH + 1;
	cmd.ah_add.pd = 2;
	ck_assert_int_eq(command(t, 0, cmd), 0);
}

static struct fake_wr ud_wr(struct truth *t, uint32_t len)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, len);

	wr.ah = AH;
	wr.remote_qpn = t->s.qp[1]->qpn;
	wr.remote_qkey = QKEY;
	return wr;
}

static void ud_send(struct truth *t)
{
	truth_post(t, ud_wr(t, 64));
}

static void ud_lkey(struct truth *t)
{
	struct fake_wr wr = ud_wr(t, 64);

	wr.sge[0].lkey ^= 0x5500;
	truth_post(t, wr);
}

static void ud_long(struct truth *t)
{
	truth_post(t, ud_wr(t, 4097));
}

static void ud_ah(struct truth *t, uint32_t ah)
{
	struct fake_wr wr = ud_wr(t, 64);

	wr.ah = ah;
	truth_post(t, wr);
}

static void ud_ah_unknown(struct truth *t)
{
	ud_ah(t, AH + 2);
}

static void ud_ah_pd(struct truth *t)
{
	ud_ah(t, AH + 1);
}

static void ud_qkey(struct truth *t)
{
	struct fake_wr wr = ud_wr(t, 64);

	wr.remote_qkey = QKEY + 1;
	truth_post(t, wr);
}

static void ud_write(struct truth *t)
{
	struct fake_wr wr = ud_wr(t, 64);

	wr.opcode = UROCE_WR_WRITE;
	truth_post(t, wr);
}

/* Room for the message, but not for the 40 bytes before it. */
static void ud_recv_short(struct truth *t)
{
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 103));
	truth_recv(t, 1, fake_sge(t->s.mem[1], 0, 104));
	ud_send(t);
}

#define RC                                            \
	{                                             \
		.rc = {.timeout = 6, .retry_cnt = 2 } \
	}
#define UC                           \
	{                            \
		.type = UROCE_QPT_UC \
	}
#define SRQ                                            \
	{                                              \
		.pair = {.engine = { .max_srq = 16 } } \
	}
#define UD                                            \
	{                                             \
		.pair = {.engine = { .max_ah = 16 } } \
	}

#define ALONE   TRUTH_ALONE
#define LAST    TRUTH_LAST
#define NO_RECV TRUTH_NO_RECV

/* clang-format off */
static const struct truth_case cases[] = {
	{ "posted in ERR, SEND", NULL, send_in_err, ALONE, RC },
	{ "posted in ERR, receive", NULL, recv_in_err, ALONE | LAST, RC },
	{ "modify to ERR while work is under way", NULL, err_under_work, ALONE, RC },
	{ "SQD with notification, READ under way", NULL, drain_told, 0, RC },
	{ "SQD without notification, READ under way", NULL, drain_silent, 0, RC },
	{ "first packet reaches R in RTR", only_rtr, do_send, 0, RC },
	{ "R uses an SRQ; WRITE, rkey unknown", with_srq, srq_rkey, 0, SRQ },
	{ "R uses an SRQ; SEND, receive too short", with_srq, srq_short, NO_RECV, SRQ },
	{ "R uses an SRQ; SEND, no receive, rnr_retry 0", with_srq, do_send, NO_RECV, SRQ },
	{ "R uses an SRQ; fewer receives left than its limit", with_srq, srq_below_limit, NO_RECV, SRQ },
	{ "BIND_MW, region without MW_BIND", own_window, bind_refused, 0, RC },
	{ "LOCAL_INV, rkey unknown", own_window, inv_refused, 0, RC },
	{ "WRITE past the window", NULL, window_past, ALONE, RC },
	{ "WRITE through the window of another QP", NULL, window_of_another, ALONE, RC },
	{ "WRITE through a window that was invalidated", NULL, window_invalidated, ALONE, RC },
	{ "SEND with invalidate, rkey unknown", NULL, send_inv_unknown, 0, RC },
	{ "UC: SEND, lkey unknown", NULL, uc_lkey, 0, UC },
	{ "UC: SEND, own memory gone", NULL, uc_memory_gone, 0, UC },
	{ "UC: READ", NULL, uc_read, 0, UC },
	{ "UC: WRITE, rkey unknown", NULL, srq_rkey, 0, UC },
	{ "UC: SEND, no receive", NULL, do_send, NO_RECV, UC },
	{ "UC: SEND, receive too short", NULL, uc_recv_short, NO_RECV, UC },
	{ "UD: SEND, lkey unknown", with_ud, ud_lkey, ALONE, UD },
	{ "UD: SEND longer than the MTU", with_ud, ud_long, ALONE, UD },
	{ "UD: address handle unknown", with_ud, ud_ah_unknown, ALONE, UD },
	{ "UD: address handle of another PD", with_ud, ud_ah_pd, ALONE, UD },
	{ "UD: RDMA WRITE", with_ud, ud_write, ALONE, UD },
	{ "UD: SEND, Q_Key wrong", with_ud, ud_qkey, ALONE | LAST, UD },
	{ "UD: SEND, no receive", with_ud, ud_send, ALONE | LAST | NO_RECV, UD },
	{ "UD: SEND, receive too short", with_ud, ud_recv_short, ALONE | LAST | NO_RECV, UD },
};
/* clang-format on */

const struct truth_list truth_other = { cases, sizeof(cases) / sizeof(cases[0]) };
