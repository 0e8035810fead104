/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads on one QP, one CQ, one receive queue: nothing is lost or told twice. Built with
 * ThreadSanitizer the same shows that nothing is done by luck.
 */
#include "tests/e2e/verbs_crowd.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* By ibv_start_poll, whose lock lasts from one call to another. */
static void *poller_ex(void *arg)
{
	struct ibv_cq_ex *cq = crowd.cq_ex;
	struct ibv_poll_cq_attr attr = { 0 };

	(void)arg;
	while (atomic_load(&crowd.n_done) < N_ALL && !crowd_is_over()) {
		int err = ibv_start_poll(cq, &attr);

		if (err == ENOENT)
			continue;
		if (err)
			crowd_broken("ibv_start_poll failed");
		for (; !err; err = ibv_next_poll(cq))
			crowd_count(&(struct ibv_wc) { .wr_id = cq->wr_id, .status = cq->status });
		ibv_end_poll(cq);
	}
	return NULL;
}

static void *writer_ex(void *arg)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(crowd.s->l.qp);
	struct ibv_sge sge = crowd_bytes((uintptr_t)arg);

	for (unsigned i = 0; i < N_EACH && !crowd_is_over();) {
		int err;

		ibv_wr_start(qp);
		qp->wr_id = (uintptr_t)arg * N_EACH + i;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(qp, crowd.s->rmr->rkey,
				  (uintptr_t)crowd.s->rbuf + 64 * (uintptr_t)arg);
		ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
		err = ibv_wr_complete(qp);
		i += !err;
		if (err && err != ENOMEM)
			crowd_broken("ibv_wr_complete failed");
		if (err)
			sched_yield();
	}
	return NULL;
}

static void one_qp(void)
{
	pthread_t w[N_THREADS], p[2];
	struct stage *s = set_up_usual();

	crowd_begin(s);
	crowd.cq = s->l.scq;
	crowd_start(p, 2, crowd_poller);
	crowd_start(w, N_THREADS, crowd_writer);
	crowd_join(w, N_THREADS);
	crowd_join(p, 2);
	crowd_each_once(N_ALL);
	MUST(pattern_differs(s->rbuf, 64 * N_THREADS, 1, 0) == 64 * N_THREADS, "other bytes");
	tear_down(s);
}

/* l of the usual stage, extended in both its QP and its CQ. */
static struct stage *extended_stage(struct ibv_cq_ex **cq)
{
	struct stage *s = set_up_usual();
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 128, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
					    .cap = { 64, 1, 1, 1, 0 },
					    .pd = s->pl->pd,
					    .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	*cq = ibv_create_cq_ex(s->pl->ctx, &cq_attr);
	MUST(*cq, "no extended CQ: %s", strerror(errno));
	MUST(!ibv_destroy_qp(s->l.qp) && !ibv_destroy_qp(s->r.qp), "destroy_qp");
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(*cq);
	s->l.qp = ibv_create_qp_ex(s->pl->ctx, &init);
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.send_cq = init.recv_cq = s->r.rcq;
	init.pd = s->pr->pd;
	s->r.qp = ibv_create_qp_ex(s->pr->ctx, &init);
	MUST(s->l.qp && s->r.qp, "no extended QP: %s", strerror(errno));
	attr.qp_access_flags = ALL_ACCESS;
	for (struct vqp *v = &s->l; v; v = v == &s->l ? &s->r : NULL)
		MUST(!ibv_modify_qp(v->qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS),
		     "RESET to INIT: %s", strerror(errno));
	vqp_connect(&s->l, s->r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&s->r, s->l.qp->qp_num, &s->pl->gid, &vqp_usual);
	return s;
}

static void one_extended_qp(void)
{
	pthread_t w[N_THREADS], p[2];
	struct ibv_cq_ex *cq;
	struct stage *s = extended_stage(&cq);

	crowd_begin(s);
	crowd.cq_ex = cq;
	crowd.cq = ibv_cq_ex_to_cq(cq);
	crowd_start(p, 2, poller_ex);
	crowd_start(w, N_THREADS, writer_ex);
	crowd_join(w, N_THREADS);
	crowd_join(p, 2);
	crowd_each_once(N_ALL);
	tear_down(s);
	MUST(!ibv_destroy_cq(crowd.cq), "destroy_cq: %s", strerror(errno));
}

/* Sends as fast as receives are posted; the receive side is what is looked at. */
static void *sender(void *arg)
{
	struct ibv_sge sge = crowd_bytes((uintptr_t)arg);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc[8];

	wr.send_flags = IBV_SEND_SIGNALED;
	for (unsigned i = 0; i < N_EACH && !crowd_is_over();) {
		int err = ibv_post_send(crowd.s->l.qp, &wr, &bad);

		i += !err;
		if (err && err != ENOMEM)
			crowd_broken("ibv_post_send failed");
		if (ibv_poll_cq(crowd.s->l.scq, 8, wc) < 0)
			crowd_broken("ibv_poll_cq of the sender failed");
	}
	return NULL;
}

static bool post_receive(unsigned id)
{
	struct ibv_sge sge = { (uintptr_t)crowd.s->rbuf + 64 * (id % 32), 64, crowd.s->rmr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = crowd.srq ? ibv_post_srq_recv(crowd.srq, &wr, &bad)
			    : ibv_post_recv(crowd.s->r.qp, &wr, &bad);

	if (err && err != ENOMEM)
		crowd_broken("a receive was refused");
	return !err;
}

static void *receiver(void *arg)
{
	for (unsigned i = 0; i < N_EACH && !crowd_is_over();)
		if (post_receive((unsigned)(uintptr_t)arg * N_EACH + i))
			i++;
		else
			sched_yield();
	return NULL;
}

static void receives(void)
{
	pthread_t snd[N_THREADS], rcv[N_THREADS], p[2];

	crowd_start(p, 2, crowd_poller);
	crowd_start(rcv, N_THREADS, receiver);
	crowd_start(snd, N_THREADS, sender);
	crowd_join(snd, N_THREADS);
	crowd_join(rcv, N_THREADS);
	crowd_join(p, 2);
	crowd_each_once(N_ALL);
}

static void one_receive_queue(void)
{
	struct stage *s = set_up_usual();

	crowd_begin(s);
	crowd.cq = s->r.rcq;
	receives();
	tear_down(s);
}

static void one_shared_queue(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 1 } };
	struct stage *s = set_up_usual();
	struct ibv_qp_init_attr qp_init = { .qp_type = IBV_QPT_RC, .cap = { 1, 0, 1, 0, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	crowd_begin(s);
	crowd.cq = s->r.rcq;
	crowd.srq = ibv_create_srq(s->pr->pd, &init);
	MUST(crowd.srq, "no SRQ: %s", strerror(errno));
	/* A receive of an SRQ is free when its message arrives, so nothing else bounds the CQ. */
	MUST(!ibv_resize_cq(crowd.cq, (int)N_ALL), "resize_cq: %s", strerror(errno));
	MUST(!ibv_destroy_qp(s->r.qp), "destroy_qp");
	qp_init.send_cq = qp_init.recv_cq = s->r.rcq;
	qp_init.srq = crowd.srq;
	s->r.qp = ibv_create_qp(s->pr->pd, &qp_init);
	MUST(s->r.qp, "no QP: %s", strerror(errno));
	MUST(!ibv_modify_qp(s->r.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "RESET to INIT: %s", strerror(errno));
	vqp_connect(&s->r, s->l.qp->qp_num, &s->pl->gid, &vqp_usual);
	attr.qp_state = IBV_QPS_RESET;
	MUST(!ibv_modify_qp(s->l.qp, &attr, IBV_QP_STATE), "to RESET: %s", strerror(errno));
	attr.qp_state = IBV_QPS_INIT;
	MUST(!ibv_modify_qp(s->l.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "RESET to INIT: %s", strerror(errno));
	vqp_connect(&s->l, s->r.qp->qp_num, &s->pr->gid, &vqp_usual);
	receives();
	tear_down(s);
	MUST(!ibv_destroy_srq(crowd.srq), "destroy_srq: %s", strerror(errno));
}

static const struct tap_case cases[] = {
	{ "three threads post to a QP, two poll its CQ: each request once", one_qp, 120 },
	{ "the same by ibv_wr_* and ibv_start_poll", one_extended_qp, 120 },
	{ "three post receives, three send, two poll: each receive once", one_receive_queue, 120 },
	{ "the same with a shared receive queue", one_shared_queue, 120 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
