/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads on one context: objects come and go while others use them, events are read while
 * their objects go, devices are opened and closed. As verbs_threads, also with ThreadSanitizer.
 */
#include "tests/e2e/verbs_crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

/* QPs come and go, with work outstanding, on the CQ that others poll. */
static void *churner(void *arg)
{
	struct vport *port = crowd.s->pl;

	(void)arg;
	for (unsigned i = 0; i < 25 && !crowd_is_over(); i++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
						 .send_cq = crowd.cq,
						 .recv_cq = crowd.cq,
						 .cap = { 4, 4, 1, 1, 0 } };
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
		struct ibv_recv_wr wr = { .wr_id = N_ALL }, *bad;
		struct ibv_qp *qp = ibv_create_qp(port->pd, &init);
		struct ibv_mr *mr = ibv_reg_mr(port->pd, crowd.s->lbuf, SIZE, ALL_ACCESS);

		if (!qp || !mr) {
			crowd_broken("no QP or no region");
			return NULL;
		}
		if (ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS) ||
		    ibv_post_recv(qp, &wr, &bad))
			crowd_broken("a QP is of no use");
		attr.qp_state =
			IBV_QPS_ERR; /* its receive is flushed, perhaps polled, perhaps not */
		if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
			crowd_broken("a QP does not go to ERR");
		if (ibv_destroy_qp(qp) || ibv_dereg_mr(mr))
			crowd_broken("a QP or a region stays");
	}
	return NULL;
}

static void *any_poller(void *arg)
{
	struct ibv_wc wc[4];

	(void)arg;
	while (!crowd_is_over())
		if (ibv_poll_cq(crowd.cq, 4, wc) < 0)
			crowd_broken("ibv_poll_cq failed");
	return NULL;
}

static void *resizer(void *arg)
{
	(void)arg;
	for (unsigned i = 0; !crowd_is_over(); i++) {
		int err = ibv_resize_cq(crowd.cq, i % 2 ? 64 : 256);

		if (err)
			crowd_broken("ibv_resize_cq failed");
		sched_yield();
	}
	return NULL;
}

static void objects_come_and_go(void)
{
	struct stage *s = set_up_usual();
	pthread_t c[N_THREADS], p[2], r;

	crowd_begin(s);
	crowd.cq = ibv_create_cq(s->pl->ctx, 128, NULL, NULL, 0);
	MUST(crowd.cq, "no CQ: %s", strerror(errno));
	crowd_start(p, 2, any_poller);
	crowd_start(&r, 1, resizer);
	crowd_start(c, N_THREADS, churner);
	crowd_join(c, N_THREADS);
	atomic_store(&crowd.must_stop, true);
	crowd_join(p, 2);
	crowd_join(&r, 1);
	crowd_must_be_whole();
	MUST(!ibv_destroy_cq(crowd.cq), "destroy_cq: %s", strerror(errno));
	tear_down(s);
}

/* Waits at the channel with others, arms again, takes what is there. */
static void *waiter(void *arg)
{
	struct pollfd fd = { .fd = crowd.channel->fd, .events = POLLIN };
	struct ibv_wc wc[4];

	(void)arg;
	while (atomic_load(&crowd.n_done) < N_ALL && !crowd_is_over()) {
		struct ibv_cq *cq;
		void *ctx;
		int n;

		/* Bounded: the last event may go to another. */
		if (poll(&fd, 1, 20) != 1 || ibv_get_cq_event(crowd.channel, &cq, &ctx))
			continue;
		atomic_fetch_add(&crowd.n_events, 1);
		if (cq != crowd.cq || ctx != crowd.s)
			crowd_broken("an event of another CQ");
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0))
			crowd_broken("ibv_req_notify_cq failed");
		while ((n = ibv_poll_cq(cq, 4, wc)) > 0)
			for (int i = 0; i < n; i++)
				crowd_count(&wc[i]);
		if (n < 0)
			crowd_broken("ibv_poll_cq failed");
	}
	return NULL;
}

static void must_not_block(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	MUST(flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK), "fcntl: %s", strerror(errno));
}

static void one_channel(void)
{
	struct stage *s = set_up_usual();
	pthread_t w[N_THREADS], p[2];

	crowd_begin(s);
	crowd.channel = ibv_create_comp_channel(s->pl->ctx);
	MUST(crowd.channel, "no channel: %s", strerror(errno));
	must_not_block(crowd.channel->fd);
	MUST(!ibv_destroy_qp(s->l.qp) && !ibv_destroy_cq(s->l.scq), "destroying");
	crowd.cq = ibv_create_cq(s->pl->ctx, 256, s, crowd.channel, 0);
	MUST(crowd.cq, "no CQ: %s", strerror(errno));
	MUST(!ibv_destroy_cq(s->l.rcq) && !ibv_destroy_qp(s->r.qp), "destroying");
	vqp_make(&s->l, s->pl, &vqp_usual, crowd.cq, crowd.cq);
	vqp_make(&s->r, s->pr, &vqp_usual, s->r.scq, s->r.rcq);
	s->r.owns_cqs = true;
	vqp_connect(&s->l, s->r.qp->qp_num, &s->pr->gid, &vqp_usual);
	vqp_connect(&s->r, s->l.qp->qp_num, &s->pl->gid, &vqp_usual);
	MUST(!ibv_req_notify_cq(crowd.cq, 0), "req_notify_cq");
	crowd_start(p, 2, waiter);
	crowd_start(w, N_THREADS, crowd_writer);
	crowd_join(w, N_THREADS);
	crowd_join(p, 2);
	crowd_each_once(N_ALL);
	MUST(atomic_load(&crowd.n_events), "no event at all");
	tear_down(s);
	MUST(!ibv_destroy_cq(crowd.cq), "destroy_cq: %s", strerror(errno));
	MUST(!ibv_destroy_comp_channel(crowd.channel), "destroy_comp_channel: %s", strerror(errno));
}

/* Reads and acknowledges; whoever destroys the QP of an event that was read waits for that. */
static void *event_reader(void *arg)
{
	struct ibv_context *ctx = arg;
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };

	while (!crowd_is_over()) {
		struct ibv_async_event ev;

		if (poll(&fd, 1, 20) != 1 || ibv_get_async_event(ctx, &ev))
			continue;
		if (ev.event_type != IBV_EVENT_QP_ACCESS_ERR || !ev.element.qp->qp_num)
			crowd_broken("an event of another kind");
		sched_yield(); /* the QP must stay while we look at it */
		if (!ev.element.qp->qp_num)
			crowd_broken("the QP of an event went away before its acknowledgement");
		atomic_fetch_add(&crowd.n_events, 1);
		ibv_ack_async_event(&ev);
	}
	return NULL;
}

static void async_events(void)
{
	struct stage *s = set_up_usual();
	pthread_t reader[2];

	crowd_begin(s);
	must_not_block(s->pr->ctx->async_fd);
	for (unsigned i = 0; i < 2; i++)
		MUST(!pthread_create(&reader[i], NULL, event_reader, s->pr->ctx), "no thread");
	for (unsigned i = 0; i < 20 && !crowd_is_over(); i++) {
		struct ibv_sge sge = sge_of(s, 8);
		struct ibv_send_wr wr;
		struct vqp l, r;

		vqp_pair(&l, s->pl, &r, s->pr, &vqp_usual);
		wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
		wr.wr.rdma.rkey ^= 0x5500;
		post(&l, &wr);
		vcq_expect(l.scq, IBV_WC_REM_ACCESS_ERR);
		vqp_close(&r); /* its event is read by a thread, or goes with it */
		vqp_close(&l);
	}
	atomic_store(&crowd.must_stop, true);
	crowd_join(reader, 2);
	crowd_must_be_whole();
	tear_down(s);
}

static void *opener(void *arg)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)arg;
	for (unsigned i = 0; list && list[0] && i < 8 && !crowd_is_over(); i++) {
		struct ibv_context *ctx = ibv_open_device(list[0]);
		struct ibv_comp_channel *ch = ctx ? ibv_create_comp_channel(ctx) : NULL;
		struct ibv_cq *cq = ch ? ibv_create_cq(ctx, 16, NULL, ch, 0) : NULL;
		struct ibv_port_attr port;

		if (!cq || ibv_query_port(ctx, 1, &port))
			crowd_broken("a device does not open");
		if (cq)
			ibv_destroy_cq(cq);
		if (ch)
			ibv_destroy_comp_channel(ch);
		if (ctx && ibv_close_device(ctx))
			crowd_broken("a device does not close");
	}
	if (!list || !list[0])
		crowd_broken("no devices");
	if (list)
		ibv_free_device_list(list);
	return NULL;
}

static void contexts(void)
{
	pthread_t o[N_THREADS];

	crowd_begin(NULL);
	crowd_start(o, N_THREADS, opener);
	crowd_join(o, N_THREADS);
	crowd_must_be_whole();
}

static const struct tap_case cases[] = {
	{ "QPs and regions come and go, their CQ is polled and resized", objects_come_and_go, 120 },
	{ "two threads wait at one channel: no completion is left behind", one_channel, 120 },
	{ "asynchronous events are read while their QPs are destroyed", async_events, 120 },
	{ "three threads open and close the device", contexts, 120 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
