/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_post_send, ibv_post_recv and ibv_poll_cq against the bytes in the rings. */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rig rig;

static void setup(void)
{
	rig_up(&rig);
}

static void teardown(void)
{
	rig_down(&rig);
}

static struct ibv_sge two_sges[2] = { { 0x1000, 10, 0x77 }, { 0x2000, 20, 0x78 } };

static struct ibv_send_wr send_wr(uint64_t id, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = opcode, .sg_list = two_sges, .num_sge = 2,
				  .send_flags = IBV_SEND_SIGNALED };

	return wr;
}

static int post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(rig.qp, wr, &bad);
}

START_TEST(write_with_immediate_has_every_field_in_the_slot)
{
	struct ibv_send_wr wr = send_wr(42, IBV_WR_RDMA_WRITE_WITH_IMM);
	const struct uroce_wqe *wqe = rig_wqe(&rig, 0);
	const struct uroce_sge *sge = (const struct uroce_sge *)(wqe + 1);

	wr.imm_data = 0x11223344;
	wr.wr.rdma.remote_addr = 0xabcdef;
	wr.wr.rdma.rkey = 0x99;
	wr.send_flags |= IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	ck_assert_int_eq(post(&wr), 0);
	ck_assert_uint_eq(wqe->wr_id, 42);
	ck_assert_uint_eq(wqe->opcode, UROCE_WR_WRITE_IMM);
	ck_assert_uint_eq(wqe->flags, UROCE_WQE_FENCE | UROCE_WQE_SIGNALED | UROCE_WQE_SOLICITED);
	ck_assert_uint_eq(wqe->imm, 0x11223344);
	ck_assert_uint_eq(wqe->remote_addr, 0xabcdef);
	ck_assert_uint_eq(wqe->rkey, 0x99);
	ck_assert_uint_eq(wqe->num_sge, 2);
	ck_assert_uint_eq(sge[1].addr, 0x2000);
	ck_assert_uint_eq(sge[1].length, 20);
	ck_assert_uint_eq(sge[1].lkey, 0x78);
	ck_assert_uint_eq(rig.page->sq.prod, 1);
}
END_TEST

START_TEST(atomic_operands_are_in_the_slot)
{
	struct ibv_send_wr wr = send_wr(1, IBV_WR_ATOMIC_CMP_AND_SWP);
	const struct uroce_wqe *wqe = rig_wqe(&rig, 0);

	wr.wr.atomic.remote_addr = 8;
	wr.wr.atomic.rkey = 9;
	wr.wr.atomic.compare_add = 10;
	wr.wr.atomic.swap = 11;
	ck_assert_int_eq(post(&wr), 0);
	ck_assert_uint_eq(wqe->opcode, UROCE_WR_CMP_SWAP);
	ck_assert_uint_eq(wqe->remote_addr, 8);
	ck_assert_uint_eq(wqe->rkey, 9);
	ck_assert_uint_eq(wqe->compare_add, 10);
	ck_assert_uint_eq(wqe->swap, 11);
}
END_TEST

START_TEST(inline_data_is_copied_and_may_change_after_the_post)
{
	char text[] = "hello, world";
	struct ibv_sge sge[2] = { { (uintptr_t)text, 5, 0 }, { (uintptr_t)text + 5, 7, 0 } };
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND);
	const struct uroce_wqe *wqe = rig_wqe(&rig, 0);

	wr.sg_list = sge;
	wr.send_flags = IBV_SEND_INLINE;
	ck_assert_int_eq(post(&wr), 0);
	memset(text, 'x', sizeof(text));
	ck_assert_uint_eq(wqe->flags, UROCE_WQE_INLINE);
	ck_assert_uint_eq(wqe->inline_len, 12);
	ck_assert_mem_eq(wqe + 1, "hello, world", 12);
}
END_TEST

START_TEST(doorbell_sets_bit_and_summary_and_wakes_only_a_sleeper)
{
	struct uroce_uar_worker *uar = fake_uar(&rig.fake, 1);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND);
	uint32_t slot = rig.fake.qp[0].rep.slot;
	uint64_t count;

	ck_assert_int_eq(post(&wr), 0);
	ck_assert_uint_eq(uar->bits[slot / 64], 1ull << (slot % 64));
	ck_assert_uint_eq(uar->summary[0], 1ull << (slot / 64));
	ck_assert_uint_eq(fake_uar(&rig.fake, 0)->summary[0], 0);
	ck_assert_int_eq(read(rig.fake.wake_fd[1], &count, 8), -1);
	uar->need_wakeup = 1;
	ck_assert_int_eq(post(&wr), 0);
	ck_assert_int_eq(read(rig.fake.wake_fd[1], &count, 8), 8);
}
END_TEST

START_TEST(a_list_is_published_up_to_the_bad_request)
{
	struct ibv_send_wr wr[3] = { send_wr(1, IBV_WR_SEND), send_wr(2, IBV_WR_SEND),
				     send_wr(3, IBV_WR_SEND) };
	struct ibv_send_wr *bad = NULL;

	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	wr[1].num_sge = RIG_SGE + 1;
	ck_assert_int_eq(ibv_post_send(rig.qp, wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr[1]);
	ck_assert_uint_eq(rig.page->sq.prod, 1);
}
END_TEST

/* What is refused, and how: as the HCAs' providers do it. */
static const struct {
	const char *what;
	enum ibv_qp_state state;
	enum ibv_wr_opcode opcode;
	int num_sge;
	unsigned flags;
	uint32_t length;
	int err;
} refused[] = {
	{ "reset", IBV_QPS_RESET, IBV_WR_SEND, 1, 0, 1, EINVAL },
	{ "init", IBV_QPS_INIT, IBV_WR_SEND, 1, 0, 1, EINVAL },
	{ "rtr", IBV_QPS_RTR, IBV_WR_SEND, 1, 0, 1, EINVAL },
	{ "error state takes posts, to flush them", IBV_QPS_ERR, IBV_WR_SEND, 1, 0, 1, 0 },
	{ "too many sges", IBV_QPS_RTS, IBV_WR_SEND, RIG_SGE + 1, 0, 1, EINVAL },
	{ "negative sges", IBV_QPS_RTS, IBV_WR_SEND, -1, 0, 1, EINVAL },
	{ "inline too large", IBV_QPS_RTS, IBV_WR_SEND, 1, IBV_SEND_INLINE, RIG_INLINE + 1,
	  EINVAL },
	{ "inline exactly", IBV_QPS_RTS, IBV_WR_SEND, 1, IBV_SEND_INLINE, RIG_INLINE, 0 },
	{ "inline read", IBV_QPS_RTS, IBV_WR_RDMA_READ, 1, IBV_SEND_INLINE, 1, EINVAL },
	{ "unknown opcode", IBV_QPS_RTS, (enum ibv_wr_opcode)77, 1, 0, 1, EINVAL },
	{ "tso on rc", IBV_QPS_RTS, IBV_WR_TSO, 1, 0, 1, EINVAL },
	{ "unknown flag", IBV_QPS_RTS, IBV_WR_SEND, 1, 0x8000, 1, EINVAL },
	{ "no sge at all", IBV_QPS_RTS, IBV_WR_SEND, 0, 0, 1, 0 },
};

START_TEST(bad_sends_are_refused_as_hcas_refuse_them)
{
	static char memory[RIG_INLINE + 8];
	struct ibv_sge sge[RIG_SGE + 1] = { { (uintptr_t)memory, refused[_i].length, 0 },
					    { (uintptr_t)memory, 1, 0 } };
	struct ibv_send_wr wr = { .opcode = refused[_i].opcode, .sg_list = sge,
				  .num_sge = refused[_i].num_sge, .send_flags = refused[_i].flags };
	struct ibv_send_wr *bad = NULL;

	rig_state(rig.qp, refused[_i].state);
	ck_assert_msg(ibv_post_send(rig.qp, &wr, &bad) == refused[_i].err, "%s", refused[_i].what);
	ck_assert_ptr_eq(bad, refused[_i].err ? &wr : NULL);
	ck_assert_uint_eq(rig.page->sq.prod, refused[_i].err ? 0 : 1);
}
END_TEST

START_TEST(uc_knows_no_read_and_ud_no_write)
{
	struct ibv_qp *uc = rig_qp(&rig, IBV_QPT_UC), *ud = rig_qp(&rig, IBV_QPT_UD);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_READ), *bad;

	rig_state(uc, IBV_QPS_RTS);
	rig_state(ud, IBV_QPS_RTS);
	ck_assert_int_eq(ibv_post_send(uc, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_RDMA_WRITE;
	ck_assert_int_eq(ibv_post_send(uc, &wr, &bad), 0);
	ck_assert_int_eq(ibv_post_send(ud, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = NULL;
	ck_assert_int_eq(ibv_post_send(ud, &wr, &bad), EINVAL);
	ck_assert_int_eq(ibv_destroy_qp(uc), 0);
	ck_assert_int_eq(ibv_destroy_qp(ud), 0);
}
END_TEST

START_TEST(datagrams_name_the_address_handle_by_its_number)
{
	struct ibv_qp *ud = rig_qp(&rig, IBV_QPT_UD);
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(rig.pd, &attr);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND_WITH_IMM), *bad;
	const struct fake_qp *f = &rig.fake.qp[1];
	const struct uroce_wqe *wqe = (const struct uroce_wqe *)(f->mem + f->rep.sq_off);

	rig_state(ud, IBV_QPS_RTS);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x123456;
	wr.wr.ud.remote_qkey = 0x11111111;
	ck_assert_int_eq(ibv_post_send(ud, &wr, &bad), 0);
	ck_assert_uint_eq(wqe->ah, 0x30009);
	ck_assert_uint_eq(wqe->remote_qpn, 0x123456);
	ck_assert_uint_eq(wqe->remote_qkey, 0x11111111);
	ck_assert_uint_eq(wqe->remote_addr, 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ck_assert_int_eq(ibv_destroy_qp(ud), 0);
}
END_TEST

START_TEST(a_slot_is_free_again_when_its_completion_was_polled)
{
	struct uroce_cqe cqe;
	struct ibv_wc wc[4];

	for (uint64_t i = 0; i < RIG_SQ; i++) {
		struct ibv_send_wr wr = send_wr(100 + i, IBV_WR_SEND);

		ck_assert_int_eq(post(&wr), 0);
	}
	struct ibv_send_wr more = send_wr(104, IBV_WR_RDMA_READ);

	ck_assert_int_eq(post(&more), ENOMEM);
	cqe = rig_cqe(rig.qp, UROCE_CQE_SQ, 1); /* index 0 was unsignaled: freed with it */
	cqe.byte_len = 30;
	fake_complete(&rig.fake, rig.cq->handle, 0, &cqe);
	ck_assert_int_eq(post(&more), ENOMEM);
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 4, wc), 1);
	ck_assert_uint_eq(wc[0].wr_id, 101);
	ck_assert_int_eq(wc[0].status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc[0].opcode, IBV_WC_SEND);
	ck_assert_uint_eq(wc[0].qp_num, rig.qp->qp_num);
	ck_assert_uint_eq(wc[0].byte_len, 30);
	ck_assert_int_eq(post(&more), 0);
	ck_assert_int_eq(post(&more), 0);
	ck_assert_int_eq(post(&more), ENOMEM);
	/* The ring is round: index 4 is in slot 0. */
	ck_assert_uint_eq(rig_wqe(&rig, 4)->wr_id, 104);
	ck_assert_ptr_eq(rig_wqe(&rig, 4), rig_wqe(&rig, 0));
}
END_TEST

START_TEST(an_index_never_posted_frees_nothing)
{
	struct ibv_send_wr wr = send_wr(5, IBV_WR_SEND);
	struct uroce_cqe cqe = rig_cqe(rig.qp, UROCE_CQE_SQ, 3);
	struct ibv_wc wc;

	for (int i = 0; i < RIG_SQ - 1; i++)
		ck_assert_int_eq(post(&wr), 0);
	fake_complete(&rig.fake, rig.cq->handle, 0, &cqe);
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 1, &wc), 1);
	ck_assert_int_eq(post(&wr), 0);
	ck_assert_int_eq(post(&wr), ENOMEM);
}
END_TEST

START_TEST(failed_and_received_completions_carry_their_fields)
{
	struct ibv_recv_wr wr = { .wr_id = 9, .sg_list = two_sges, .num_sge = 2 }, *bad;
	struct uroce_cqe cqe;
	struct ibv_wc wc;

	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), 0);
	cqe = rig_cqe(rig.qp, UROCE_CQE_RQ, 0);
	cqe.opcode = UROCE_WC_RECV_IMM;
	cqe.flags = UROCE_WC_WITH_IMM;
	cqe.imm = 0x01020304;
	cqe.src_qp = 77;
	cqe.status = UROCE_WC_LOC_LEN_ERR;
	cqe.vendor_err = UROCE_VERR_RECV_LEN;
	fake_complete(&rig.fake, rig.cq->handle, 1, &cqe);
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 9);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_LEN_ERR);
	ck_assert_uint_eq(wc.vendor_err, UROCE_VERR_RECV_LEN);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(wc.imm_data, 0x01020304);
	ck_assert_uint_eq(wc.src_qp, 77);
}
END_TEST

START_TEST(receives_fill_their_ring_and_ring_only_when_wanted)
{
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = two_sges, .num_sge = 2 }, *bad;
	const struct fake_qp *f = &rig.fake.qp[0];
	const struct uroce_rqe *rqe = (const struct uroce_rqe *)(f->mem + f->rep.rq_off);
	const struct uroce_sge *sge = (const struct uroce_sge *)(rqe + 1);

	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), 0);
	ck_assert_uint_eq(rqe->wr_id, 3);
	ck_assert_uint_eq(rqe->num_sge, 2);
	ck_assert_uint_eq(sge[0].addr, 0x1000);
	ck_assert_uint_eq(rig.page->rq.prod, 1);
	ck_assert_uint_eq(fake_uar(&rig.fake, 1)->summary[0], 0);
	rig.page->want = 1;
	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), 0);
	ck_assert_uint_ne(fake_uar(&rig.fake, 1)->summary[0], 0);
	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), 0);
	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), 0);
	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), ENOMEM);
	wr.num_sge = RIG_SGE + 1;
	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), EINVAL);
	ck_assert_int_eq(rig_state(rig.qp, IBV_QPS_RESET), 0);
	wr.num_sge = 1;
	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), EINVAL);
}
END_TEST

START_TEST(all_sub_rings_are_visited)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_wc wc[4];

	for (int i = 0; i < RIG_RQ; i++, wr.wr_id++)
		ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), 0);
	for (uint32_t i = 0; i < RIG_RQ; i++) {
		struct uroce_cqe cqe = rig_cqe(rig.qp, UROCE_CQE_RQ, i);

		fake_complete(&rig.fake, rig.cq->handle, i / 2, &cqe);
	}
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 4, wc), 4);
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 4, wc), 0);
}
END_TEST

START_TEST(destroying_a_qp_takes_its_completions_away)
{
	struct ibv_qp *other = rig_qp(&rig, IBV_QPT_RC);
	struct ibv_recv_wr wr = { .wr_id = 8 }, *bad;
	struct uroce_cqe cqe;
	struct ibv_wc wc[4];

	rig_state(other, IBV_QPS_INIT);
	ck_assert_int_eq(ibv_post_recv(rig.qp, &wr, &bad), 0);
	ck_assert_int_eq(ibv_post_recv(other, &wr, &bad), 0);
	cqe = rig_cqe(rig.qp, UROCE_CQE_RQ, 0);
	fake_complete(&rig.fake, rig.cq->handle, 0, &cqe);
	cqe = rig_cqe(other, UROCE_CQE_RQ, 0);
	fake_complete(&rig.fake, rig.cq->handle, 0, &cqe);
	ck_assert_int_eq(ibv_destroy_qp(rig.qp), 0);
	rig.qp = NULL;
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 4, wc), 1);
	ck_assert_uint_eq(wc[0].qp_num, other->qp_num);
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 4, wc), 0);
	ck_assert_int_eq(ibv_destroy_qp(other), 0);
}
END_TEST

START_TEST(reset_forgets_completions_and_starts_the_rings_over)
{
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND);
	struct uroce_cqe cqe = rig_cqe(rig.qp, UROCE_CQE_SQ, 0);
	struct ibv_wc wc;

	ck_assert_int_eq(post(&wr), 0);
	fake_complete(&rig.fake, rig.cq->handle, 0, &cqe);
	ck_assert_int_eq(rig_state(rig.qp, IBV_QPS_RESET), 0);
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 1, &wc), 0);
	ck_assert_uint_eq(rig.page->sq.prod, 0);
	rig_state(rig.qp, IBV_QPS_RTS);
	for (int i = 0; i < RIG_SQ; i++)
		ck_assert_int_eq(post(&wr), 0);
	ck_assert_int_eq(post(&wr), ENOMEM);
}
END_TEST

START_TEST(an_impossible_producer_index_yields_nothing)
{
	struct uroce_ring *ring = (struct uroce_ring *)(rig.fake.cq[0].mem + 64);
	struct ibv_wc wc;

	uroce_ring_publish(ring, 1000);
	ck_assert_int_eq(ibv_poll_cq(rig.cq, 1, &wc), 0);
	uroce_ring_publish(ring, 0);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/post");
	TCase *tc = tcase_create("rings");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, write_with_immediate_has_every_field_in_the_slot);
	tcase_add_test(tc, atomic_operands_are_in_the_slot);
	tcase_add_test(tc, inline_data_is_copied_and_may_change_after_the_post);
	tcase_add_test(tc, doorbell_sets_bit_and_summary_and_wakes_only_a_sleeper);
	tcase_add_test(tc, a_list_is_published_up_to_the_bad_request);
	tcase_add_loop_test(tc, bad_sends_are_refused_as_hcas_refuse_them, 0,
			    sizeof(refused) / sizeof(*refused));
	tcase_add_test(tc, uc_knows_no_read_and_ud_no_write);
	tcase_add_test(tc, datagrams_name_the_address_handle_by_its_number);
	tcase_add_test(tc, a_slot_is_free_again_when_its_completion_was_polled);
	tcase_add_test(tc, an_index_never_posted_frees_nothing);
	tcase_add_test(tc, failed_and_received_completions_carry_their_fields);
	tcase_add_test(tc, receives_fill_their_ring_and_ring_only_when_wanted);
	tcase_add_test(tc, all_sub_rings_are_visited);
	tcase_add_test(tc, destroying_a_qp_takes_its_completions_away);
	tcase_add_test(tc, reset_forgets_completions_and_starts_the_rings_over);
	tcase_add_test(tc, an_impossible_producer_index_yields_nothing);
	suite_add_tcase(s, tc);
	return s;
}
