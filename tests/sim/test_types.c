/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random streams of messages over every type of QP and receive queue, from A to B over a bad wire,
 * each scenario from one seed (UROCE_SIM_SEED=n replays one). A message tells in its bytes who sent
 * it, as which, and how long it is, so that the model needs only that:
 *   - every WR completes once and in order, receives at most once; what is left is flushed;
 *   - whatever is received is whole;
 *   - RC and XRC: each message once and in order, all of them;
 *   - UC: in order, at most once (unless the wire repeats or reorders: a message may begin with any
 * PSN), and all where nothing is lost and receives are there;
 *   - UD: at most once per receiver unless the wire repeats; no message for another group or Q_Key;
 *   - shared receive queues give each receive to one message, whichever QP it came by.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/fake_srq.h"
#include "tests/support/pair.h"

#define QPS     4u
#define MSGS    48u   /* of one QP */
#define ROOM    4608u /* of one receive */
#define RECVS   1024u
#define GRH     40u
#define QKEY    0x1234u
#define AH_ONE  0x10003u
#define AH_ALL  0x10004u
#define XRCD    7u
#define BATCHES 16

enum kind { RC_SRQ, XRC, UC, UC_SRQ, UD, UD_SRQ, UD_GROUP, N_KINDS };
static const char *const kind_name[] = { "RC, SRQ", "XRC",     "UC",           "UC, SRQ",
					 "UD",      "UD, SRQ", "UD, multicast" };

struct stream {
	struct fake_qp *tx, *rx;
	uint32_t posted, completed;
	bool is_failed, is_gone; /* gone: its receiver was destroyed */
	uint32_t len[MSGS];
	uint8_t op[MSGS];
	int64_t last;            /* message received last */
	uint8_t seen[QPS][MSGS]; /* by receiving QP */
	uint32_t n_recv, n_recv_done;
};

static struct types {
	uint64_t seed, rng;
	enum kind kind;
	unsigned n;
	bool is_good; /* the wire */
	struct pair p;
	struct fake_cq *scq, *rcq;
	struct fake_srq *srq;
	struct fake_region *src, *in;
	struct stream q[QPS];
	uint32_t n_recv, n_recv_done;
	uint8_t recv_done[RECVS];
	uint64_t received;
} t;

static bool is_ud(void)
{
	return t.kind >= UD;
}

static bool is_sure(void)
{
	return t.kind == RC_SRQ || t.kind == XRC;
}

static bool has_srq(void)
{
	return t.kind == RC_SRQ || t.kind == XRC || t.kind == UC_SRQ || t.kind == UD_SRQ;
}

static uint32_t below(uint32_t n)
{
	return ck_below(&t.rng, n);
}

#define CHECK(cond, ...)                                                                \
	do {                                                                            \
		if (!(cond)) {                                                          \
			link_sim_dump(&t.p.link, stdout);                               \
			printf("# seed %" PRIu64 " (%s)\n", t.seed, kind_name[t.kind]); \
			fflush(stdout);                                                 \
			ck_abort_msg(__VA_ARGS__);                                      \
		}                                                                       \
	} while (0)

static uint8_t byte_of(uint32_t stream, uint32_t msg, uint32_t i)
{
	return (uint8_t)(stream * 61 + msg * 131 + i * 29 + (i >> 8) + 7);
}

static void make_wire(struct link_sim_conf *l)
{
	uint32_t rate = 66u << below(6); /* 0.1 to 3 % */

	l->seed = ck_rand(&t.rng);
	l->delay_ns = below(20000);
	l->jitter_ns = 1 + below(50000);
	l->ns_per_kib = below(2) ? below(800) : 0;
	l->tx_burst = 1 + below(64);
	l->split = below(2);
	t.is_good = !below(4);
	if (t.is_good)
		return;
	l->drop = below(rate);
	l->dup = below(rate);
	l->reorder = below(rate);
	l->corrupt = below(rate);
}

static const uint8_t group[16] = { 0xff, 0x0e, [15] = 9 };

static void ah_add(uint32_t ah, bool is_group)
{
	struct net_path path = pair_path(&t.p, 0);
	struct cmd_reply reply;
	struct cmd c = { .op = ENGINE_AH_ADD };

	if (is_group) {
		memcpy(path.dgid, group, 16);
		path.is_ipv4 = 0;
	}
	c.ah_add = (struct cmd_ah_add) { .ah = ah, .pd = 1, .path = path };
	ck_assert_int_eq(engine_command(t.p.dev[0].engine, t.p.clock.now, &c, &reply), 0);
}

static void join(const struct fake_qp *qp)
{
	struct cmd c = { .op = ENGINE_MCAST_ADD, .mcast = { .qpn = qp->qpn } };
	struct cmd_reply reply;

	memcpy(c.mcast.mgid, group, 16);
	ck_assert_int_eq(engine_command(t.p.dev[1].engine, t.p.clock.now, &c, &reply), 0);
}

static void ud_to_rts(struct fake_qp *qp)
{
	struct uroce_qp_attr a = { .qp_state = UROCE_QPS_INIT, .port_num = 1, .qkey = QKEY };
	uint32_t mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

	ck_assert_int_eq(fake_qp_modify(qp, &a, mask, NULL), 0);
	ck_assert_int_eq(fake_qp_to(qp, UROCE_QPS_RTR), 0);
	a.qp_state = UROCE_QPS_RTS;
	ck_assert_int_eq(fake_qp_modify(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL), 0);
}

static void make_stream(struct stream *q, const struct pair_rc *rc)
{
	static const uint32_t tx_type[] = { UROCE_QPT_RC, UROCE_QPT_XRC_SEND, UROCE_QPT_UC,
					    UROCE_QPT_UC, UROCE_QPT_UD,       UROCE_QPT_UD,
					    UROCE_QPT_UD };
	struct fake_qp_conf tc = { .type = tx_type[t.kind],
				   .sq_depth = 2u << below(5),
				   .send_cq = t.scq,
				   .recv_cq = t.kind == XRC ? NULL : t.scq };
	struct fake_qp_conf rxc = { .type = t.kind == XRC ? UROCE_QPT_XRC_RECV : tx_type[t.kind],
				    .rq_depth = 256 };

	if (t.kind == XRC) {
		rxc.xrcd = XRCD;
	} else {
		rxc.send_cq = rxc.recv_cq = t.rcq;
		rxc.srqn = has_srq() ? t.srq->srqn : 0;
	}
	*q = (struct stream) { .last = -1 };
	q->tx = fake_qp_new(&t.p.dev[0], &tc);
	q->rx = fake_qp_new(&t.p.dev[1], &rxc);
	ck_assert(q->tx && q->rx);
	if (is_ud()) {
		ud_to_rts(q->tx);
		ud_to_rts(q->rx);
		if (t.kind == UD_GROUP)
			join(q->rx);
	} else {
		ck_assert_int_eq(pair_connect(&t.p, q->tx, q->rx, rc), 0);
	}
}

static void start(uint64_t seed)
{
	struct pair_conf conf = { .engine = { .max_srq = 64, .max_ah = 64, .max_mcast = 64 } };
	struct pair_rc rc = { .timeout = 9 };

	memset(&t, 0, sizeof(t));
	t.seed = t.rng = seed;
	t.kind = (enum kind)below(N_KINDS);
	t.n = 1 + below(QPS);
	make_wire(&conf.link);
	pair_init(&t.p, &conf);
	t.scq = fake_cq_new(&t.p.dev[0], 1024);
	t.rcq = fake_cq_new(&t.p.dev[1], 2048);
	if (t.kind == XRC)
		t.srq = fake_srq_new_xrc(&t.p.dev[1], 1, 32, 1, XRCD, t.rcq);
	else if (has_srq())
		t.srq = fake_srq_new(&t.p.dev[1], 1, 32);
	t.src = fake_reg(&t.p.dev[0], QPS * MSGS * 4096, UROCE_ACCESS_LOCAL_WRITE);
	t.in = fake_reg(&t.p.dev[1], RECVS * ROOM, UROCE_ACCESS_LOCAL_WRITE);
	rc.mtu = IBV_MTU_256 + below(5);
	rc.psn[0] = (uint32_t)ck_rand(&t.rng) & 0xffffff;
	if (is_ud()) {
		ah_add(AH_ONE, false);
		ah_add(AH_ALL, true);
	}
	for (unsigned i = 0; i < t.n; i++)
		make_stream(&t.q[i], &rc);
}

/* The next message; the receiver may be addressed wrongly (UD), and then gets nothing. */
static void post(unsigned i)
{
	struct stream *q = &t.q[i];
	uint32_t msg = q->posted, off = (i * MSGS + msg) * 4096;
	uint32_t len = 12 + below(below(2) ? 200 : 4085);
	struct fake_wr wr = { .wr_id = msg,
			      .opcode = below(2) ? UROCE_WR_SEND : UROCE_WR_SEND_IMM,
			      .flags = UROCE_WQE_SIGNALED | (below(2) ? UROCE_WQE_SOLICITED : 0),
			      .imm = msg,
			      .ah = t.kind == UD_GROUP ? AH_ALL : AH_ONE,
			      .remote_qkey = QKEY,
			      .n_sge = 2 };
	uint32_t head[3] = { i, msg, len }, cut = 12 + below(len - 11);

	wr.sge[0] = fake_sge(t.src, off, cut);
	wr.sge[1] = fake_sge(t.src, off + cut, len - cut);
	if (t.kind == XRC)
		wr.remote_qpn = t.srq->srqn;
	else if (is_ud())
		wr.remote_qpn = t.kind == UD_GROUP ? 0xffffff : q->rx->qpn;
	if (is_ud() && !below(10)) {
		wr.remote_qkey ^= 1;
		head[2] = 0; /* nobody may see it */
	}
	memcpy(t.src->mem + off, head, 12);
	for (uint32_t k = 12; k < len; k++)
		t.src->mem[off + k] = byte_of(i, msg, k);
	if (!fake_post_send(q->tx, &wr))
		return;
	q->len[msg] = head[2];
	q->op[msg] = wr.opcode;
	q->posted++;
}

static void post_recv(struct stream *q)
{
	struct uroce_sge sge = fake_sge(t.in, (uint64_t)t.n_recv * ROOM, ROOM);
	bool ok;

	if (t.n_recv == RECVS)
		return;
	ok = has_srq() ? fake_srq_post(t.srq, t.n_recv, &sge, 1)
		       : fake_post_recv(q->rx, t.n_recv, &sge, 1);
	if (!ok)
		return;
	t.n_recv++;
	q->n_recv++;
}

static void sent(const struct uroce_cqe *c)
{
	struct stream *q = NULL;

	for (unsigned i = 0; i < t.n; i++)
		if (t.q[i].tx && t.q[i].tx->qpn == c->qpn)
			q = &t.q[i];
	CHECK(q && c->wr_id == q->completed && q->completed < q->posted,
	      "send %" PRIu64 " completes, not the one that is due", c->wr_id);
	q->completed++;
	if (c->status == UROCE_WC_SUCCESS) {
		CHECK(!q->is_failed, "a send succeeds behind one that failed");
		return;
	}
	CHECK(is_sure() && q->is_gone &&
		      c->status == (q->is_failed ? UROCE_WC_WR_FLUSH_ERR : UROCE_WC_RETRY_EXC_ERR),
	      "a send fails with status %u", c->status);
	q->is_failed = true;
}

static void got_message(const struct uroce_cqe *c, unsigned to)
{
	const uint8_t *p = t.in->mem + c->wr_id * ROOM + (is_ud() ? GRH : 0);
	uint32_t head[3], i, msg;
	struct stream *q;

	memcpy(head, p, 12);
	i = head[0];
	msg = head[1];
	CHECK(i < t.n && msg < t.q[i].posted && t.q[i].len[msg] && t.q[i].len[msg] == head[2],
	      "a message that nobody sent");
	q = &t.q[i];
	CHECK(c->byte_len == head[2] + (is_ud() ? GRH : 0), "%u bytes of %u", c->byte_len, head[2]);
	for (uint32_t k = 12; k < head[2]; k++)
		CHECK(p[k] == byte_of(i, msg, k), "message %u of %u is broken at %u", msg, i, k);
	CHECK(!(c->flags & UROCE_WC_WITH_IMM) == (q->op[msg] == UROCE_WR_SEND) &&
		      (q->op[msg] == UROCE_WR_SEND || c->imm == msg),
	      "the immediate is wrong");
	CHECK(t.kind == UD_GROUP || t.kind == XRC || to == i, "it came by another QP");
	CHECK(!is_ud() || c->src_qp == q->tx->qpn, "from another QP");
	t.received++;
	if (is_ud()) {
		CHECK(!q->seen[to][msg]++ || t.p.link.conf.dup, "a datagram came twice");
		return;
	}
	CHECK(is_sure() ? (int64_t)msg == q->last + 1
			: (int64_t)msg > q->last || t.p.link.conf.dup || t.p.link.conf.reorder,
	      "message %u of %u after %" PRId64, msg, i, q->last);
	q->last = msg;
}

static void received(const struct uroce_cqe *c)
{
	unsigned to = QPS;

	for (unsigned i = 0; i < t.n; i++)
		if (t.q[i].rx && t.q[i].rx->qpn == c->qpn)
			to = i;
	CHECK(c->wr_id < t.n_recv && !t.recv_done[c->wr_id]++,
	      "receive %" PRIu64 " completes twice", c->wr_id);
	CHECK(to < QPS, "a receive completes for no QP of ours");
	t.n_recv_done++;
	if (c->status == UROCE_WC_SUCCESS)
		got_message(c, to);
	else
		CHECK(c->status == UROCE_WC_WR_FLUSH_ERR &&
			      fake_qp_state(t.q[to].rx) == UROCE_QPS_ERR,
		      "a receive fails with status %u", c->status);
}

static void poll(void)
{
	struct uroce_cqe c;

	while (fake_poll(t.scq, &c, 1) > 0)
		sent(&c);
	while (fake_poll(t.rcq, &c, 1) > 0)
		received(&c);
}

static bool is_over(void)
{
	for (unsigned i = 0; i < t.n; i++)
		if (t.q[i].completed < MSGS && !t.q[i].is_failed)
			return false;
	return true;
}

/* A receiver is destroyed in the middle of it all; with a queue of its own its receives go along.
 */
static void lose_receiver(void)
{
	struct stream *q = &t.q[below(t.n)];

	poll();
	q->is_gone = true;
	CHECK(!fake_qp_del(q->rx), "QP_DEL");
	q->rx = NULL;
	q->last = MSGS;
}

static void app(void)
{
	for (unsigned i = 0; i < t.n; i++) {
		struct stream *q = &t.q[i];

		for (uint32_t k = below(4); k && q->posted < MSGS && !q->is_failed; k--)
			if (q->rx || !is_ud())
				post(i);
			else
				q->posted = q->completed = MSGS;
		for (uint32_t k = below(5); k && q->rx; k--)
			post_recv(q);
	}
	poll();
}

/* UD on a good wire: every datagram that was meant for it has come to each receiver. */
static void check_datagrams(const struct stream *q, unsigned i)
{
	if (fake_counter(&t.p.dev[1], "out_of_buffer") || q->is_gone)
		return;
	for (unsigned to = 0; to < t.n; to++)
		for (uint32_t m = 0; m < MSGS; m++)
			CHECK(!t.q[to].rx || q->seen[to][m] ==
						     (q->len[m] && (t.kind == UD_GROUP || to == i)),
			      "datagram %u of %u came %u times to %u", m, i, q->seen[to][m], to);
}

/* Where nothing is lost, and receives were there, all has come. */
static void check_end(void)
{
	const struct fake_dev *b = &t.p.dev[1];

	for (unsigned i = 0; i < t.n; i++) {
		struct stream *q = &t.q[i];

		CHECK(q->is_gone || !is_sure() || q->last == MSGS - 1,
		      "message %" PRId64 " is the last", q->last);
		CHECK(q->is_gone || is_ud() || !t.is_good || fake_counter(b, "out_of_buffer") ||
			      q->last == MSGS - 1,
		      "%" PRId64 " is the last on a good wire", q->last);
		if (is_ud() && t.is_good)
			check_datagrams(q, i);
	}
	for (unsigned i = 0; i < t.n; i++)
		if (t.q[i].rx)
			CHECK(!fake_qp_to(t.q[i].rx, UROCE_QPS_ERR), "ERR");
	poll();
	for (unsigned side = 0; side < 2; side++) {
		CHECK(!t.p.dev[side].mem.violations, "%s", t.p.dev[side].mem.violation);
		CHECK(fake_mem_guards_hold(&t.p.dev[side].mem), "guard bytes are gone");
	}
	CHECK(!t.p.link.malformed, "a malformed frame");
	if (has_srq())
		CHECK(t.n_recv - t.n_recv_done - fake_srq_left(t.srq) <= t.n,
		      "%u receives posted, %u completed, %u left", t.n_recv, t.n_recv_done,
		      fake_srq_left(t.srq));
}

static void take_down(void)
{
	for (unsigned i = 0; i < t.n; i++) {
		CHECK(!fake_qp_del(t.q[i].tx), "QP_DEL");
		if (t.q[i].rx)
			CHECK(!fake_qp_del(t.q[i].rx), "QP_DEL");
	}
	for (unsigned side = 0; side < 2; side++)
		CHECK(engine_deadline(t.p.dev[side].engine) == UINT64_MAX &&
			      !engine_tx_pending(t.p.dev[side].engine),
		      "an engine without QPs has something to do");
	if (t.srq)
		CHECK(!fake_srq_del(t.srq), "SRQ_DEL");
	pair_free(&t.p);
}

static void run(uint64_t seed)
{
	uint64_t next_app, loss_at;

	start(seed);
	next_app = t.p.clock.now;
	for (unsigned i = 0; i < t.n && below(2); i++)
		for (uint32_t k = 0; k < t.n * MSGS; k++) /* enough for all */
			post_recv(&t.q[i]);
	loss_at = below(5) ? UINT64_MAX : t.p.clock.now + below(2000000);
	while (!is_over() && t.n_recv < RECVS) {
		if (t.p.clock.now >= loss_at) {
			lose_receiver();
			loss_at = UINT64_MAX;
		}
		if (t.p.clock.now >= next_app) {
			app();
			next_app = t.p.clock.now + 1 + below(20000);
		}
		if (!pair_turn(&t.p))
			pair_advance(&t.p, next_app);
		CHECK(t.p.clock.now < 60000000000ull, "no end in sight");
	}
	while (pair_turn(&t.p) || pair_advance(&t.p, t.p.clock.now + 1000000))
		;
	poll();
	if (t.n_recv < RECVS)
		check_end();
	take_down();
}

START_TEST(every_type_keeps_its_promises)
{
	const char *one = getenv("UROCE_SIM_SEED");
	uint64_t total = 0;

	for (uint64_t i = 0; i < (one ? 1 : 64); i++) {
		run(one ? strtoull(one, NULL, 0) : ck_seed() + (uint64_t)_i * 64 + i);
		total += t.received;
	}
	printf("# %" PRIu64 " messages received\n", total);
	fflush(stdout);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/types");
	TCase *c = tcase_create("types");

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, every_type_keeps_its_promises, 0, BATCHES);
	suite_add_tcase(suite, c);
	return suite;
}
