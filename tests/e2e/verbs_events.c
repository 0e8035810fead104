/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for what happens to a device as a whole and tells it, a line each.
 *
 *   verbs_events list DEVICE OTHER   opens DEVICE, lists until OTHER is there, opens that
 *   verbs_events ports DEVICE        tells events of the port, until it is killed
 *   verbs_events group DEVICE        is a member of 239.1.2.3, until it is killed
 *   verbs_events hold DEVICE         tells DEVICE_FATAL and holds what it has, until it is killed
 *   verbs_events removal DEVICE      checks all that must be so when DEVICE is removed
 */
#include "tests/e2e/verbs_lib.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECVS 4u

static const char *name, *other;

static struct ibv_context *try_open(const char *wanted)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (unsigned i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), wanted))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

static struct ibv_context *must_open(void)
{
	struct ibv_context *ctx = try_open(name);

	MUST(ctx, "%s does not open", name);
	printf("%s is open\n", name);
	return ctx;
}

static void list(void)
{
	struct ibv_context *ctx = must_open(), *late = NULL;
	uint64_t end = now_ms() + 60000;

	while (!late) {
		MUST(now_ms() < end, "%s does not show up", other);
		late = try_open(other);
		usleep(2000);
	}
	printf("%s is there, and opens\n", other);
	MUST(!ibv_close_device(late) && !ibv_close_device(ctx), "close");
}

static const char *event_name(enum ibv_event_type type)
{
	switch ((int)type) {
	case IBV_EVENT_PORT_ACTIVE:
		return "PORT_ACTIVE";
	case IBV_EVENT_PORT_ERR:
		return "PORT_ERR";
	case IBV_EVENT_GID_CHANGE:
		return "GID_CHANGE";
	case IBV_EVENT_DEVICE_FATAL:
		return "DEVICE_FATAL";
	default:
		return "another";
	}
}

static enum ibv_event_type await_event(struct ibv_context *ctx)
{
	struct ibv_port_attr port = { 0 };
	struct ibv_async_event ev;

	MUST(!ibv_get_async_event(ctx, &ev), "ibv_get_async_event: %s", strerror(errno));
	ibv_ack_async_event(&ev);
	if (ev.event_type == IBV_EVENT_DEVICE_FATAL) {
		printf("DEVICE_FATAL\n");
		return ev.event_type;
	}
	MUST(!ibv_query_port(ctx, 1, &port), "ibv_query_port");
	printf("%s port %d, it is %d\n", event_name(ev.event_type), ev.element.port_num,
	       (int)port.state);
	return ev.event_type;
}

static void hold(void)
{
	struct ibv_context *ctx = must_open();

	MUST(ibv_alloc_pd(ctx), "ibv_alloc_pd");
	while (await_event(ctx) != IBV_EVENT_DEVICE_FATAL)
		;
	pause();
}

static void group(void)
{
	static const union ibv_gid gid = { .raw = { [10] = 255, 255, 239, 1, 2, 3 } };
	struct ibv_context *ctx = must_open();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp *qp;
	int err;

	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	MUST(pd && init.send_cq, "no PD or CQ");
	qp = ibv_create_qp(pd, &init);
	MUST(qp, "no UD QP: %s", strerror(errno));
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "to INIT: %s", strerror(errno));
	err = ibv_attach_mcast(qp, &gid, 0);
	MUST(!err, "attach_mcast: %s", strerror(err));
	printf("it is a member\n");
	pause();
}

static void ports(void)
{
	struct ibv_context *ctx = must_open();

	for (;;)
		await_event(ctx);
}

/* Requests that cannot have been answered: receives, and sends to a QP without any. */
static void post_all(struct vqp *a, struct vqp *b, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr swr = { .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	for (unsigned i = 0; i < RECVS; i++) {
		rwr.wr_id = i;
		MUST(!ibv_post_recv(a->qp, &rwr, &bad_recv), "ibv_post_recv");
	}
	/* b has no receives: its peer answers "not ready" for ever. */
	swr.wr_id = 77;
	MUST(!ibv_post_send(a->qp, &swr, &bad), "ibv_post_send");
	(void)b;
}

static void must_refuse(struct vport *port, struct vqp *v, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_send_wr swr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_port_attr attr;
	int err;

	errno = 0;
	MUST(!ibv_alloc_pd(port->ctx) && errno == EIO, "ibv_alloc_pd: %s", strerror(errno));
	errno = 0;
	MUST(!ibv_create_cq(port->ctx, 8, NULL, NULL, 0) && errno == EIO, "ibv_create_cq: %s",
	     strerror(errno));
	errno = 0;
	MUST(!ibv_reg_mr(port->pd, mr->addr, 64, 0) && errno == EIO, "ibv_reg_mr: %s",
	     strerror(errno));
	err = ibv_query_port(port->ctx, 1, &attr);
	MUST(err == EIO, "ibv_query_port: %s", strerror(err));
	err = ibv_post_send(v->qp, &swr, &bad);
	MUST(err == EIO, "ibv_post_send: %s", strerror(err));
}

/* A device that stays, connected to one that goes. */
struct survivor {
	struct vqp own, lost;
	struct ibv_mr *mr;
	uint8_t buf[64];
};

static void connect_survivor(struct survivor *s, struct vport *port)
{
	struct vqp_conf conf = vqp_usual;
	struct vport *stays = vport_get("uroce0");

	conf.timeout = 10;
	conf.retry_cnt = 3;
	vqp_pair(&s->own, stays, &s->lost, port, &conf);
	s->mr = vreg(stays, s->buf, sizeof(s->buf), IBV_ACCESS_LOCAL_WRITE);
}

/* Its peer is an HCA that vanished. */
static void check_survivor(struct survivor *s)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, sizeof(s->buf), s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	MUST(!ibv_post_send(s->own.qp, &wr, &bad), "ibv_post_send of the survivor");
	vcq_expect(s->own.scq, IBV_WC_RETRY_EXC_ERR);
	vqp_close(&s->own);
	vqp_close(&s->lost);
	MUST(!ibv_dereg_mr(s->mr), "ibv_dereg_mr of the survivor");
}

static void removal(void)
{
	static struct survivor survivor;
	static uint8_t buf[4096];
	struct vqp_conf conf = vqp_usual;
	struct vport *port = vport_get(name);
	struct ibv_mr *mr = vreg(port, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc[RECVS];
	struct vqp a, b;

	conf.rnr_retry = 7;
	vqp_pair(&a, port, &b, port, &conf);
	post_all(&a, &b, mr);
	connect_survivor(&survivor, port);
	printf("%s is open\n", name);
	MUST(await_event(port->ctx) == IBV_EVENT_DEVICE_FATAL, "not the event");
	vcq_wait(a.rcq, wc, RECVS, 30000);
	for (unsigned i = 0; i < RECVS; i++)
		MUST(wc[i].status == IBV_WC_WR_FLUSH_ERR && wc[i].wr_id == i, "receive %u: %s", i,
		     ibv_wc_status_str(wc[i].status));
	vcq_wait(a.scq, wc, 1, 30000);
	MUST(wc[0].status == IBV_WC_WR_FLUSH_ERR && wc[0].wr_id == 77, "send: %s",
	     ibv_wc_status_str(wc[0].status));
	must_refuse(port, &a, mr);
	check_survivor(&survivor);
	MUST(ibv_poll_cq(a.rcq, 1, wc) <= 0 && ibv_poll_cq(a.scq, 1, wc) <= 0, "twice");
	vqp_close(&a);
	vqp_close(&b);
	MUST(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(port->pd) && !ibv_close_device(port->ctx),
	     "what is left does not close");
}

static const struct {
	const char *name;
	int argc;
	void (*run)(void);
} mode[] = {
	{ "list", 4, list }, { "ports", 3, ports },     { "group", 3, group },
	{ "hold", 3, hold }, { "removal", 3, removal },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		if (argc != mode[i].argc || strcmp(argv[1], mode[i].name))
			continue;
		name = argv[2];
		other = argv[3];
		return tap_part(mode[i].run);
	}
	fprintf(stderr, "usage: verbs_events list|ports|group|hold|removal DEVICE...\n");
	return 2;
}
