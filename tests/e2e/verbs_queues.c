/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues, CQs that are resized, armed and overrun, and the events that come of it.
 */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static bool is_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static struct ibv_async_event next_event(struct ibv_context *ctx)
{
	struct ibv_async_event ev;

	MUST(is_readable(ctx->async_fd, 10000), "no asynchronous event");
	MUST(!ibv_get_async_event(ctx, &ev), "get_async_event: %s", strerror(errno));
	return ev;
}

static void expect_event(struct ibv_context *ctx, enum ibv_event_type type, const void *element)
{
	struct ibv_async_event ev = next_event(ctx);

	MUST(ev.event_type == type && (const void *)ev.element.qp == element, "event %s of %p",
	     ibv_event_type_str(ev.event_type), (void *)ev.element.qp);
	ibv_ack_async_event(&ev);
}

static void must_be_quiet(struct ibv_context *ctx)
{
	struct ibv_async_event ev;

	if (!is_readable(ctx->async_fd, 0))
		return;
	MUST(!ibv_get_async_event(ctx, &ev), "get_async_event: %s", strerror(errno));
	MUST(false, "an event too many: %s", ibv_event_type_str(ev.event_type));
}

static struct ibv_srq *make_srq(struct ibv_pd *pd, uint32_t max_wr)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	MUST(srq, "no SRQ: %s", strerror(errno));
	MUST(init.attr.max_wr >= max_wr && init.attr.max_sge >= 2, "granted less than asked for");
	return srq;
}

static int try_srq_recv(struct ibv_srq *srq, uint64_t id, struct stage *s)
{
	struct ibv_sge sge = { (uintptr_t)s->rbuf, SIZE, s->rmr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	int err = ibv_post_srq_recv(srq, &wr, &bad);

	MUST(!err || bad == &wr, "bad_wr does not name the request");
	return err;
}

/* r of the usual stage with an SRQ instead of its receive queue. */
static struct stage *srq_stage(struct ibv_srq *srq)
{
	struct stage *s = set_up_usual();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = s->r.scq,
					 .recv_cq = s->r.rcq,
					 .srq = srq,
					 .cap = { .max_send_wr = 4, .max_send_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	MUST(!ibv_destroy_qp(s->r.qp) && !ibv_destroy_qp(s->l.qp), "destroy_qp");
	s->r.qp = ibv_create_qp(s->pr->pd, &init);
	MUST(s->r.qp, "no QP on an SRQ: %s", strerror(errno));
	MUST(init.cap.max_recv_wr == 0, "a receive queue of its own as well");
	init = (struct ibv_qp_init_attr) { .qp_type = IBV_QPT_RC,
					   .send_cq = s->l.scq,
					   .recv_cq = s->l.rcq,
					   .cap = { 16, 1, 1, 1, 0 } };
	s->l.qp = ibv_create_qp(s->pl->pd, &init);
	MUST(s->l.qp, "no QP: %s", strerror(errno));
	for (unsigned i = 0; i < 2; i++)
		MUST(!ibv_modify_qp(i ? s->l.qp : s->r.qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS),
		     "RESET to INIT: %s", strerror(errno));
	vqp_connect(&s->l, s->r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&s->r, s->l.qp->qp_num, &s->pl->gid, &vqp_usual);
	return s;
}

static void send_to(struct stage *s, uint32_t length)
{
	struct ibv_sge sge = sge_of(s, length);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, &sge);

	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
}

static void srq_serves(void)
{
	struct vport *p = vport_get("uroce1");
	struct ibv_srq *srq = make_srq(p->pd, 8);
	struct stage *s = srq_stage(srq);
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_srq_attr attr;
	struct ibv_wc wc;

	for (unsigned i = 0; i < 8; i++)
		MUST(!try_srq_recv(srq, 70 + i, s), "receive %u: no room", i);
	MUST(try_srq_recv(srq, 0, s) == ENOMEM, "a full SRQ took a receive");
	MUST(ibv_post_recv(s->r.qp, &wr, &bad) == EINVAL, "a receive past the SRQ was taken");
	for (unsigned i = 0; i < 20; i++) {
		send_to(s, 100 + i);
		wc = vcq_expect(s->r.rcq, IBV_WC_SUCCESS);
		MUST(wc.wr_id == 70 + i && wc.byte_len == 100 + i, "receive %llu of %u bytes",
		     (unsigned long long)wc.wr_id, wc.byte_len);
		MUST(!try_srq_recv(srq, 78 + i, s), "no room behind completion %u", i);
	}
	MUST(!ibv_query_srq(srq, &attr) && attr.max_wr == 8 && attr.srq_limit == 0, "query_srq");
	MUST(ibv_destroy_srq(srq) == EBUSY, "an SRQ with a QP was destroyed");
	tear_down(s);
	MUST(!ibv_destroy_srq(srq), "destroy_srq: %s", strerror(errno));
}

static void srq_limit(void)
{
	struct vport *p = vport_get("uroce1");
	struct ibv_srq *srq = make_srq(p->pd, 8);
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct stage *s = srq_stage(srq);

	for (unsigned i = 0; i < 4; i++)
		MUST(!try_srq_recv(srq, i, s), "no room");
	MUST(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), "arming: %s", strerror(errno));
	MUST(!ibv_query_srq(srq, &attr) && attr.srq_limit == 3, "the limit is %u", attr.srq_limit);
	send_to(s, 1);
	must_be_quiet(p->ctx);
	send_to(s, 1);
	expect_event(p->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	send_to(s, 1);
	must_be_quiet(p->ctx);
	MUST(!ibv_query_srq(srq, &attr) && attr.srq_limit == 0, "still armed");
	attr.srq_limit = 9;
	MUST(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == EINVAL, "a limit beyond the queue");
	tear_down(s);
	MUST(!ibv_destroy_srq(srq), "destroy_srq: %s", strerror(errno));
}

static void srq_resize(void)
{
	struct vport *p = vport_get("uroce1");
	struct ibv_srq *srq = make_srq(p->pd, 4);
	struct ibv_srq_attr attr = { .max_wr = 16 };
	struct stage *s = srq_stage(srq);
	unsigned in = 0, out = 0;

	while (in < 4)
		MUST(!try_srq_recv(srq, in++, s), "no room");
	MUST(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), "growing: %s", strerror(errno));
	while (in < 16)
		MUST(!try_srq_recv(srq, in++, s), "no room after growing");
	attr.max_wr = 8;
	MUST(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL, "16 receives shrank to 8");
	for (; out < 10; out++) {
		send_to(s, 10);
		MUST(vcq_expect(s->r.rcq, IBV_WC_SUCCESS).wr_id == out, "out of order");
	}
	MUST(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), "shrinking: %s", strerror(errno));
	for (; out < 16; out++) {
		send_to(s, 10);
		MUST(vcq_expect(s->r.rcq, IBV_WC_SUCCESS).wr_id == out, "out of order");
	}
	tear_down(s);
	MUST(!ibv_destroy_srq(srq), "destroy_srq: %s", strerror(errno));
}

static void last_wqe(void)
{
	struct vport *p = vport_get("uroce1");
	struct ibv_srq *srq = make_srq(p->pd, 4);
	struct stage *s = srq_stage(srq);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	MUST(!ibv_modify_qp(s->r.qp, &attr, IBV_QP_STATE), "to ERR: %s", strerror(errno));
	expect_event(p->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, s->r.qp);
	must_be_quiet(p->ctx);
	tear_down(s);
	MUST(!ibv_destroy_srq(srq), "destroy_srq: %s", strerror(errno));
}

static void bad_srqs(void)
{
	struct vport *p = vport_get("uroce1");
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 0, .max_sge = 1 } };
	struct ibv_device_attr attr;

	MUST(!ibv_query_device(p->ctx, &attr) && attr.max_srq > 0, "no SRQs are offered");
	MUST(!ibv_create_srq(p->pd, &init) && errno == EINVAL, "an SRQ of nothing");
	init.attr.max_wr = (uint32_t)attr.max_srq_wr + 1;
	MUST(!ibv_create_srq(p->pd, &init) && errno == EINVAL, "an SRQ beyond max_srq_wr");
	init.attr =
		(struct ibv_srq_attr) { .max_wr = 1, .max_sge = (uint32_t)attr.max_srq_sge + 1 };
	MUST(!ibv_create_srq(p->pd, &init) && errno == EINVAL, "an SRQ beyond max_srq_sge");
}

static void write_some(struct stage *s, unsigned n, uint64_t from)
{
	struct ibv_sge sge = sge_of(s, 8);

	for (unsigned i = 0; i < n; i++) {
		struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

		wr.wr_id = from + i;
		post(&s->l, &wr);
	}
}

static void send_behind(struct vqp *from, struct vqp *to, struct ibv_send_wr *wr, uint8_t *buf,
			uint32_t lkey)
{
	wr->send_flags = 0;
	post_recv(to, 0, buf, SIZE, lkey);
	post(from, wr);
	vcq_expect(to->rcq, IBV_WC_SUCCESS);
}

/*
 * Until all that was posted has completed. What comes behind it on the same QP tells that the peer
 * has carried it out, and what the peer sends then comes behind its acknowledgement.
 */
static void await_peer(struct stage *s)
{
	struct ibv_sge sge = sge_of(s, 8), back = { (uintptr_t)s->rbuf, 8, s->rmr->lkey };
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE_WITH_IMM, &sge);
	struct ibv_send_wr answer = { .opcode = IBV_WR_SEND, .sg_list = &back, .num_sge = 1 };

	send_behind(&s->l, &s->r, &wr, s->rbuf, s->rmr->lkey);
	send_behind(&s->r, &s->l, &answer, s->lbuf, s->lmr->lkey);
}

static void cq_resize(void)
{
	struct stage *s = set_up_usual();
	struct ibv_wc wc[8];
	int cqe;

	write_some(s, 5, 0);
	await_peer(s);
	MUST(!ibv_resize_cq(s->l.scq, 1000) && s->l.scq->cqe >= 1000, "growing: %s",
	     strerror(errno));
	vcq_wait(s->l.scq, wc, 3, 10000);
	for (unsigned i = 0; i < 3; i++)
		MUST(wc[i].wr_id == i, "entry %u after growing", i);
	write_some(s, 3, 5);
	await_peer(s);
	vcq_wait(s->l.scq, wc, 1, 10000);
	MUST(wc[0].wr_id == 3, "entry 3 after growing");
	MUST(!ibv_resize_cq(s->l.scq, 16), "shrinking: %s", strerror(errno));
	vcq_wait(s->l.scq, wc, 4, 10000);
	for (unsigned i = 0; i < 4; i++)
		MUST(wc[i].wr_id == 4 + i, "entry %u after shrinking", 4 + i);
	write_some(s, 6, 8);
	await_peer(s);
	cqe = s->l.scq->cqe;
	MUST(ibv_resize_cq(s->l.scq, 2) == EINVAL && s->l.scq->cqe == cqe, "six entries in two");
	vcq_wait(s->l.scq, wc, 6, 10000);
	MUST(wc[0].wr_id == 8 && wc[5].wr_id == 13, "entries after a refusal");
	MUST(ibv_resize_cq(s->l.scq, 0) && ibv_resize_cq(s->l.scq, -1), "a CQ of nothing");
	tear_down(s);
}

/* A connected pair whose left QP has this CQ for its sends. */
static struct stage *stage_on(struct ibv_cq *cq)
{
	struct stage *s = set_up_usual();

	MUST(!ibv_destroy_qp(s->l.qp), "destroy_qp: %s", strerror(errno));
	MUST(!ibv_destroy_cq(s->l.scq) && !ibv_destroy_cq(s->l.rcq), "destroy_cq");
	vqp_make(&s->l, s->pl, &vqp_usual, cq, cq);
	MUST(!ibv_destroy_qp(s->r.qp), "destroy_qp: %s", strerror(errno));
	MUST(!ibv_destroy_cq(s->r.scq) && !ibv_destroy_cq(s->r.rcq), "destroy_cq");
	vqp_make(&s->r, s->pr, &vqp_usual, NULL, NULL);
	vqp_connect(&s->l, s->r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&s->r, s->l.qp->qp_num, &s->pl->gid, &vqp_usual);
	return s;
}

static void cq_overrun(void)
{
	struct vport *p = vport_get("uroce0");
	struct ibv_cq *cq = ibv_create_cq(p->ctx, 2, NULL, NULL, 0);
	struct stage *s = stage_on(cq);
	struct ibv_wc wc[8];
	int n;

	write_some(s, 6, 0);
	expect_event(p->ctx, IBV_EVENT_CQ_ERR, cq);
	expect_event(p->ctx, IBV_EVENT_QP_FATAL, s->l.qp);
	must_be_quiet(p->ctx);
	must_be_in(&s->l, IBV_QPS_ERR, "QP whose CQ is overrun");
	n = ibv_poll_cq(cq, 8, wc);
	MUST(n == 2 && wc[0].wr_id == 0 && wc[1].wr_id == 1, "%d completions before the overrun",
	     n);
	MUST(ibv_poll_cq(cq, 8, wc) < 0, "an overrun CQ polls as if all were well");
	tear_down(s);
	MUST(!ibv_destroy_cq(cq), "destroy_cq: %s", strerror(errno));
}

/* Its event was never read: destroying must not wait for an acknowledgement. */
static void unread_events(void)
{
	struct vport *p = vport_get("uroce0");
	struct ibv_cq *cq = ibv_create_cq(p->ctx, 1, NULL, NULL, 0);
	struct stage *s = stage_on(cq);

	write_some(s, 4, 0);
	MUST(is_readable(p->ctx->async_fd, 10000), "no event");
	tear_down(s);
	MUST(!ibv_destroy_cq(cq), "destroy_cq: %s", strerror(errno));
	must_be_quiet(p->ctx);
}

static bool has_cq_event(struct ibv_comp_channel *ch, int ms)
{
	struct ibv_cq *cq;
	void *cq_context;

	if (!is_readable(ch->fd, ms))
		return false;
	MUST(!ibv_get_cq_event(ch, &cq, &cq_context), "get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* The usual stage whose receiver completes on a CQ with a channel, with three receives. */
static struct stage *stage_with_channel(struct ibv_comp_channel **ch, struct ibv_cq **cq)
{
	struct vport *p = vport_get("uroce1");
	struct stage *s = set_up_usual();

	*ch = ibv_create_comp_channel(p->ctx);
	*cq = ibv_create_cq(p->ctx, 64, NULL, *ch, 0);
	MUST(*ch && *cq, "no channel or CQ: %s", strerror(errno));
	MUST(!ibv_destroy_qp(s->r.qp) && !ibv_destroy_qp(s->l.qp), "destroy_qp");
	MUST(!ibv_destroy_cq(s->r.scq) && !ibv_destroy_cq(s->r.rcq), "destroy_cq");
	MUST(!ibv_destroy_cq(s->l.scq) && !ibv_destroy_cq(s->l.rcq), "destroy_cq");
	vqp_make(&s->l, s->pl, &vqp_usual, NULL, NULL);
	vqp_make(&s->r, s->pr, &vqp_usual, *cq, *cq);
	vqp_connect(&s->l, s->r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&s->r, s->l.qp->qp_num, &s->pl->gid, &vqp_usual);
	for (unsigned i = 0; i < 3; i++)
		post_recv(&s->r, i, s->rbuf, SIZE, s->rmr->lkey);
	return s;
}

static void drop_channel(struct stage *s, struct ibv_comp_channel *ch, struct ibv_cq *cq)
{
	tear_down(s);
	MUST(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(ch), "clean up: %s", strerror(errno));
}

/* What came between an empty poll and the arming: an HCA sends the event at once. */
static void late_arming(void)
{
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct stage *s = stage_with_channel(&ch, &cq);
	struct ibv_sge sge = sge_of(s, 8);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, &sge);
	struct ibv_wc wc;

	for (unsigned i = 0; i < 3; i++) {
		bool is_solicited = i == 2;

		MUST(!ibv_poll_cq(cq, 1, &wc), "a completion of nothing");
		wr.send_flags = IBV_SEND_SIGNALED | (is_solicited ? IBV_SEND_SOLICITED : 0);
		post(&s->l, &wr);
		vcq_expect(s->l.scq, IBV_WC_SUCCESS); /* so the receiver has its completion */
		MUST(!ibv_req_notify_cq(cq, 1), "req_notify_cq: %s", strerror(errno));
		MUST(has_cq_event(ch, is_solicited ? 10000 : 0) == is_solicited,
		     "armed for solicited completions, %u", i);
		MUST(is_solicited || !ibv_req_notify_cq(cq, 0), "req_notify_cq");
		MUST(is_solicited || has_cq_event(ch, 10000), "no event for what is there");
		vcq_wait(cq, &wc, 1, 10000);
		MUST(wc.wr_id == i, "receive %u", i);
	}
	MUST(!has_cq_event(ch, 0), "an event too many");
	drop_channel(s, ch, cq);
}

static void solicited(void)
{
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct stage *s = stage_with_channel(&ch, &cq);
	struct ibv_sge sge = sge_of(s, 8);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, &sge);
	struct ibv_wc wc;

	MUST(!ibv_req_notify_cq(cq, 1), "req_notify_cq: %s", strerror(errno));
	/* The armed CQ is resized on the way: the arming goes with it. */
	MUST(!ibv_resize_cq(cq, 200), "resize_cq: %s", strerror(errno));
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(!has_cq_event(ch, 0), "an event for what was not solicited");
	wr.send_flags |= IBV_SEND_SOLICITED;
	post(&s->l, &wr);
	MUST(has_cq_event(ch, 10000), "no event for what was solicited");
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(!has_cq_event(ch, 0), "an event without arming");
	for (unsigned i = 0; i < 3; i++) {
		vcq_wait(cq, &wc, 1, 10000);
		MUST(wc.wr_id == i, "receive %u", i);
	}
	drop_channel(s, ch, cq);
}

static void moderation(void)
{
	struct vport *p = vport_get("uroce0");
	struct ibv_cq *cq = ibv_create_cq(p->ctx, 4, NULL, NULL, 0);
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { .cq_count = 8, .cq_period = 16 } };

	MUST(cq && !ibv_modify_cq(cq, &attr), "modify_cq: %s", strerror(errno));
	attr.attr_mask = 1u << 9;
	MUST(ibv_modify_cq(cq, &attr) == EINVAL, "an unknown attribute was taken");
	MUST(!ibv_destroy_cq(cq), "destroy_cq: %s", strerror(errno));
}

static const struct tap_case cases[] = {
	{ "a shared receive queue serves in order and has room again at once", srq_serves, 0 },
	{ "its limit: one event, then disarmed", srq_limit, 0 },
	{ "it grows and shrinks with receives in it, and not below them", srq_resize, 0 },
	{ "a QP on it that goes to ERR: LAST_WQE_REACHED once", last_wqe, 0 },
	{ "shared receive queues of nothing or too much: EINVAL", bad_srqs, 0 },
	{ "a CQ grows and shrinks with entries in it, and not below them", cq_resize, 0 },
	{ "a CQ overrun: CQ_ERR once, the QP in ERR, polling says so", cq_overrun, 0 },
	{ "objects with unread events are destroyed, and the events with them", unread_events, 0 },
	{ "armed for solicited completions, also across a resize", solicited, 0 },
	{ "armed over a completion that a poll did not see: its event at once", late_arming, 0 },
	{ "moderation is accepted, and nothing unknown", moderation, 0 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
