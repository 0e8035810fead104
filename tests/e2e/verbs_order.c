/* SPDX-License-Identifier: BSD-3-Clause */
/* How work requests of one and of many QPs relate: completions, fences, lists, events. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

static void unsignaled(void)
{
	struct stage *s = set_up_usual();
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	/* Three times round the SQ, so that unsignaled slots must be freed by later completions. */
	for (unsigned i = 0; i < 3 * 128; i++) {
		struct ibv_sge sge = { (uintptr_t)s->lbuf + i, 1, s->lmr->lkey };

		wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
		wr.wr.rdma.remote_addr += i;
		wr.wr_id = i;
		wr.send_flags = i % 32 == 31 ? IBV_SEND_SIGNALED : 0;
		post(&s->l, &wr);
		if (i % 32 == 31)
			MUST(vcq_expect(s->l.scq, IBV_WC_SUCCESS).wr_id == i,
			     "the wrong one completed");
	}
	MUST(!ibv_poll_cq(s->l.scq, 1, &wc), "an unsignaled request completed");
	MUST(!memcmp(s->rbuf, s->lbuf, 3 * 128), "bytes differ");
	tear_down(s);
}

static void sig_all(void)
{
	struct vqp_conf conf = vqp_usual;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct stage *s;

	conf.sig_all = true;
	s = set_up(&conf, ALL_ACCESS, ALL_ACCESS);
	sge = sge_of(s, 8);
	wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	wr.send_flags = 0;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	tear_down(s);
}

/* A chain of requests in which each one needs what the one before left behind. */
static void list_of_mixed(void)
{
	struct stage *s = set_up_usual();
	struct ibv_sge sge[60];
	struct ibv_send_wr wr[60];
	struct ibv_wc wc[60];

	for (unsigned i = 0; i < 60; i++) {
		unsigned round = i / 3;

		/* WRITE lbuf[round] -> rbuf[round]; READ it back to lbuf + 4096; SEND that. */
		sge[i] = (struct ibv_sge) { (uintptr_t)s->lbuf + (i % 3 ? 4096 : 0) + round * 64,
					    64, s->lmr->lkey };
		wr[i] = remote_wr(s,
				  i % 3 == 0   ? IBV_WR_RDMA_WRITE
				  : i % 3 == 1 ? IBV_WR_RDMA_READ
					       : IBV_WR_SEND,
				  &sge[i]);
		wr[i].wr.rdma.remote_addr += round * 64;
		wr[i].wr_id = i;
		/* A SEND whose payload a READ brings must wait for it. */
		wr[i].send_flags = IBV_SEND_SIGNALED | (i % 3 == 2 ? IBV_SEND_FENCE : 0);
		wr[i].next = i < 59 ? &wr[i + 1] : NULL;
		if (i % 3 == 2)
			post_recv(&s->r, round, s->rbuf + 4096 + round * 64, 64, s->rmr->lkey);
	}
	post(&s->l, wr);
	vcq_wait(s->l.scq, wc, 60, 10000);
	for (unsigned i = 0; i < 60; i++)
		MUST(wc[i].wr_id == i && wc[i].status == IBV_WC_SUCCESS, "completion %u: %llu, %s",
		     i, (unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status));
	vcq_wait(s->r.rcq, wc, 20, 10000);
	MUST(!memcmp(s->rbuf, s->lbuf, 20 * 64), "WRITE: bytes differ");
	MUST(!memcmp(s->lbuf + 4096, s->lbuf, 20 * 64), "READ: bytes differ");
	MUST(!memcmp(s->rbuf + 4096, s->lbuf, 20 * 64), "SEND after READ: bytes differ");
	tear_down(s);
}

static void fence(void)
{
	for (unsigned i = 0; i < 200; i++) {
		struct stage *s = set_up_usual();
		struct ibv_sge sge = { (uintptr_t)s->lbuf, 4096, s->lmr->lkey };
		struct ibv_send_wr wr[2] = { remote_wr(s, IBV_WR_RDMA_READ, &sge),
					     remote_wr(s, IBV_WR_RDMA_WRITE, &sge) };

		/* rbuf's first half goes to lbuf, and from there to rbuf's second half. */
		wr[0].next = &wr[1];
		wr[1].send_flags |= IBV_SEND_FENCE;
		wr[1].wr.rdma.remote_addr += 4096;
		post(&s->l, wr);
		vcq_expect(s->l.scq, IBV_WC_SUCCESS);
		vcq_expect(s->l.scq, IBV_WC_SUCCESS);
		MUST(!memcmp(s->rbuf, s->rbuf + 4096, 4096), "the WRITE overtook the READ");
		tear_down(s);
	}
}

#define N_QPS 8
#define N_WRS 100

static void one_cq_for_all(void)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	struct ibv_cq *cq = ibv_create_cq(pl->ctx, 2 * N_QPS * N_WRS, NULL, NULL, 0);
	struct ibv_cq *rcq = ibv_create_cq(pr->ctx, 2 * N_QPS * N_WRS, NULL, NULL, 0);
	static uint8_t here[N_QPS][N_WRS], there[N_QPS][N_WRS];
	struct ibv_mr *lmr = vreg(pl, here, sizeof(here), ALL_ACCESS);
	struct ibv_mr *rmr = vreg(pr, there, sizeof(there), ALL_ACCESS);
	struct vqp l[N_QPS], r[N_QPS];
	struct ibv_wc wc[N_QPS * N_WRS];
	unsigned next[N_QPS] = { 0 };

	pattern_fill(here, sizeof(here), 9, 0);
	memset(there, 0, sizeof(there));
	MUST(cq && rcq, "no CQ: %s", strerror(errno));
	for (unsigned q = 0; q < N_QPS; q++) {
		vqp_make(&l[q], pl, &vqp_usual, cq, cq);
		vqp_make(&r[q], pr, &vqp_usual, rcq, rcq);
		vqp_connect(&l[q], r[q].qp->qp_num, &pr->gid, &vqp_usual);
		vqp_connect(&r[q], l[q].qp->qp_num, &pl->gid, &vqp_usual);
	}
	for (unsigned i = 0; i < N_WRS; i++)
		for (unsigned q = 0; q < N_QPS; q++) {
			struct ibv_sge sge = { (uintptr_t)&here[q][i], 1, lmr->lkey };
			struct ibv_send_wr wr = { .wr_id = q << 16 | i,
						  .sg_list = &sge,
						  .num_sge = 1,
						  .opcode = IBV_WR_RDMA_WRITE,
						  .send_flags = IBV_SEND_SIGNALED };

			wr.wr.rdma.remote_addr = (uintptr_t)&there[q][i];
			wr.wr.rdma.rkey = rmr->rkey;
			post(&l[q], &wr);
		}
	vcq_wait(cq, wc, N_QPS * N_WRS, 20000);
	for (unsigned i = 0; i < N_QPS * N_WRS; i++) {
		unsigned q = (unsigned)(wc[i].wr_id >> 16);

		MUST(wc[i].status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
		MUST(q < N_QPS && wc[i].qp_num == l[q].qp->qp_num, "qp_num is another QP's");
		MUST((wc[i].wr_id & 0xffff) == next[q]++, "QP %u completes out of order", q);
	}
	MUST(!memcmp(here, there, sizeof(here)), "bytes differ");
	for (unsigned q = 0; q < N_QPS; q++) {
		vqp_close(&l[q]);
		vqp_close(&r[q]);
	}
	MUST(!ibv_destroy_cq(cq) && !ibv_destroy_cq(rcq), "destroy_cq: %s", strerror(errno));
	MUST(!ibv_dereg_mr(lmr) && !ibv_dereg_mr(rmr), "dereg_mr: %s", strerror(errno));
}

static bool has_event(struct ibv_comp_channel *ch, int ms)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static void send_marked(struct stage *s, struct vqp *l, struct vqp *r, unsigned flags)
{
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, &sge);

	post_recv(r, 1, s->rbuf, SIZE, s->rmr->lkey);
	wr.send_flags |= flags;
	post(l, &wr);
	vcq_expect(l->scq, IBV_WC_SUCCESS);
}

static void take_event(struct ibv_comp_channel *ch, struct ibv_cq *cq)
{
	struct ibv_cq *got;
	void *context;

	MUST(!ibv_get_cq_event(ch, &got, &context), "get_cq_event: %s", strerror(errno));
	MUST(got == cq && context == &send_marked, "the event names another CQ");
	ibv_ack_cq_events(cq, 1);
}

static void events(void)
{
	struct stage *s = set_up_usual();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(s->pr->ctx);
	struct ibv_cq *cq;
	struct vqp l, r;

	MUST(ch, "create_comp_channel: %s", strerror(errno));
	cq = ibv_create_cq(s->pr->ctx, 64, (void *)&send_marked, ch, 0);
	MUST(cq, "no CQ: %s", strerror(errno));
	vqp_make(&l, s->pl, &vqp_usual, NULL, NULL);
	vqp_make(&r, s->pr, &vqp_usual, cq, cq);
	vqp_connect(&l, r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&r, l.qp->qp_num, &s->pl->gid, &vqp_usual);

	send_marked(s, &l, &r, 0);
	vcq_expect(cq, IBV_WC_SUCCESS);
	MUST(!has_event(ch, 0), "an event although none was asked for");

	MUST(!ibv_req_notify_cq(cq, 1), "req_notify_cq");
	send_marked(s, &l, &r, 0);
	vcq_expect(cq, IBV_WC_SUCCESS);
	MUST(!has_event(ch, 0), "an event for an unsolicited message");
	send_marked(s, &l, &r, IBV_SEND_SOLICITED);
	MUST(has_event(ch, 10000), "no event for a solicited message");
	take_event(ch, cq);
	vcq_expect(cq, IBV_WC_SUCCESS);

	MUST(!ibv_req_notify_cq(cq, 0), "req_notify_cq");
	send_marked(s, &l, &r, 0);
	MUST(has_event(ch, 10000), "no event");
	take_event(ch, cq);
	vcq_expect(cq, IBV_WC_SUCCESS);
	send_marked(s, &l, &r, 0);
	vcq_expect(cq, IBV_WC_SUCCESS);
	MUST(!has_event(ch, 0), "two events for one request");

	MUST(ibv_destroy_comp_channel(ch) == EBUSY, "a channel with a CQ was destroyed");
	vqp_close(&l);
	vqp_close(&r);
	MUST(!ibv_destroy_cq(cq), "destroy_cq: %s", strerror(errno));
	MUST(!ibv_destroy_comp_channel(ch), "destroy_comp_channel: %s", strerror(errno));
	tear_down(s);
}

/* An event that nobody read must not keep its CQ from being destroyed, nor reach a later one. */
static void unread_event(void)
{
	struct stage *s = set_up_usual();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(s->pr->ctx);
	struct ibv_cq *cq = ibv_create_cq(s->pr->ctx, 64, NULL, ch, 0);
	struct vqp l, r;

	MUST(ch && cq, "no channel or CQ: %s", strerror(errno));
	vqp_make(&l, s->pl, &vqp_usual, NULL, NULL);
	vqp_make(&r, s->pr, &vqp_usual, cq, cq);
	vqp_connect(&l, r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&r, l.qp->qp_num, &s->pl->gid, &vqp_usual);
	MUST(!ibv_req_notify_cq(cq, 0), "req_notify_cq");
	send_marked(s, &l, &r, 0);
	MUST(has_event(ch, 10000), "no event");
	vqp_close(&l);
	vqp_close(&r);
	MUST(!ibv_destroy_cq(cq), "destroy_cq: %s", strerror(errno));
	MUST(!has_event(ch, 0), "the event of a destroyed CQ is still there");
	MUST(!ibv_destroy_comp_channel(ch), "destroy_comp_channel: %s", strerror(errno));
	tear_down(s);
}

static const struct tap_case cases[] = {
	{ "unsignaled requests complete silently and free their slots", unsignaled, 0 },
	{ "sq_sig_all signals what did not ask for it", sig_all, 0 },
	{ "a list of WRITE, READ and SEND is done in order", list_of_mixed, 0 },
	{ "a fenced WRITE waits for the READ before it", fence, 0 },
	{ "eight QPs share a CQ: all complete, each in order", one_cq_for_all, 0 },
	{ "an event per request: any message, or solicited ones only", events, 0 },
	{ "an unread event goes with its CQ", unread_event, 0 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
