/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many QPs on one SRQ and one CQ. With several workers they belong to different engines, which then
 * take receives from the same queue and complete into the same CQ at the same time: no receive may
 * be taken twice or lost, and each must hold what one sender sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/verbs_lib.h"

#define N_QPS   8u
#define N_SENDS 500u /* of each QP */
#define ROOM    64u  /* receives that are posted at any time */
#define LENGTH  64u
#define TOTAL   (N_QPS * N_SENDS)

struct crowd {
	struct vport *from, *to;
	struct vqp l[N_QPS], r[N_QPS];
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint32_t n_sent[N_QPS], n_sending, n_received, n_posted;
	bool has_come[N_QPS][N_SENDS];
	uint32_t slot[ROOM][LENGTH / 4];
};

static void post_receive(struct crowd *c, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)c->slot[slot], LENGTH, c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_srq_recv(c->srq, &wr, &bad), "post_srq_recv: %s", strerror(errno));
	c->n_posted++;
}

static void make_receiver(struct crowd *c, struct vqp *v)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = c->rcq,
					 .recv_cq = c->rcq,
					 .srq = c->srq,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	*v = (struct vqp) { .port = c->to, .scq = c->rcq, .rcq = c->rcq };
	v->qp = ibv_create_qp(c->to->pd, &init);
	MUST(v->qp, "no QP on the SRQ: %s", strerror(errno));
	MUST(!ibv_modify_qp(v->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "RESET to INIT: %s", strerror(errno));
}

static void gather(struct crowd *c)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = ROOM, .max_sge = 1 } };

	c->from = vport_get("uroce0");
	c->to = vport_get("uroce1");
	c->scq = ibv_create_cq(c->from->ctx, TOTAL, NULL, NULL, 0);
	c->rcq = ibv_create_cq(c->to->ctx, TOTAL, NULL, NULL, 0);
	c->srq = ibv_create_srq(c->to->pd, &init);
	MUST(c->scq && c->rcq && c->srq, "no CQ or no SRQ: %s", strerror(errno));
	c->mr = vreg(c->to, c->slot, sizeof(c->slot), IBV_ACCESS_LOCAL_WRITE);
	for (unsigned i = 0; i < N_QPS; i++) {
		vqp_make(&c->l[i], c->from, &vqp_usual, c->scq, c->scq);
		make_receiver(c, &c->r[i]);
		vqp_connect(&c->l[i], c->r[i].qp->qp_num, &c->to->gid, &vqp_usual);
		vqp_connect(&c->r[i], c->l[i].qp->qp_num, &c->from->gid, &vqp_usual);
	}
	for (uint64_t slot = 0; slot < ROOM; slot++)
		post_receive(c, slot);
}

static void disperse(struct crowd *c)
{
	for (unsigned i = 0; i < N_QPS; i++) {
		vqp_close(&c->l[i]);
		vqp_close(&c->r[i]);
	}
	MUST(!ibv_destroy_srq(c->srq), "destroy_srq: %s", strerror(errno));
	MUST(!ibv_destroy_cq(c->scq) && !ibv_destroy_cq(c->rcq), "destroy_cq");
	MUST(!ibv_dereg_mr(c->mr), "dereg_mr: %s", strerror(errno));
}

/* Each QP in turn, while fewer messages are under way than receives are posted. */
static void send_some(struct crowd *c)
{
	for (uint32_t i = 0; i < N_QPS && c->n_sending < ROOM; i++) {
		uint32_t words[LENGTH / 4];
		struct ibv_sge sge = { (uintptr_t)words, LENGTH, 0 };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
				   *bad;

		if (c->n_sent[i] == N_SENDS)
			continue;
		for (uint32_t k = 0; k < LENGTH / 4; k++)
			words[k] = i << 16 | c->n_sent[i];
		wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
		MUST(!ibv_post_send(c->l[i].qp, &wr, &bad), "post_send: %s", strerror(errno));
		c->n_sent[i]++;
		c->n_sending++;
	}
}

static void took(struct crowd *c, const struct ibv_wc *wc)
{
	const uint32_t *words = c->slot[wc->wr_id % ROOM];
	uint32_t i = words[0] >> 16, n = words[0] & 0xffff;

	MUST(wc->status == IBV_WC_SUCCESS, "a receive ended with %s",
	     ibv_wc_status_str(wc->status));
	MUST(wc->byte_len == LENGTH && i < N_QPS && n < N_SENDS, "QP %u, message %u", i, n);
	MUST(wc->qp_num == c->r[i].qp->qp_num, "message of QP %u at another", i);
	MUST(!c->has_come[i][n], "message %u of QP %u came twice", n, i);
	for (uint32_t k = 1; k < LENGTH / 4; k++)
		MUST(words[k] == words[0], "message %u of QP %u is torn", n, i);
	c->has_come[i][n] = true;
	c->n_received++;
	post_receive(c, wc->wr_id);
}

static void one_srq_one_cq(void)
{
	static struct crowd c;
	struct ibv_wc wc[16];
	uint32_t n_done = 0;

	c = (struct crowd) { 0 };
	gather(&c);
	while (c.n_received < TOTAL || n_done < TOTAL) {
		int n;

		send_some(&c);
		n = ibv_poll_cq(c.rcq, 16, wc);
		MUST(n >= 0, "ibv_poll_cq: %d", n);
		for (int i = 0; i < n; i++)
			took(&c, &wc[i]);
		n = ibv_poll_cq(c.scq, 16, wc);
		MUST(n >= 0, "ibv_poll_cq: %d", n);
		for (int i = 0; i < n; i++)
			MUST(wc[i].status == IBV_WC_SUCCESS, "a SEND ended with %s",
			     ibv_wc_status_str(wc[i].status));
		n_done += (uint32_t)n;
		c.n_sending -= (uint32_t)n;
	}
	for (uint32_t i = 0; i < N_QPS; i++)
		for (uint32_t k = 0; k < N_SENDS; k++)
			MUST(c.has_come[i][k], "message %u of QP %u did not come", k, i);
	disperse(&c);
}

int main(int argc, char **argv)
{
	static const struct tap_case cases[] = {
		{ "eight QPs share an SRQ and a CQ: each message once, untorn", one_srq_one_cq,
		  120 },
	};

	return tap_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
