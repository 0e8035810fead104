/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stage *set_up(const struct vqp_conf *conf, int local_access, int remote_access)
{
	static struct stage s;

	s = (struct stage) { .pl = vport_get("uroce0"), .pr = vport_get("uroce1") };
	vqp_pair(&s.l, s.pl, &s.r, s.pr, conf);
	s.lbuf = aligned_alloc(4096, SIZE);
	s.rmem = aligned_alloc(4096, 3 * (size_t)SIZE);
	MUST(s.lbuf && s.rmem, "no memory");
	s.rbuf = s.rmem + SIZE;
	pattern_fill(s.lbuf, SIZE, 1, 0);
	pattern_fill(s.rmem, 3 * (size_t)SIZE, 2, 0);
	s.lmr = vreg(s.pl, s.lbuf, SIZE, local_access);
	s.rmr = vreg(s.pr, s.rbuf, SIZE, remote_access);
	return &s;
}

struct stage *set_up_usual(void)
{
	return set_up(&vqp_usual, ALL_ACCESS, ALL_ACCESS);
}

void tear_down(struct stage *s)
{
	vqp_close(&s->l);
	vqp_close(&s->r);
	if (s->lmr)
		MUST(!ibv_dereg_mr(s->lmr), "dereg_mr: %s", strerror(errno));
	if (s->rmr)
		MUST(!ibv_dereg_mr(s->rmr), "dereg_mr: %s", strerror(errno));
	free(s->lbuf);
	free(s->rmem);
}

void must_be_untouched(const struct stage *s)
{
	size_t at = pattern_differs(s->rmem, 3 * (size_t)SIZE, 2, 0);

	MUST(at == 3 * (size_t)SIZE, "the remote memory changed, first at offset %zd of the region",
	     (ssize_t)at - (ssize_t)SIZE);
}

struct ibv_sge sge_of(const struct stage *s, uint32_t length)
{
	return (struct ibv_sge) { (uintptr_t)s->lbuf, length, s->lmr->lkey };
}

struct ibv_send_wr remote_wr(const struct stage *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = 1, .opcode = opcode };

	wr.send_flags = IBV_SEND_SIGNALED;
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)s->rbuf;
		wr.wr.atomic.rkey = s->rmr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)s->rbuf;
		wr.wr.rdma.rkey = s->rmr->rkey;
	}
	return wr;
}

void post(struct vqp *v, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(v->qp, wr, &bad);

	MUST(!err, "ibv_post_send: %s", strerror(err));
}

void post_recv(struct vqp *v, uint64_t id, void *addr, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)addr, length, lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = addr != NULL };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(v->qp, &wr, &bad);

	MUST(!err, "ibv_post_recv: %s", strerror(err));
}

void must_be_in(const struct vqp *v, enum ibv_qp_state state, const char *who)
{
	enum ibv_qp_state is = vqp_state(v);

	MUST(is == state, "the %s is in state %d instead of %d", who, is, state);
}
