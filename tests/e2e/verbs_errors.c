/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program sees when its work, or its peer's, is wrong: the status on both sides, the QPs'
 * states and the order of the flush. Where Linux rxe and the specification differ, the
 * specification holds.
 */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <string.h>

enum remote_fault {
	BAD_RKEY,
	STALE_RKEY,
	BEFORE_FRONT,
	BEHIND_REAR,
	ACROSS_REAR,
	WRONG_PD,
	NO_MR_ACCESS,
	NO_QP_ACCESS,
};

static void apply_fault(struct stage *s, enum remote_fault fault, struct ibv_send_wr *wr)
{
	bool is_atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			 wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint64_t *addr = is_atomic ? &wr->wr.atomic.remote_addr : &wr->wr.rdma.remote_addr;
	uint32_t *rkey = is_atomic ? &wr->wr.atomic.rkey : &wr->wr.rdma.rkey;
	struct ibv_mr *other;
	struct ibv_pd *pd;

	switch (fault) {
	case BAD_RKEY:
		*rkey ^= 0x5500;
		break;
	case STALE_RKEY:
		MUST(!ibv_dereg_mr(s->rmr), "dereg_mr: %s", strerror(errno));
		s->rmr = NULL;
		break;
	case BEFORE_FRONT:
		*addr -= 8;
		break;
	case BEHIND_REAR:
		*addr += SIZE;
		break;
	case ACROSS_REAR:
		*addr += SIZE - wr->sg_list->length + (is_atomic ? 8 : 1);
		break;
	case WRONG_PD:
		pd = ibv_alloc_pd(s->pr->ctx);
		MUST(pd, "no PD: %s", strerror(errno));
		other = ibv_reg_mr(pd, s->rbuf, SIZE, ALL_ACCESS);
		MUST(other, "no MR: %s", strerror(errno));
		*rkey = other->rkey; /* both live on; the process ends soon */
		break;
	case NO_MR_ACCESS:
	case NO_QP_ACCESS:
		break;
	}
}

static void remote_fault(enum ibv_wr_opcode opcode, enum remote_fault fault)
{
	struct vqp_conf conf = vqp_usual;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct stage *s;
	bool is_atomic =
		opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	if (fault == NO_QP_ACCESS)
		conf.access = IBV_ACCESS_LOCAL_WRITE;
	s = set_up(&conf, ALL_ACCESS, fault == NO_MR_ACCESS ? IBV_ACCESS_LOCAL_WRITE : ALL_ACCESS);
	sge = sge_of(s, is_atomic ? 8 : 5000);
	wr = remote_wr(s, opcode, &sge);
	apply_fault(s, fault, &wr);
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		post_recv(&s->r, 7, NULL, 0, 0);
	post(&s->l, &wr);
	/* A QP that does not allow the operation at all finds it invalid (rxe and IBA alike). */
	vcq_expect(s->l.scq,
		   fault == NO_QP_ACCESS ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
	must_be_in(&s->l, IBV_QPS_ERR, "requester");
	must_be_in(&s->r, IBV_QPS_ERR, "responder");
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		vcq_expect(s->r.rcq, IBV_WC_WR_FLUSH_ERR);
	must_be_untouched(s);
	tear_down(s);
}

static void for_every_remote_opcode(enum remote_fault fault)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	for (unsigned i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++)
		remote_fault(opcodes[i], fault);
}

#define REMOTE_CASE(name, fault)                \
	static void name(void)                  \
	{                                       \
		for_every_remote_opcode(fault); \
	}
REMOTE_CASE(bad_rkey, BAD_RKEY)
REMOTE_CASE(stale_rkey, STALE_RKEY)
REMOTE_CASE(before_front, BEFORE_FRONT)
REMOTE_CASE(behind_rear, BEHIND_REAR)
REMOTE_CASE(across_rear, ACROSS_REAR)
REMOTE_CASE(wrong_pd, WRONG_PD)
REMOTE_CASE(no_mr_access, NO_MR_ACCESS)
REMOTE_CASE(no_qp_access, NO_QP_ACCESS)

static void bad_lkey(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						      IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };

	for (unsigned i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++) {
		struct stage *s = set_up_usual();
		struct ibv_sge sge = sge_of(s, 8);
		struct ibv_send_wr wr = remote_wr(s, opcodes[i], &sge);

		sge.lkey ^= 0x5500;
		post(&s->l, &wr);
		vcq_expect(s->l.scq, IBV_WC_LOC_PROT_ERR);
		must_be_in(&s->l, IBV_QPS_ERR, "requester");
		must_be_in(&s->r, IBV_QPS_RTS, "responder");
		if (opcodes[i] != IBV_WR_ATOMIC_FETCH_AND_ADD)
			must_be_untouched(s);
		tear_down(s);
	}
}

static void local_bounds(void)
{
	static const int64_t moves[] = { -1, SIZE, SIZE - 99 };

	for (unsigned i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		struct stage *s = set_up_usual();
		struct ibv_sge sge = sge_of(s, 100);
		struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

		sge.addr += (uint64_t)moves[i];
		post(&s->l, &wr);
		vcq_expect(s->l.scq, IBV_WC_LOC_PROT_ERR);
		must_be_in(&s->l, IBV_QPS_ERR, "requester");
		must_be_untouched(s);
		tear_down(s);
	}
}

static void read_into_read_only(void)
{
	struct stage *s = set_up(&vqp_usual, 0, ALL_ACCESS);
	struct ibv_sge sge = sge_of(s, 100);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_READ, &sge);

	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_LOC_PROT_ERR);
	must_be_in(&s->l, IBV_QPS_ERR, "requester");
	MUST(pattern_differs(s->lbuf, SIZE, 1, 0) == SIZE, "the read-only buffer changed");
	tear_down(s);
}

static void recv_too_small(void)
{
	static const uint32_t lengths[] = { 64, 5000 }; /* found in the first, in a later packet */

	for (unsigned i = 0; i < 2; i++) {
		struct stage *s = set_up_usual();
		struct ibv_sge sge = sge_of(s, lengths[i]);
		struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, &sge);

		post_recv(&s->r, 7, s->rbuf, lengths[i] - 1, s->rmr->lkey);
		post_recv(&s->r, 8, s->rbuf, SIZE, s->rmr->lkey);
		post(&s->l, &wr);
		vcq_expect(s->l.scq, IBV_WC_REM_INV_REQ_ERR);
		MUST(vcq_expect(s->r.rcq, IBV_WC_LOC_LEN_ERR).wr_id == 7, "the wrong receive");
		MUST(vcq_expect(s->r.rcq, IBV_WC_WR_FLUSH_ERR).wr_id == 8, "the wrong receive");
		must_be_in(&s->l, IBV_QPS_ERR, "requester");
		must_be_in(&s->r, IBV_QPS_ERR, "responder");
		tear_down(s);
	}
}

static void recv_bad_lkey(void)
{
	struct stage *s = set_up_usual();
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, &sge);

	post_recv(&s->r, 7, s->rbuf, SIZE, s->rmr->lkey ^ 0x5500);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_REM_OP_ERR);
	vcq_expect(s->r.rcq, IBV_WC_LOC_PROT_ERR);
	must_be_in(&s->r, IBV_QPS_ERR, "responder");
	must_be_untouched(s);
	tear_down(s);
}

static void rnr_exceeded(void)
{
	struct vqp_conf conf = vqp_usual;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct stage *s;

	conf.rnr_retry = 2;
	conf.min_rnr_timer = 12; /* 0.64 ms */
	s = set_up(&conf, ALL_ACCESS, ALL_ACCESS);
	sge = sge_of(s, 64);
	wr = remote_wr(s, IBV_WR_SEND, &sge);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_RNR_RETRY_EXC_ERR);
	must_be_in(&s->l, IBV_QPS_ERR, "requester");
	must_be_in(&s->r, IBV_QPS_RTS, "responder");
	tear_down(s);
}

static void rnr_then_late_recv(void)
{
	struct stage *s = set_up_usual();
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, &sge);
	struct ibv_wc wc;
	uint64_t until = now_ms() + 50;

	post(&s->l, &wr);
	while (now_ms() < until)
		MUST(!ibv_poll_cq(s->l.scq, 1, &wc), "completed without a receive");
	post_recv(&s->r, 7, s->rbuf, SIZE, s->rmr->lkey);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	vcq_expect(s->r.rcq, IBV_WC_SUCCESS);
	MUST(!memcmp(s->rbuf, s->lbuf, 64), "the bytes differ");
	tear_down(s);
}

static void remote_destroyed(void)
{
	struct vqp_conf conf = vqp_usual;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct stage *s;

	conf.timeout = 12; /* 16.8 ms */
	conf.retry_cnt = 2;
	s = set_up(&conf, ALL_ACCESS, ALL_ACCESS);
	sge = sge_of(s, 64);
	wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	vqp_close(&s->r);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_RETRY_EXC_ERR);
	must_be_in(&s->l, IBV_QPS_ERR, "requester");
	must_be_untouched(s);
	tear_down(s);
}

static void flush_in_order(void)
{
	struct stage *s = set_up_usual();
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wrs[9];
	struct ibv_wc wc[16];

	for (unsigned i = 0; i < 5; i++)
		post_recv(&s->l, 100 + i, s->lbuf, 64, s->lmr->lkey);
	for (unsigned i = 0; i < 9; i++) {
		wrs[i] = remote_wr(s, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge);
		wrs[i].wr_id = i;
		/* Of the flushed ones even those that asked for no completion get one. */
		wrs[i].send_flags = i == 5 ? 0 : IBV_SEND_SIGNALED;
		wrs[i].next = i < 8 ? &wrs[i + 1] : NULL;
	}
	wrs[3].wr.rdma.rkey ^= 0x5500;
	post(&s->l, wrs);
	vcq_wait(s->l.scq, wc, 9, 10000);
	for (unsigned i = 0; i < 9; i++) {
		enum ibv_wc_status want = i < 3    ? IBV_WC_SUCCESS
					  : i == 3 ? IBV_WC_REM_ACCESS_ERR
						   : IBV_WC_WR_FLUSH_ERR;

		MUST(wc[i].wr_id == i && wc[i].status == want, "completion %u is of %llu, %s", i,
		     (unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status));
	}
	vcq_wait(s->l.rcq, wc, 5, 10000);
	for (unsigned i = 0; i < 5; i++)
		MUST(wc[i].wr_id == 100 + i && wc[i].status == IBV_WC_WR_FLUSH_ERR,
		     "receive %u is of %llu, %s", i, (unsigned long long)wc[i].wr_id,
		     ibv_wc_status_str(wc[i].status));
	MUST(!ibv_poll_cq(s->l.scq, 1, wc), "a completion too many");
	tear_down(s);
}

static void posted_in_err(void)
{
	struct stage *s = set_up_usual();
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

	MUST(!ibv_modify_qp(s->l.qp, &attr, IBV_QP_STATE), "to ERR: %s", strerror(errno));
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_WR_FLUSH_ERR);
	post_recv(&s->l, 9, s->lbuf, 64, s->lmr->lkey);
	MUST(vcq_expect(s->l.rcq, IBV_WC_WR_FLUSH_ERR).wr_id == 9, "the wrong receive");
	tear_down(s);
}

static void used_again(void)
{
	struct stage *s = set_up_usual();
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = ALL_ACCESS };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	struct vqp *both[] = { &s->l, &s->r };

	wr.wr.rdma.rkey ^= 0x5500;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 0; i < 2; i++) {
		MUST(!ibv_modify_qp(both[i]->qp, &reset, IBV_QP_STATE), "ERR to RESET: %s",
		     strerror(errno));
		MUST(!ibv_modify_qp(both[i]->qp, &init,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS),
		     "RESET to INIT: %s", strerror(errno));
	}
	vqp_connect(&s->l, s->r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&s->r, s->l.qp->qp_num, &s->pl->gid, &vqp_usual);
	wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(!memcmp(s->rbuf, s->lbuf, 64), "the bytes differ");
	tear_down(s);
}

static void misaligned_atomic(void)
{
	struct stage *s = set_up_usual();
	struct ibv_sge sge = sge_of(s, 8);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge), *bad;

	wr.wr.atomic.remote_addr += 4;
	/* Refused here or by the responder (IBA: NAK invalid request), never done. */
	if (!ibv_post_send(s->l.qp, &wr, &bad))
		vcq_expect(s->l.scq, IBV_WC_REM_INV_REQ_ERR);
	must_be_untouched(s);
	tear_down(s);
}

static void zero_length_bad_rkey(void)
{
	struct stage *s = set_up_usual();
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, NULL);

	wr.num_sge = 0;
	wr.wr.rdma.rkey = 0;
	wr.wr.rdma.remote_addr = 0;
	post(&s->l, &wr); /* UCX flushes with these */
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	must_be_untouched(s);
	tear_down(s);
}

static const struct tap_case cases[] = {
	{ "an rkey that was never given: REM_ACCESS_ERR, nothing written", bad_rkey, 0 },
	{ "an rkey whose region is gone: REM_ACCESS_ERR", stale_rkey, 0 },
	{ "eight bytes before the region: REM_ACCESS_ERR", before_front, 0 },
	{ "behind the region: REM_ACCESS_ERR", behind_rear, 0 },
	{ "across the region's end: REM_ACCESS_ERR, not even the inner part written", across_rear,
	  0 },
	{ "a region of another PD: REM_ACCESS_ERR", wrong_pd, 0 },
	{ "a region without the access bit: REM_ACCESS_ERR", no_mr_access, 0 },
	{ "a QP without the access bit: REM_INV_REQ_ERR", no_qp_access, 0 },
	{ "a bad lkey: LOC_PROT_ERR, and the peer hears nothing", bad_lkey, 0 },
	{ "an SGE outside its region, front and rear: LOC_PROT_ERR", local_bounds, 0 },
	{ "a READ into a region without local write: LOC_PROT_ERR", read_into_read_only, 0 },
	{ "a receive too short: REM_INV_REQ_ERR here, LOC_LEN_ERR there", recv_too_small, 0 },
	{ "a receive with a bad lkey: REM_OP_ERR here, LOC_PROT_ERR there", recv_bad_lkey, 0 },
	{ "no receive: RNR_RETRY_EXC_ERR after the retries, the peer stays in RTS", rnr_exceeded,
	  0 },
	{ "no receive yet: the send waits, and arrives once there is one", rnr_then_late_recv, 0 },
	{ "a destroyed remote QP: RETRY_EXC_ERR", remote_destroyed, 0 },
	{ "after an error everything is flushed, in order, each once", flush_in_order, 0 },
	{ "what is posted in ERR is flushed, receives too", posted_in_err, 0 },
	{ "a QP works again after ERR and RESET", used_again, 0 },
	{ "a misaligned atomic changes nothing", misaligned_atomic, 0 },
	{ "a WRITE of no bytes needs no rkey", zero_length_bad_rkey, 0 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
