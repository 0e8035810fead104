/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that are registered anew, and memory windows onto them. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BIND_ACCESS (ALL_ACCESS | IBV_ACCESS_MW_BIND)

static void write_to(struct stage *s, uint64_t addr, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, status);
}

static void rereg_moves(void)
{
	struct stage *s = set_up_usual();
	uint8_t *other = calloc(1, SIZE);
	int err = ibv_rereg_mr(s->rmr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, SIZE, 0);

	MUST(!err, "rereg_mr: %d, %s", err, strerror(errno));
	MUST(s->rmr->addr == other && s->rmr->length == SIZE, "ibv_mr says otherwise");
	write_to(s, (uintptr_t)other, s->rmr->rkey, IBV_WC_SUCCESS);
	MUST(pattern_differs(other, 64, 1, 0) == 64, "the new memory has other bytes");
	must_be_untouched(s);
	write_to(s, (uintptr_t)s->rbuf, s->rmr->rkey, IBV_WC_REM_ACCESS_ERR);
	must_be_untouched(s);
	tear_down(s);
	free(other);
}

static void rereg_access(void)
{
	struct stage *s = set_up_usual();
	int err = ibv_rereg_mr(s->rmr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_LOCAL_WRITE);

	MUST(!err, "rereg_mr: %d, %s", err, strerror(errno));
	write_to(s, (uintptr_t)s->rbuf, s->rmr->rkey, IBV_WC_REM_ACCESS_ERR);
	must_be_untouched(s);
	tear_down(s);
}

static void rereg_pd(void)
{
	struct stage *s = set_up_usual();
	struct ibv_pd *pd = ibv_alloc_pd(s->pr->ctx);
	int err = ibv_rereg_mr(s->rmr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0);

	MUST(!err && s->rmr->pd == pd, "rereg_mr: %d, %s", err, strerror(errno));
	MUST(ibv_dealloc_pd(pd) == EBUSY, "the region's new PD was freed");
	write_to(s, (uintptr_t)s->rbuf, s->rmr->rkey, IBV_WC_REM_ACCESS_ERR);
	must_be_untouched(s);
	tear_down(s);
	MUST(!ibv_dealloc_pd(pd), "dealloc_pd: %s", strerror(errno));
}

static void rereg_refused(void)
{
	struct stage *s = set_up_usual();

	MUST(ibv_rereg_mr(s->rmr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			  IBV_ACCESS_REMOTE_WRITE),
	     "remote write without local write");
	MUST(ibv_rereg_mr(s->rmr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)64, SIZE, 0),
	     "memory that is not there");
	write_to(s, (uintptr_t)s->rbuf, s->rmr->rkey, IBV_WC_SUCCESS); /* as it was */
	tear_down(s);
}

/* The peer binds; l writes through it. */
static void bind_1(struct stage *s, struct ibv_mw *mw, size_t off, size_t length,
		   enum ibv_wc_status status)
{
	struct ibv_mw_bind bind = { .wr_id = 5,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { .mr = s->rmr,
						   .addr = (uintptr_t)s->rbuf + off,
						   .length = length,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } };
	int err = ibv_bind_mw(s->r.qp, mw, &bind);

	MUST(!err, "bind_mw: %s", strerror(err));
	MUST(vcq_expect(s->r.scq, status).wr_id == 5, "another completion");
}

static struct ibv_mw *make_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	MUST(mw, "no window: %s", strerror(errno));
	return mw;
}

static void type_1(void)
{
	struct stage *s = set_up(&vqp_usual, ALL_ACCESS, BIND_ACCESS);
	struct ibv_mw *mw = make_mw(s->pr->pd, IBV_MW_TYPE_1);
	uint32_t old;

	bind_1(s, mw, 128, 64, IBV_WC_SUCCESS);
	old = mw->rkey;
	write_to(s, (uintptr_t)s->rbuf + 128, mw->rkey, IBV_WC_SUCCESS);
	MUST(pattern_differs(s->rbuf + 128, 64, 1, 0) == 64, "other bytes arrived");
	MUST(ibv_dereg_mr(s->rmr) == EBUSY, "a region under a window was taken away");
	bind_1(s, mw, 256, 64, IBV_WC_SUCCESS);
	MUST(mw->rkey != old, "the key stayed");
	write_to(s, (uintptr_t)s->rbuf + 256, mw->rkey, IBV_WC_SUCCESS);
	write_to(s, (uintptr_t)s->rbuf + 128, old, IBV_WC_REM_ACCESS_ERR);
	MUST(!ibv_dealloc_mw(mw), "dealloc_mw: %s", strerror(errno));
	tear_down(s);
}

static void type_1_bounds(void)
{
	struct stage *s = set_up(&vqp_usual, ALL_ACCESS, BIND_ACCESS);
	struct ibv_mw *mw = make_mw(s->pr->pd, IBV_MW_TYPE_1);

	bind_1(s, mw, 0, 63, IBV_WC_SUCCESS);
	write_to(s, (uintptr_t)s->rbuf, mw->rkey, IBV_WC_REM_ACCESS_ERR);
	must_be_untouched(s);
	MUST(!ibv_dealloc_mw(mw), "dealloc_mw: %s", strerror(errno));
	tear_down(s);
}

static void bind_refused(void)
{
	struct stage *s = set_up_usual(); /* the region allows no windows */
	struct ibv_mw *mw = make_mw(s->pr->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .bind_info = { .mr = s->rmr,
						   .addr = (uintptr_t)s->rbuf,
						   .length = 64,
						   .mw_access_flags = IBV_ACCESS_ZERO_BASED } };

	MUST(ibv_bind_mw(s->r.qp, mw, &bind) == EINVAL, "a zero-based window of type 1");
	MUST(!ibv_alloc_mw(s->pr->pd, (enum ibv_mw_type)3), "a window of type 3");
	bind_1(s, mw, 0, 64, IBV_WC_MW_BIND_ERR);
	must_be_in(&s->r, IBV_QPS_ERR, "QP whose binding failed");
	MUST(!ibv_dealloc_mw(mw), "dealloc_mw: %s", strerror(errno));
	tear_down(s);
}

/*
 * Another QP, perhaps of another worker, binds the window anew while a stream of writes comes in by
 * its old key. From the completion on nothing more may be written.
 */
static void revoked_under_fire(void)
{
	struct stage *s = set_up(&vqp_usual, ALL_ACCESS, BIND_ACCESS);
	struct ibv_mw *mw = make_mw(s->pr->pd, IBV_MW_TYPE_1);
	struct ibv_sge sge = sge_of(s, SIZE / 2);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	struct vqp l, r;
	struct ibv_wc wc;

	vqp_pair(&l, s->pl, &r, s->pr, &vqp_usual);
	for (unsigned round = 0; round < 8; round++) {
		bind_1(s, mw, 0, SIZE / 2, IBV_WC_SUCCESS);
		wr.wr.rdma.rkey = mw->rkey;
		wr.send_flags = 0;
		for (unsigned i = 0; i < 100; i++)
			post(&l, &wr);
		bind_1(s, mw, SIZE / 2, SIZE / 2, IBV_WC_SUCCESS);
		memset(s->rbuf, 0xee, SIZE / 2);
		wr.send_flags = IBV_SEND_SIGNALED;
		post(&l, &wr);
		do
			vcq_wait(l.scq, &wc, 1, 10000);
		while (wc.status == IBV_WC_WR_FLUSH_ERR);
		MUST(wc.status == IBV_WC_REM_ACCESS_ERR, "%s", ibv_wc_status_str(wc.status));
		for (unsigned i = 0; i < SIZE / 2; i++)
			MUST(s->rbuf[i] == 0xee, "byte %u was written through a dead key", i);
		vqp_close(&l);
		vqp_close(&r);
		vqp_pair(&l, s->pl, &r, s->pr, &vqp_usual);
	}
	vqp_close(&l);
	vqp_close(&r);
	MUST(!ibv_dealloc_mw(mw), "dealloc_mw: %s", strerror(errno));
	tear_down(s);
}

static uint32_t bind_2(struct stage *s, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = 6, .opcode = IBV_WR_BIND_MW };

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info) { .mr = s->rmr,
					    .addr = (uintptr_t)s->rbuf,
					    .length = 64,
					    .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	post(&s->r, &wr);
	vcq_expect(s->r.scq, IBV_WC_SUCCESS);
	return rkey;
}

static void type_2(void)
{
	struct stage *s = set_up(&vqp_usual, ALL_ACCESS, BIND_ACCESS);
	struct ibv_mw *mw = make_mw(s->pr->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr inv = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND_WITH_INV,
				    .send_flags = IBV_SEND_SIGNALED };
	uint32_t rkey = bind_2(s, mw, ibv_inc_rkey(mw->rkey));
	struct ibv_wc wc;

	write_to(s, (uintptr_t)s->rbuf, rkey, IBV_WC_SUCCESS);
	inv.invalidate_rkey = rkey;
	post(&s->r, &inv);
	MUST(vcq_expect(s->r.scq, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV, "not LOCAL_INV");
	rkey = bind_2(s, mw, ibv_inc_rkey(rkey));
	write_to(s, (uintptr_t)s->rbuf, rkey, IBV_WC_SUCCESS);
	post_recv(&s->r, 9, s->rbuf, SIZE, s->rmr->lkey);
	send.invalidate_rkey = rkey;
	post(&s->l, &send);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	wc = vcq_expect(s->r.rcq, IBV_WC_SUCCESS);
	MUST((wc.wc_flags & IBV_WC_WITH_INV) && wc.invalidated_rkey == rkey, "not told of it");
	write_to(s, (uintptr_t)s->rbuf, rkey, IBV_WC_REM_ACCESS_ERR);
	MUST(!ibv_dealloc_mw(mw), "dealloc_mw: %s", strerror(errno));
	tear_down(s);
}

static const struct tap_case cases[] = {
	{ "a region registered anew shows the new memory and not the old", rereg_moves, 0 },
	{ "with less access: REM_ACCESS_ERR", rereg_access, 0 },
	{ "in another domain: REM_ACCESS_ERR, and that domain is in use", rereg_pd, 0 },
	{ "what cannot be is refused, and the region stays as it was", rereg_refused, 0 },
	{ "a window of type 1: its key works, its old key does not", type_1, 0 },
	{ "a window ends where it ends", type_1_bounds, 0 },
	{ "what a window has ceased to show is not written", revoked_under_fire, 0 },
	{ "what cannot be bound: EINVAL, or MW_BIND_ERR", bind_refused, 0 },
	{ "a window of type 2: bound, invalidated here, bound, invalidated by the peer", type_2,
	  0 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
