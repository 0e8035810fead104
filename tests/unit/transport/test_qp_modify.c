/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP state machine, cell by cell. The table below is written from ibv_modify_qp(3) and IBA
 * vol. 1, 10.3.1 and table 91 ("QP State Transition Properties"), not from the implementation.
 * Every current state x next state x type is tried with: exactly the required attributes, each of
 * them missing, each other attribute added. What is not listed is EINVAL and changes nothing.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"
#include "tests/support/pair.h"

#define PKEY IBV_QP_PKEY_INDEX
#define PORT IBV_QP_PORT
#define ACC  IBV_QP_ACCESS_FLAGS
#define QKEY IBV_QP_QKEY
#define CUR  IBV_QP_CUR_STATE
#define RNRT IBV_QP_MIN_RNR_TIMER
#define RDD  IBV_QP_MAX_DEST_RD_ATOMIC
#define RDA  IBV_QP_MAX_QP_RD_ATOMIC
#define NOTE IBV_QP_EN_SQD_ASYNC_NOTIFY
#define TRY  (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define ADDR (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

enum { RC, UC, UD, N_TYPES };
static const uint32_t type_number[N_TYPES] = { UROCE_QPT_RC, UROCE_QPT_UC, UROCE_QPT_UD };
static const char *const type_name[N_TYPES] = { "RC", "UC", "UD" };
static const char *const state_name[UROCE_N_QPS] = { "RESET", "INIT", "RTR", "RTS",
						     "SQD",   "SQE",  "ERR" };

struct cell {
	bool legal;
	uint32_t required[N_TYPES], optional[N_TYPES];
};

#define ANY                   \
	{                     \
		.legal = true \
	}

/* clang-format off */
static const struct cell table[UROCE_N_QPS][UROCE_N_QPS] = {
	[UROCE_QPS_RESET] = {
		[UROCE_QPS_RESET] = ANY,
		[UROCE_QPS_INIT] = { true, { PKEY | PORT | ACC, PKEY | PORT | ACC, PKEY | PORT | QKEY }, { 0 } },
	},
	[UROCE_QPS_INIT] = {
		[UROCE_QPS_RESET] = ANY,
		[UROCE_QPS_ERR] = ANY,
		[UROCE_QPS_INIT] = { true, { 0 }, { PKEY | PORT | ACC, PKEY | PORT | ACC, PKEY | PORT | QKEY } },
		[UROCE_QPS_RTR] = { true, { ADDR | RDD | RNRT, ADDR, 0 }, { ACC | PKEY, ACC | PKEY, PKEY | QKEY } },
	},
	[UROCE_QPS_RTR] = {
		[UROCE_QPS_RESET] = ANY,
		[UROCE_QPS_ERR] = ANY,
		[UROCE_QPS_RTS] = { true, { TRY | IBV_QP_SQ_PSN | RDA, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
				    { CUR | ACC | RNRT, CUR | ACC, CUR | QKEY } },
	},
	[UROCE_QPS_RTS] = {
		[UROCE_QPS_RESET] = ANY,
		[UROCE_QPS_ERR] = ANY,
		[UROCE_QPS_RTS] = { true, { 0 }, { CUR | ACC | RNRT, CUR | ACC, CUR | QKEY } },
		[UROCE_QPS_SQD] = { true, { 0 }, { NOTE, NOTE, NOTE } },
	},
	[UROCE_QPS_SQD] = {
		[UROCE_QPS_RESET] = ANY,
		[UROCE_QPS_ERR] = ANY,
		[UROCE_QPS_RTS] = { true, { 0 }, { CUR | ACC | RNRT, CUR | ACC, CUR | QKEY } },
		[UROCE_QPS_SQD] = { true, { 0 }, { PORT | IBV_QP_AV | TRY | RDA | RDD | ACC | PKEY | RNRT,
						   IBV_QP_AV | ACC | PKEY, PKEY | QKEY } },
	},
	[UROCE_QPS_SQE] = {
		[UROCE_QPS_RESET] = ANY,
		[UROCE_QPS_ERR] = ANY,
		[UROCE_QPS_RTS] = { true, { 0 }, { 0, CUR | ACC, CUR | QKEY } },
	},
	[UROCE_QPS_ERR] = {
		[UROCE_QPS_RESET] = ANY,
		[UROCE_QPS_ERR] = ANY,
	},
};
/* clang-format on */

/* Every attribute but those of automatic path migration, which we do not offer, and STATE. */
static const uint32_t attrs[] = {
	CUR,
	NOTE,
	ACC,
	PKEY,
	PORT,
	QKEY,
	IBV_QP_AV,
	IBV_QP_PATH_MTU,
	IBV_QP_TIMEOUT,
	IBV_QP_RETRY_CNT,
	IBV_QP_RNR_RETRY,
	IBV_QP_RQ_PSN,
	RDA,
	RNRT,
	IBV_QP_SQ_PSN,
	RDD,
	IBV_QP_DEST_QPN,
};
#define N_ATTRS (sizeof(attrs) / sizeof(attrs[0]))

static struct pair p;
static struct fake_qp *qp;
static struct fake_cq *cq;

/* Good values for everything; which count is the mask's business. */
static struct uroce_qp_attr good(enum uroce_qps cur, enum uroce_qps next)
{
	struct uroce_qp_attr a = { .qp_state = next,
				   .cur_qp_state = cur,
				   .path_mtu = IBV_MTU_1024,
				   .qkey = 0x11111111,
				   .rq_psn = 5,
				   .sq_psn = 6,
				   .dest_qp_num = 77,
				   .access = UROCE_ACCESS_REMOTE_WRITE,
				   .max_rd_atomic = 1,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 1,
				   .port_num = 1,
				   .timeout = 8,
				   .retry_cnt = 1,
				   .rnr_retry = 1 };

	a.ah.is_global = 1;
	a.ah.port_num = 1;
	a.ah.sgid_index = 1;
	a.ah.hop_limit = 64;
	memcpy(a.ah.dgid, p.dev[1].gid, 16);
	return a;
}

static int try(enum uroce_qps cur, enum uroce_qps next, uint32_t mask)
{
	struct uroce_qp_attr a = good(cur, next);
	struct net_path path = pair_path(&p, 0);

	return fake_qp_modify(qp, &a, mask, &path);
}

static void go(int type, enum uroce_qps cur, enum uroce_qps next)
{
	int err = try(cur, next, IBV_QP_STATE | table[cur][next].required[type]);

	ck_assert_msg(!err, "%s %s->%s with the required attributes: %d", type_name[type],
		      state_name[cur], state_name[next], err);
}

/* A send that cannot be: memory that is not registered (and, for UD, no address handle). */
static void fail_a_send(void)
{
	struct fake_wr wr = { .opcode = UROCE_WR_SEND,
			      .n_sge = 1,
			      .sge = { { 0x1000, 8, 0xdead00 } } };
	struct uroce_cqe c;

	ck_assert(fake_post_send(qp, &wr));
	ck_assert(pair_wait(&p, cq, &c, p.clock.now + 1000000));
	ck_assert_uint_ne(c.status, UROCE_WC_SUCCESS);
}

/* A fresh QP of that type in that state; false: none is ever in it (RC in SQE). */
static bool bring(int type, enum uroce_qps state)
{
	static const enum uroce_qps way[] = { UROCE_QPS_RESET, UROCE_QPS_INIT, UROCE_QPS_RTR,
					      UROCE_QPS_RTS };
	struct fake_qp_conf conf = { .type = type_number[type], .send_cq = cq, .recv_cq = cq };
	unsigned to = state <= UROCE_QPS_RTS ? (unsigned)state : 3;

	if (type == RC && state == UROCE_QPS_SQE)
		return false;
	if (qp)
		fake_qp_del(qp);
	qp = fake_qp_new(&p.dev[0], &conf);
	ck_assert_ptr_nonnull(qp);
	for (unsigned i = 0; i < to; i++)
		go(type, way[i], way[i + 1]);
	if (state == UROCE_QPS_SQD || state == UROCE_QPS_ERR)
		go(type, UROCE_QPS_RTS, state);
	if (state == UROCE_QPS_SQE)
		fail_a_send();
	ck_assert_int_eq(fake_qp_state(qp), state);
	return true;
}

static void setup(void)
{
	static const struct pair_conf conf;

	pair_init(&p, &conf);
	cq = fake_cq_new(&p.dev[0], 64);
}

static void teardown(void)
{
	qp = NULL;
	pair_free(&p);
}

/* Loop index → type, current, next. */
#define N_CELLS (N_TYPES * UROCE_N_QPS * UROCE_N_QPS)
static int cell_type(int i)
{
	return i / (UROCE_N_QPS * UROCE_N_QPS);
}
static enum uroce_qps cell_cur(int i)
{
	return (enum uroce_qps)(i / UROCE_N_QPS % UROCE_N_QPS);
}
static enum uroce_qps cell_next(int i)
{
	return (enum uroce_qps)(i % UROCE_N_QPS);
}

static bool legal(int type, enum uroce_qps cur, enum uroce_qps next)
{
	return table[cur][next].legal && !(cur == UROCE_QPS_SQE && type == RC);
}

START_TEST(a_transition_is_legal_exactly_where_the_table_says)
{
	int t = cell_type(_i);
	enum uroce_qps cur = cell_cur(_i), next = cell_next(_i);
	int err;

	if (!bring(t, cur))
		return;
	err = try(cur, next, IBV_QP_STATE | table[cur][next].required[t]);
	ck_assert_msg(err == (legal(t, cur, next) ? 0 : -EINVAL), "%s %s->%s: %d", type_name[t],
		      state_name[cur], state_name[next], err);
	ck_assert_int_eq(fake_qp_state(qp), err ? cur : next);
}
END_TEST

START_TEST(each_required_attribute_is_required)
{
	int t = cell_type(_i);
	enum uroce_qps cur = cell_cur(_i), next = cell_next(_i);

	for (unsigned k = 0; k < N_ATTRS; k++) {
		uint32_t need = table[cur][next].required[t];
		int err;

		if (!(need & attrs[k]) || !bring(t, cur))
			continue;
		err = try(cur, next, IBV_QP_STATE | (need & ~attrs[k]));
		ck_assert_msg(err == -EINVAL, "%s %s->%s without %#x: %d", type_name[t],
			      state_name[cur], state_name[next], attrs[k], err);
		ck_assert_int_eq(fake_qp_state(qp), cur);
	}
}
END_TEST

START_TEST(another_attribute_is_taken_exactly_when_it_is_optional)
{
	int t = cell_type(_i);
	enum uroce_qps cur = cell_cur(_i), next = cell_next(_i);
	const struct cell *c = &table[cur][next];

	if (!legal(t, cur, next))
		return;
	for (unsigned k = 0; k < N_ATTRS; k++) {
		int err, want = c->optional[t] & attrs[k] ? 0 : -EINVAL;

		if (c->required[t] & attrs[k])
			continue;
		ck_assert(bring(t, cur));
		err = try(cur, next, IBV_QP_STATE | c->required[t] | attrs[k]);
		ck_assert_msg(err == want, "%s %s->%s with %#x: %d", type_name[t], state_name[cur],
			      state_name[next], attrs[k], err);
		ck_assert_int_eq(fake_qp_state(qp), err ? cur : next);
	}
}
END_TEST

START_TEST(without_a_state_the_attributes_are_those_of_staying)
{
	ck_assert(bring(RC, UROCE_QPS_RTS));
	ck_assert_int_eq(try(UROCE_QPS_RTS, UROCE_QPS_RESET, RNRT), 0);
	ck_assert_int_eq(fake_qp_state(qp), UROCE_QPS_RTS);
	ck_assert_int_eq(try(UROCE_QPS_RTS, UROCE_QPS_RESET, IBV_QP_SQ_PSN), -EINVAL);
	ck_assert(bring(RC, UROCE_QPS_RTR));
	ck_assert_int_eq(try(UROCE_QPS_RTR, UROCE_QPS_RESET, RNRT), -EINVAL);
}
END_TEST

START_TEST(a_wrong_current_state_is_refused)
{
	ck_assert(bring(RC, UROCE_QPS_RTS));
	ck_assert_int_eq(try(UROCE_QPS_SQD, UROCE_QPS_RTS, IBV_QP_STATE | CUR), -EINVAL);
	ck_assert_int_eq(try(UROCE_QPS_RTR, UROCE_QPS_RTS, IBV_QP_STATE | CUR), -EINVAL);
}
END_TEST

START_TEST(an_unknown_state_or_mask_bit_is_refused)
{
	struct uroce_qp_attr a = { .qp_state = UROCE_N_QPS };

	ck_assert(bring(RC, UROCE_QPS_RTS));
	ck_assert_int_eq(fake_qp_modify(qp, &a, IBV_QP_STATE, NULL), -EINVAL);
	a.qp_state = 0xffffffff;
	ck_assert_int_eq(fake_qp_modify(qp, &a, IBV_QP_STATE, NULL), -EINVAL);
	ck_assert_int_eq(try(UROCE_QPS_RTS, UROCE_QPS_RTS, IBV_QP_STATE | 1u << 31), -EINVAL);
	ck_assert_int_eq(fake_qp_state(qp), UROCE_QPS_RTS);
}
END_TEST

/* One bad value each, on the way RESET → INIT → RTR → RTS. */
#define AT(f)                                        \
	(unsigned)offsetof(struct uroce_qp_attr, f), \
		(unsigned)sizeof(((struct uroce_qp_attr *)0)->f)
static const struct {
	const char *what;
	enum uroce_qps cur;
	unsigned off, size;
	uint32_t bad;
} bads[] = {
	{ "port 0", UROCE_QPS_RESET, AT(port_num), 0 },
	{ "port 2", UROCE_QPS_RESET, AT(port_num), 2 },
	{ "pkey index past the table", UROCE_QPS_RESET, AT(pkey_index), 1 },
	{ "path mtu 0", UROCE_QPS_INIT, AT(path_mtu), 0 },
	{ "path mtu past 4096", UROCE_QPS_INIT, AT(path_mtu), IBV_MTU_4096 + 1 },
	{ "rnr timer of 6 bits", UROCE_QPS_INIT, AT(min_rnr_timer), 32 },
	{ "dest rd_atomic past the device", UROCE_QPS_INIT, AT(max_dest_rd_atomic), 129 },
	{ "rd_atomic past the device", UROCE_QPS_RTR, AT(max_rd_atomic), 129 },
	{ "timeout of 6 bits", UROCE_QPS_RTR, AT(timeout), 32 },
	{ "retry count of 4 bits", UROCE_QPS_RTR, AT(retry_cnt), 8 },
	{ "rnr retry of 4 bits", UROCE_QPS_RTR, AT(rnr_retry), 8 },
};

START_TEST(a_value_out_of_range_is_refused_and_changes_nothing)
{
	enum uroce_qps cur = bads[_i].cur, next = cur + 1;
	struct uroce_qp_attr a = good(cur, next);
	struct net_path path = pair_path(&p, 0);
	int err;

	ck_assert(bring(RC, cur));
	memcpy((char *)&a + bads[_i].off, &bads[_i].bad, bads[_i].size);
	err = fake_qp_modify(qp, &a, IBV_QP_STATE | table[cur][next].required[RC], &path);
	ck_assert_msg(err == -EINVAL, "%s: %d", bads[_i].what, err);
	ck_assert_int_eq(fake_qp_state(qp), cur);
}
END_TEST

START_TEST(query_gives_back_what_was_set)
{
	struct cmd q = { .op = ENGINE_QP_QUERY };
	struct cmd_reply r;

	ck_assert(bring(RC, UROCE_QPS_RTS));
	q.key = qp->qpn;
	ck_assert_int_eq(engine_command(p.dev[0].engine, p.clock.now, &q, &r), 0);
	ck_assert_uint_eq(r.attr.qp_state, UROCE_QPS_RTS);
	ck_assert_uint_eq(r.attr.path_mtu, IBV_MTU_1024);
	ck_assert_uint_eq(r.attr.rq_psn, 5);
	ck_assert_uint_eq(r.attr.sq_psn, 6);
	ck_assert_uint_eq(r.attr.dest_qp_num, 77);
	ck_assert_uint_eq(r.attr.access, UROCE_ACCESS_REMOTE_WRITE);
	ck_assert_uint_eq(r.attr.max_rd_atomic, 1);
	ck_assert_uint_eq(r.attr.max_dest_rd_atomic, 1);
	ck_assert_uint_eq(r.attr.min_rnr_timer, 1);
	ck_assert_uint_eq(r.attr.timeout, 8);
	ck_assert_uint_eq(r.attr.retry_cnt, 1);
	ck_assert_uint_eq(r.attr.rnr_retry, 1);
	ck_assert_uint_eq(r.attr.port_num, 1);
	ck_assert_uint_eq(r.attr.cap.max_send_wr, qp->cap.max_send_wr);
	ck_assert_mem_eq(r.attr.ah.dgid, p.dev[1].gid, 16);
}
END_TEST

START_TEST(a_dead_number_is_einval)
{
	struct cmd q = { .op = ENGINE_QP_QUERY };
	struct cmd_reply r;

	ck_assert(bring(RC, UROCE_QPS_INIT));
	q.key = qp->qpn + 1;
	ck_assert_int_lt(engine_command(p.dev[0].engine, p.clock.now, &q, &r), 0);
	q.key = qp->qpn ^ 0x10000; /* right slot, wrong generation */
	ck_assert_int_lt(engine_command(p.dev[0].engine, p.clock.now, &q, &r), 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("transport/qp_modify");
	TCase *c = tcase_create("qp_modify");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, a_transition_is_legal_exactly_where_the_table_says, 0, N_CELLS);
	tcase_add_loop_test(c, each_required_attribute_is_required, 0, N_CELLS);
	tcase_add_loop_test(c, another_attribute_is_taken_exactly_when_it_is_optional, 0, N_CELLS);
	tcase_add_test(c, without_a_state_the_attributes_are_those_of_staying);
	tcase_add_test(c, a_wrong_current_state_is_refused);
	tcase_add_test(c, an_unknown_state_or_mask_bit_is_refused);
	tcase_add_loop_test(c, a_value_out_of_range_is_refused_and_changes_nothing, 0,
			    (int)(sizeof(bads) / sizeof(bads[0])));
	tcase_add_test(c, query_gives_back_what_was_set);
	tcase_add_test(c, a_dead_number_is_einval);
	suite_add_tcase(s, c);
	return s;
}
