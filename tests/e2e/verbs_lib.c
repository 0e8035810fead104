/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/e2e/verbs_lib.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_PORTS 4

static jmp_buf out_of_case;

const struct vqp_conf vqp_usual = {
	.send_wr = 128,
	.recv_wr = 128,
	.send_sge = 32,
	.recv_sge = 32,
	.max_inline = 256,
	.mtu = IBV_MTU_4096,
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.timeout = 16, /* 0.27 s */
	.min_rnr_timer = 1,
	.rd_atomic = 16,
	.dest_rd_atomic = 16,
	.psn = 0xfffff0, /* every long enough case crosses the wrap */
};

void tap_fail(const char *file, int line, const char *fmt, ...)
{
	const char *slash = strrchr(file, '/');
	va_list ap;

	printf("# %s:%d: ", slash ? slash + 1 : file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	longjmp(out_of_case, 1);
}

static void on_alarm(int sig)
{
	static const char text[] = "Bail out! a case did not end within its deadline\n";

	(void)sig;
	_exit(write(1, text, sizeof(text) - 1) < 0 ? 3 : 2);
}

static bool run_one(const struct tap_case *c)
{
	if (setjmp(out_of_case))
		return false;
	c->run();
	return true;
}

int tap_run(const struct tap_case *cases, unsigned n, int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";
	unsigned chosen = 0, i = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, on_alarm);
	for (const struct tap_case *c = cases; c < cases + n; c++)
		chosen += strstr(c->name, part) != NULL;
	printf("1..%u\n", chosen);
	for (const struct tap_case *c = cases; c < cases + n; c++) {
		uint64_t start = now_ms();
		bool is_ok;

		if (!strstr(c->name, part))
			continue;
		alarm(c->seconds ? c->seconds : 30);
		is_ok = run_one(c);
		alarm(0);
		failed += !is_ok;
		printf("%s %u - %s\n", is_ok ? "ok" : "not ok", ++i, c->name);
		printf("# took %u ms\n", (unsigned)(now_ms() - start));
	}
	return failed ? 1 : 0;
}

int tap_part(void (*run)(void))
{
	const struct tap_case part = { "part", run, 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, on_alarm);
	alarm(30);
	return run_one(&part) ? 0 : 1;
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *ctx = NULL;
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	MUST(ctx, "%s cannot be opened (%d devices are listed): %s", name, n, strerror(errno));
	return ctx;
}

struct vport *vport_get(const char *name)
{
	static struct {
		char name[64];
		struct vport port;
	} known[N_PORTS];
	unsigned i = 0;

	while (i < N_PORTS - 1 && known[i].name[0] && strcmp(known[i].name, name))
		i++;
	if (!known[i].port.pd) {
		struct vport *p = &known[i].port;

		p->ctx = open_device(name);
		p->pd = ibv_alloc_pd(p->ctx);
		MUST(p->pd, "no PD: %s", strerror(errno));
		MUST(!ibv_query_gid(p->ctx, 1, 1, &p->gid), "no GID 1: %s", strerror(errno));
		snprintf(known[i].name, sizeof(known[i].name), "%s", name);
	}
	return &known[i].port;
}

void vqp_make(struct vqp *v, struct vport *port, const struct vqp_conf *conf, struct ibv_cq *scq,
	      struct ibv_cq *rcq)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = conf->sig_all };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = (unsigned)conf->access };

	*v = (struct vqp) { .port = port, .owns_cqs = !scq };
	v->scq = scq ? scq : ibv_create_cq(port->ctx, (int)conf->send_wr, NULL, NULL, 0);
	v->rcq = rcq ? rcq : ibv_create_cq(port->ctx, (int)conf->recv_wr, NULL, NULL, 0);
	MUST(v->scq && v->rcq, "no CQ: %s", strerror(errno));
	init.send_cq = v->scq;
	init.recv_cq = v->rcq;
	init.cap = (struct ibv_qp_cap) { conf->send_wr, conf->recv_wr, conf->send_sge,
					 conf->recv_sge, conf->max_inline };
	v->qp = ibv_create_qp(port->pd, &init);
	MUST(v->qp, "no QP: %s", strerror(errno));
	MUST(!ibv_modify_qp(v->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "RESET to INIT: %s", strerror(errno));
}

void vqp_connect(struct vqp *v, uint32_t remote_qpn, const union ibv_gid *remote,
		 const struct vqp_conf *conf)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .path_mtu = conf->mtu,
				    .dest_qp_num = remote_qpn,
				    .rq_psn = conf->psn,
				    .max_dest_rd_atomic = conf->dest_rd_atomic,
				    .min_rnr_timer = conf->min_rnr_timer };

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = *remote;
	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 64;
	MUST(!ibv_modify_qp(v->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "INIT to RTR: %s", strerror(errno));
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS,
				      .sq_psn = conf->psn,
				      .timeout = conf->timeout,
				      .retry_cnt = conf->retry_cnt,
				      .rnr_retry = conf->rnr_retry,
				      .max_rd_atomic = conf->rd_atomic };
	MUST(!ibv_modify_qp(v->qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTR to RTS: %s", strerror(errno));
}

void vqp_pair(struct vqp *a, struct vport *pa, struct vqp *b, struct vport *pb,
	      const struct vqp_conf *conf)
{
	vqp_make(a, pa, conf, NULL, NULL);
	vqp_make(b, pb, conf, NULL, NULL);
	vqp_connect(a, b->qp->qp_num, &pb->gid, conf);
	vqp_connect(b, a->qp->qp_num, &pa->gid, conf);
}

void vqp_close(struct vqp *v)
{
	if (v->qp)
		MUST(!ibv_destroy_qp(v->qp), "destroying a QP: %s", strerror(errno));
	if (v->owns_cqs) {
		MUST(!ibv_destroy_cq(v->scq), "destroying a CQ: %s", strerror(errno));
		MUST(!ibv_destroy_cq(v->rcq), "destroying a CQ: %s", strerror(errno));
	}
	*v = (struct vqp) { 0 };
}

enum ibv_qp_state vqp_state(const struct vqp *v)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(!ibv_query_qp(v->qp, &attr, IBV_QP_STATE, &init), "query_qp: %s", strerror(errno));
	return attr.qp_state;
}

struct ibv_mr *vreg(struct vport *port, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(port->pd, addr, length, access);

	MUST(mr, "registering %zu bytes: %s", length, strerror(errno));
	return mr;
}

void vcq_wait(struct ibv_cq *cq, struct ibv_wc *wc, unsigned n, unsigned ms)
{
	uint64_t end = now_ms() + ms;
	unsigned have = 0;

	while (have < n) {
		int got = ibv_poll_cq(cq, (int)(n - have), wc + have);

		MUST(got >= 0, "ibv_poll_cq: %d", got);
		have += (unsigned)got;
		MUST(have == n || now_ms() < end, "%u of %u completions within %u ms", have, n, ms);
	}
}

struct ibv_wc vcq_expect(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	vcq_wait(cq, &wc, 1, 10000);
	MUST(wc.status == status, "completion of %llu: %s instead of %s (vendor_err %u)",
	     (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), ibv_wc_status_str(status),
	     wc.vendor_err);
	return wc;
}

uint8_t pattern_byte(uint32_t seed, uint64_t i)
{
	uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;

	return (uint8_t)((x >> 56) ^ (x >> 23));
}

void pattern_fill(void *at, size_t n, uint32_t seed, uint64_t from)
{
	uint8_t *p = at;

	for (size_t i = 0; i < n; i++)
		p[i] = pattern_byte(seed, from + i);
}

size_t pattern_differs(const void *at, size_t n, uint32_t seed, uint64_t from)
{
	const uint8_t *p = at;

	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern_byte(seed, from + i))
			return i;
	return n;
}
