/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that libibverbs must refuse, and limits that a program runs into. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void too_many_sge(void)
{
	struct vqp_conf conf = vqp_usual;
	struct ibv_sge sge[33];
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_recv_wr rwr = { .sg_list = sge }, *rbad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct stage *s;

	conf.send_sge = conf.recv_sge = 2;
	s = set_up(&conf, ALL_ACCESS, ALL_ACCESS);
	MUST(!ibv_query_qp(s->l.qp, &attr, IBV_QP_CAP, &init), "query_qp: %s", strerror(errno));
	MUST(init.cap.max_send_sge < 33 && init.cap.max_recv_sge < 33, "more than 32 SGEs");
	for (unsigned i = 0; i < 33; i++)
		sge[i] = sge_of(s, 1);
	wr = remote_wr(s, IBV_WR_RDMA_WRITE, sge);
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	MUST(ibv_post_send(s->l.qp, &wr, &bad) == EINVAL, "too many SGEs were taken");
	MUST(bad == &wr, "bad_wr does not name it");
	rwr.num_sge = (int)init.cap.max_recv_sge + 1;
	MUST(ibv_post_recv(s->l.qp, &rwr, &rbad) == EINVAL && rbad == &rwr,
	     "too many receive SGEs were taken");
	must_be_in(&s->l, IBV_QPS_RTS, "requester");
	tear_down(s);
}

static void inline_too_big(void)
{
	struct stage *s = set_up_usual();
	struct ibv_sge sge = sge_of(s, 4096);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge), *bad = NULL;

	wr.send_flags |= IBV_SEND_INLINE;
	MUST(ibv_post_send(s->l.qp, &wr, &bad) == EINVAL && bad == &wr,
	     "4096 inline bytes were taken");
	must_be_untouched(s);
	tear_down(s);
}

/* The peer has no receive and RNR retries are endless: nothing leaves the queue meanwhile. */
static void full_sq(void)
{
	struct vqp_conf conf = vqp_usual;
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_sge sge;
	struct ibv_wc wc[256];
	struct stage *s;
	unsigned n = 0;
	int err;

	conf.send_wr = 16;
	s = set_up(&conf, ALL_ACCESS, ALL_ACCESS);
	sge = sge_of(s, 8);
	wr = remote_wr(s, IBV_WR_SEND, &sge);
	while (!(err = ibv_post_send(s->l.qp, &wr, &bad)) && n < 256)
		n++;
	MUST(err == ENOMEM && bad == &wr, "a full SQ says %s", strerror(err));
	MUST(n >= 16, "an SQ of 16 took only %u", n);
	for (unsigned i = 0; i < n; i++)
		post_recv(&s->r, i, s->rbuf, SIZE, s->rmr->lkey);
	for (unsigned i = 0; i < n; i++)
		vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	vcq_wait(s->r.rcq, wc, n, 10000);
	post_recv(&s->r, 0, s->rbuf, SIZE, s->rmr->lkey);
	post(&s->l, &wr); /* there is room again */
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	tear_down(s);
}

static void full_rq(void)
{
	struct stage *s = set_up_usual();
	struct ibv_recv_wr wr = { 0 }, *bad = NULL;
	unsigned n = 0;
	int err;

	while (!(err = ibv_post_recv(s->r.qp, &wr, &bad)) && n < 4096)
		n++;
	MUST(err == ENOMEM && bad == &wr, "a full RQ says %s", strerror(err));
	MUST(n >= vqp_usual.recv_wr, "an RQ of %u took only %u", vqp_usual.recv_wr, n);
	tear_down(s);
}

static void unreadable_memory(void)
{
	struct vport *p = vport_get("uroce0");
	uint8_t *at =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(at != MAP_FAILED, "mmap: %s", strerror(errno));
	MUST(!munmap(at + 4096, 4096), "munmap: %s", strerror(errno));
	errno = 0;
	MUST(!ibv_reg_mr(p->pd, at, 3 * 4096, ALL_ACCESS) && errno,
	     "a range with a hole was registered");
	MUST(!ibv_reg_mr(p->pd, at + 4096, 4096, 0), "unmapped memory was registered");
	MUST(!ibv_reg_mr(p->pd, NULL, 4096, 0), "the zero page was registered");
	MUST(!mprotect(at, 4096, PROT_READ), "mprotect: %s", strerror(errno));
	MUST(!ibv_reg_mr(p->pd, at, 4096, ALL_ACCESS),
	     "read-only memory was registered for writing");
	munmap(at, 4096);
	munmap(at + 8192, 4096);
}

/* Memory that goes away under a registration is an error of that work, not of the daemon. */
static void memory_vanishes(void)
{
	struct stage *s = set_up_usual();
	uint8_t *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = vreg(s->pl, at, SIZE, ALL_ACCESS);
	struct ibv_sge sge = { (uintptr_t)at, 100, mr->lkey };
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

	munmap(at, SIZE);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_LOC_PROT_ERR);
	must_be_in(&s->l, IBV_QPS_ERR, "requester");
	must_be_untouched(s);
	MUST(!ibv_dereg_mr(mr), "dereg_mr: %s", strerror(errno));
	tear_down(s);
}

static void in_use(void)
{
	struct stage *s = set_up_usual();

	MUST(ibv_destroy_cq(s->l.scq) == EBUSY, "a CQ with a QP was destroyed");
	MUST(ibv_dealloc_pd(s->pl->pd) == EBUSY, "a PD with objects was freed");
	tear_down(s);
}

static void bad_transitions(void)
{
	struct vport *p = vport_get("uroce0");
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .opcode = IBV_WR_SEND }, *bad;
	struct vqp v;

	vqp_make(&v, p, &vqp_usual, NULL, NULL);
	MUST(ibv_modify_qp(v.qp, &attr, IBV_QP_STATE) == EINVAL, "INIT to RTS was taken");
	attr.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(v.qp, &attr, IBV_QP_STATE) == EINVAL,
	     "RTR without its attributes was taken");
	MUST(ibv_post_send(v.qp, &wr, &bad) == EINVAL, "a send in INIT was taken");
	must_be_in(&v, IBV_QPS_INIT, "QP");
	vqp_close(&v);
}

static const struct tap_case cases[] = {
	{ "too many SGEs: EINVAL, and bad_wr names the request", too_many_sge, 0 },
	{ "too many inline bytes: EINVAL", inline_too_big, 0 },
	{ "a full SQ: ENOMEM, and room again after completions", full_sq, 0 },
	{ "a full RQ: ENOMEM", full_rq, 0 },
	{ "memory that the process cannot read, or not write, is not registered", unreadable_memory,
	  0 },
	{ "memory unmapped under its registration: LOC_PROT_ERR", memory_vanishes, 0 },
	{ "objects in use are not destroyed: EBUSY", in_use, 0 },
	{ "illegal transitions and posts: EINVAL, the state stays", bad_transitions, 0 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
