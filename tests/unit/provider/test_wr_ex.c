/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_*: the WQEs are those of ibv_post_send, and nothing is published but by a clean complete.
 */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS_RC                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

static struct rig rig;
static struct ibv_qp *qp; /* the extended one: the fake daemon's second */
static struct ibv_qp_ex *ex;

static struct ibv_qp *make(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = rig.cq,
		.recv_cq = rig.cq,
		.qp_type = type,
		.cap = { RIG_SQ, RIG_RQ, RIG_SGE, RIG_SGE, RIG_INLINE },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = rig.pd,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(rig.ctx, &init);
}

static void setup_as(enum ibv_qp_type type, uint64_t ops)
{
	rig_up(&rig);
	qp = make(type, ops);
	ck_assert_ptr_nonnull(qp);
	ex = ibv_qp_to_qp_ex(qp);
	ck_assert_ptr_nonnull(ex);
	ck_assert_int_eq(rig_state(qp, IBV_QPS_RTS), 0);
}

static void setup(void)
{
	setup_as(IBV_QPT_RC, OPS_RC);
}

static void setup_ud(void)
{
	setup_as(IBV_QPT_UD, OPS_UD);
}

static void teardown(void)
{
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	rig_down(&rig);
}

static const uint8_t *slot_of(unsigned fake_qp, uint32_t index)
{
	const struct fake_qp *f = &rig.fake.qp[fake_qp];

	return f->mem + f->rep.sq_off + index * f->rep.sq_stride;
}

static const struct uroce_wqe *wqe_at(uint32_t index)
{
	return (const struct uroce_wqe *)slot_of(1, index);
}

static uint32_t published(void)
{
	return ((const struct uroce_qp_page *)rig.fake.qp[1].mem)->sq.prod;
}

static void start(uint64_t id, unsigned flags)
{
	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = flags;
}

static struct ibv_sge sges[2] = { { 0x1000, 10, 0x77 }, { 0x2000, 20, 0x78 } };

static void call(enum ibv_wr_opcode op)
{
	switch ((int)op) {
	case IBV_WR_RDMA_WRITE:
		return ibv_wr_rdma_write(ex, 0x99, 0xabcde8);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return ibv_wr_rdma_write_imm(ex, 0x99, 0xabcde8, 0x11223344);
	case IBV_WR_SEND:
		return ibv_wr_send(ex);
	case IBV_WR_SEND_WITH_IMM:
		return ibv_wr_send_imm(ex, 0x11223344);
	case IBV_WR_RDMA_READ:
		return ibv_wr_rdma_read(ex, 0x99, 0xabcde8);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return ibv_wr_atomic_cmp_swp(ex, 0x99, 0xabcde8, 10, 11);
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return ibv_wr_atomic_fetch_add(ex, 0x99, 0xabcde8, 10);
	case IBV_WR_SEND_WITH_INV:
		return ibv_wr_send_inv(ex, 0x11223344);
	default:
		abort();
	}
}

static struct ibv_send_wr same(enum ibv_wr_opcode op)
{
	struct ibv_send_wr wr = { .wr_id = 42,
				  .opcode = op,
				  .sg_list = sges,
				  .num_sge = 2,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };

	if (op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND_WITH_IMM ||
	    op == IBV_WR_SEND_WITH_INV)
		wr.imm_data = 0x11223344;
	wr.wr.rdma.remote_addr = 0xabcde8;
	wr.wr.rdma.rkey = 0x99;
	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0xabcde8;
		wr.wr.atomic.rkey = 0x99;
		wr.wr.atomic.compare_add = 10;
		wr.wr.atomic.swap = op == IBV_WR_ATOMIC_CMP_AND_SWP ? 11 : 0;
	}
	return wr;
}

static const enum ibv_wr_opcode both_ways[] = {
	IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_READ,           IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
};

START_TEST(the_slot_is_the_one_that_post_send_writes)
{
	struct ibv_send_wr wr = same(both_ways[_i]), *bad;

	ck_assert_int_eq(ibv_post_send(rig.qp, &wr, &bad), 0);
	start(42, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	call(both_ways[_i]);
	ibv_wr_set_sge_list(ex, 2, sges);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(published(), 1);
	ck_assert_mem_eq(slot_of(0, 0), slot_of(1, 0), sizeof(struct uroce_wqe) + sizeof(sges));
}
END_TEST

START_TEST(local_invalidate_and_bind_carry_their_keys)
{
	struct ibv_mr mr = { .context = rig.ctx, .lkey = 0x501 };
	struct ibv_mw mw = { .rkey = 0x600, .type = IBV_MW_TYPE_2 };
	const struct ibv_mw_bind_info info = { &mr, 0x4000, 64, IBV_ACCESS_REMOTE_WRITE };

	start(1, IBV_SEND_SIGNALED);
	ibv_wr_local_inv(ex, 0x77);
	ibv_wr_bind_mw(ex, &mw, 0x601, &info);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(wqe_at(0)->opcode, UROCE_WR_LOCAL_INV);
	ck_assert_uint_eq(wqe_at(0)->imm, 0x77);
	ck_assert_uint_eq(wqe_at(1)->rkey, 0x601);
	ck_assert_uint_eq(wqe_at(1)->imm, 0x600);
	ck_assert_uint_eq(wqe_at(1)->remote_addr, 0x4000);
	ck_assert_uint_eq(wqe_at(1)->compare_add, 64);
	ck_assert_uint_eq(wqe_at(1)->swap, (uint64_t)IBV_ACCESS_REMOTE_WRITE << 32 | 0x501);
}
END_TEST

START_TEST(inline_lists_are_copied_at_once)
{
	char a[4] = "abc", b[3] = "de";
	const struct ibv_data_buf list[2] = { { a, 3 }, { b, 2 } };

	start(1, 0);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, list);
	memset(a, 'x', sizeof(a));
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(wqe_at(0)->flags, UROCE_WQE_INLINE);
	ck_assert_uint_eq(wqe_at(0)->inline_len, 5);
	ck_assert_mem_eq(wqe_at(0) + 1, "abcde", 5);
}
END_TEST

START_TEST(a_later_setter_replaces_the_data)
{
	char text[4] = "abc";

	start(1, 0);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, text, 3);
	ibv_wr_set_sge(ex, 0x77, 0x1000, 10);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(wqe_at(0)->flags, 0);
	ck_assert_uint_eq(wqe_at(0)->inline_len, 0);
	ck_assert_uint_eq(wqe_at(0)->num_sge, 1);
}
END_TEST

START_TEST(an_aborted_batch_was_never_posted)
{
	start(1, 0);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	ck_assert_uint_eq(published(), 0);
	start(2, 0);
	ibv_wr_send(ex);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(published(), 1);
	ck_assert_uint_eq(wqe_at(0)->wr_id, 2);
}
END_TEST

static void no_refusal(void)
{
}

static void inline_too_long(void)
{
	static char big[4096];

	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, big, sizeof(big));
}

static void list_too_long(void)
{
	struct ibv_sge many[RIG_SGE + 1] = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 } };

	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, RIG_SGE + 1, many);
}

static char big_enough[64];

static void inline_read(void)
{
	ibv_wr_rdma_read(ex, 1, 8);
	ibv_wr_set_inline_data(ex, big_enough, 1);
}

static void data_for_invalidate(void)
{
	ibv_wr_local_inv(ex, 1);
	ibv_wr_set_sge(ex, 1, 1, 1);
}

static void bind_of_type_1(void)
{
	struct ibv_mr mr = { .context = rig.ctx };
	struct ibv_mw mw = { .type = IBV_MW_TYPE_1 };
	const struct ibv_mw_bind_info info = { &mr, 0x4000, 64, IBV_ACCESS_REMOTE_WRITE };

	ibv_wr_bind_mw(ex, &mw, 1, &info);
}

static void address_on_rc(void)
{
	struct ibv_ah ah = { .handle = 1 };

	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, &ah, 1, 1);
}

static void queue_overfull(void)
{
	for (int i = 0; i < RIG_SQ; i++)
		ibv_wr_send(ex);
}

static const struct {
	void (*build)(void);
	int err;
} refused[] = {
	{ no_refusal, 0 },         { inline_too_long, EINVAL },     { list_too_long, EINVAL },
	{ inline_read, EINVAL },   { data_for_invalidate, EINVAL }, { bind_of_type_1, EINVAL },
	{ address_on_rc, EINVAL }, { queue_overfull, ENOMEM },
};

START_TEST(one_refusal_refuses_the_batch)
{
	start(1, 0);
	ibv_wr_send(ex);
	refused[_i].build();
	ck_assert_int_eq(ibv_wr_complete(ex), refused[_i].err);
	ck_assert_uint_eq(published(), refused[_i].err ? 0 : 1);
}
END_TEST

START_TEST(nothing_is_posted_before_rts)
{
	rig_state(qp, IBV_QPS_RESET);
	start(1, 0);
	ibv_wr_send(ex);
	ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
}
END_TEST

START_TEST(datagrams_need_an_address_each)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(rig.pd, &attr);

	start(1, 0);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, 0x123456, 0x1234);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(wqe_at(0)->ah, ah->handle);
	ck_assert_uint_eq(wqe_at(0)->remote_qpn, 0x123456);
	ck_assert_uint_eq(wqe_at(0)->remote_qkey, 0x1234);
	start(2, 0);
	ibv_wr_send(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, 1, 1);
	ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}
END_TEST

static const struct {
	enum ibv_qp_type type;
	uint64_t ops;
} impossible[] = {
	{ IBV_QPT_RC, IBV_QP_EX_WITH_TSO },
	{ IBV_QPT_RC, 1ull << 40 },
	{ IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ },
	{ IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	{ IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE },
	{ IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND },
};

START_TEST(operations_that_a_type_has_not_are_refused_at_creation)
{
	errno = 0;
	ck_assert_ptr_null(make(impossible[_i].type, impossible[_i].ops));
	ck_assert_int_eq(errno, EOPNOTSUPP);
}
END_TEST

START_TEST(a_qp_made_without_them_is_not_extended)
{
	ck_assert_ptr_null(ibv_qp_to_qp_ex(rig.qp));
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof(*(a))))

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/wr_ex");
	TCase *rc = tcase_create("rc"), *ud = tcase_create("ud");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(rc, setup, teardown);
	tcase_add_loop_test(rc, the_slot_is_the_one_that_post_send_writes, 0, N(both_ways));
	tcase_add_test(rc, local_invalidate_and_bind_carry_their_keys);
	tcase_add_test(rc, inline_lists_are_copied_at_once);
	tcase_add_test(rc, a_later_setter_replaces_the_data);
	tcase_add_test(rc, an_aborted_batch_was_never_posted);
	tcase_add_loop_test(rc, one_refusal_refuses_the_batch, 0, N(refused));
	tcase_add_test(rc, nothing_is_posted_before_rts);
	tcase_add_loop_test(rc, operations_that_a_type_has_not_are_refused_at_creation, 0,
			    N(impossible));
	tcase_add_test(rc, a_qp_made_without_them_is_not_extended);
	tcase_add_checked_fixture(ud, setup_ud, teardown);
	tcase_add_test(ud, datagrams_need_an_address_each);
	suite_add_tcase(s, rc);
	suite_add_tcase(s, ud);
	return s;
}
