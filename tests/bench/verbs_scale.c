/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What grows with numbers, and must not: the rate of one busy QP beside N idle ones or N idle MRs,
 * measured without them, with them, and without them again in one run; and the cost of making such
 * objects. Both ends of every connection are this program's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/timing.h"
#include "tests/e2e/verbs_lib.h"

#define DEPTH     128u
#define BATCH     32u
#define MR_LENGTH 4096u
#define PIECES    16u

static struct {
	struct vport *port[2];
	struct vqp busy[2];
	struct ibv_mr *target;
	struct ibv_cq *idle_cq[2];
	struct vqp *idle[2];
	struct ibv_mr **mr;
	uint32_t n, messages;
} scale;

static uint8_t target[64];

static void make_busy(void)
{
	struct vqp_conf conf = vqp_usual;

	for (unsigned i = 0; i < 2; i++)
		scale.port[i] = vport_get(i ? "uroce1" : "uroce0");
	conf.send_wr = DEPTH;
	vqp_pair(&scale.busy[0], scale.port[0], &scale.busy[1], scale.port[1], &conf);
	scale.target = vreg(scale.port[1], target, sizeof(target), conf.access);
}

/* Messages a second of one piece of the count: WRITEs of 64 bytes, inline, all signaled. */
static double measure_piece(uint32_t n)
{
	static uint8_t source[64];
	struct ibv_sge sge = { (uintptr_t)source, sizeof(source), 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE },
			   *bad;
	struct ibv_wc wc[BATCH];
	uint32_t posted = 0, done = 0;
	uint64_t start = timing_now();

	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	wr.wr.rdma.remote_addr = (uintptr_t)target;
	wr.wr.rdma.rkey = scale.target->rkey;
	while (done < n) {
		int got;

		for (; posted < n && posted - done < DEPTH; posted++)
			MUST(!ibv_post_send(scale.busy[0].qp, &wr, &bad), "ibv_post_send");
		got = ibv_poll_cq(scale.busy[0].scq, BATCH, wc);
		MUST(got >= 0, "ibv_poll_cq: %d", got);
		for (int i = 0; i < got; i++)
			MUST(wc[i].status == IBV_WC_SUCCESS, "a WRITE ended with %s",
			     ibv_wc_status_str(wc[i].status));
		done += (uint32_t)got;
	}
	return n * 1e9 / (double)(timing_now() - start);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median over pieces: another program's time slice must not decide. */
static double measure(void)
{
	double rate[PIECES];

	for (unsigned i = 0; i < PIECES; i++)
		rate[i] = measure_piece(scale.messages / PIECES + 1);
	qsort(rate, PIECES, sizeof(rate[0]), compare);
	return (rate[PIECES / 2 - 1] + rate[PIECES / 2]) / 2;
}

/* Idle QPs are connected and could send at any time. */
static void make_qps(void)
{
	struct vqp_conf conf = vqp_usual;

	conf.send_wr = conf.recv_wr = 1;
	conf.send_sge = conf.recv_sge = 1;
	conf.max_inline = 0;
	for (unsigned e = 0; e < 2; e++) {
		scale.idle[e] = calloc(scale.n, sizeof(struct vqp));
		scale.idle_cq[e] = ibv_create_cq(scale.port[e]->ctx, 16, NULL, NULL, 0);
		MUST(scale.idle[e] && scale.idle_cq[e], "no CQ: %s", strerror(errno));
		for (uint32_t i = 0; i < scale.n; i++)
			vqp_make(&scale.idle[e][i], scale.port[e], &conf, scale.idle_cq[e],
				 scale.idle_cq[e]);
	}
	for (unsigned e = 0; e < 2; e++)
		for (uint32_t i = 0; i < scale.n; i++)
			vqp_connect(&scale.idle[e][i], scale.idle[!e][i].qp->qp_num,
				    &scale.port[!e]->gid, &conf);
}

static void drop_qps(void)
{
	for (unsigned e = 0; e < 2; e++) {
		for (uint32_t i = 0; i < scale.n; i++)
			vqp_close(&scale.idle[e][i]);
		ibv_destroy_cq(scale.idle_cq[e]);
		free(scale.idle[e]);
	}
}

static void make_mrs(void)
{
	uint8_t *mem = aligned_alloc(4096, (size_t)scale.n * MR_LENGTH);

	scale.mr = calloc(scale.n, sizeof(struct ibv_mr *));
	MUST(mem && scale.mr, "no memory for %u regions", scale.n);
	for (uint32_t i = 0; i < scale.n; i++)
		scale.mr[i] = vreg(scale.port[1], mem + (size_t)i * MR_LENGTH, MR_LENGTH,
				   vqp_usual.access);
}

static void drop_mrs(void)
{
	void *mem = scale.mr[0]->addr;

	for (uint32_t i = 0; i < scale.n; i++)
		MUST(!ibv_dereg_mr(scale.mr[i]), "dereg_mr: %s", strerror(errno));
	free(scale.mr);
	free(mem);
}

static double seconds_since(uint64_t start)
{
	return (double)(timing_now() - start) / 1e9;
}

static void compare_rates(void (*make)(void), void (*drop)(void))
{
	double before, with, after;
	uint64_t start;

	make_busy();
	measure();
	before = measure();
	start = timing_now();
	make();
	printf("make_us %.3f\n", seconds_since(start) * 1e6 / scale.n);
	with = measure();
	start = timing_now();
	drop();
	printf("drop_us %.3f\n", seconds_since(start) * 1e6 / scale.n);
	after = measure();
	printf("messages_per_s %.0f\n", with);
	printf("messages_per_s_alone %.0f\n", (before + after) / 2);
	printf("ratio %.4f\n", with / ((before + after) / 2));
}

static void beside_qps(void)
{
	alarm(300); /* making them takes its time */
	compare_rates(make_qps, drop_qps);
}

static void beside_mrs(void)
{
	alarm(120);
	compare_rates(make_mrs, drop_mrs);
}

/* Connections a second, both ends: CQs, QPs, to RTS, and down again. */
static void connections(void)
{
	struct vqp a, b;
	uint64_t start;

	make_busy();
	start = timing_now();
	for (uint32_t i = 0; i < scale.n; i++) {
		vqp_pair(&a, scale.port[0], &b, scale.port[1], &vqp_usual);
		vqp_close(&a);
		vqp_close(&b);
	}
	printf("connections_per_s %.1f\n", scale.n / seconds_since(start));
}

static void register_size(size_t size)
{
	uint8_t *mem = aligned_alloc(4096, size);
	uint64_t *reg = calloc(scale.n, sizeof(*reg)), *dereg = calloc(scale.n, sizeof(*dereg));

	MUST(mem && reg && dereg, "no memory");
	memset(mem, 1, size);
	for (uint32_t i = 0; i < scale.n; i++) {
		uint64_t start = timing_now(), mid;
		struct ibv_mr *mr = vreg(scale.port[0], mem, size, vqp_usual.access);

		mid = timing_now();
		MUST(!ibv_dereg_mr(mr), "dereg_mr: %s", strerror(errno));
		reg[i] = mid - start;
		dereg[i] = timing_now() - mid;
	}
	qsort(reg, scale.n, sizeof(*reg), timing_compare);
	qsort(dereg, scale.n, sizeof(*dereg), timing_compare);
	printf("register_%zu_us %.3f\n", size, (double)reg[scale.n / 2] / 1000);
	printf("deregister_%zu_us %.3f\n", size, (double)dereg[scale.n / 2] / 1000);
	free(mem);
	free(reg);
	free(dereg);
}

static void registrations(void)
{
	make_busy();
	for (size_t size = 4096; size <= 64u << 20; size *= 128)
		register_size(size);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (argc > 2)
		scale.n = timing_number(argv[2]);
	scale.messages = argc > 3 ? timing_number(argv[3]) : 200000;
	if (!strcmp(what, "qps"))
		return tap_part(beside_qps);
	if (!strcmp(what, "mrs"))
		return tap_part(beside_mrs);
	if (!strcmp(what, "connections"))
		return tap_part(connections);
	if (!strcmp(what, "registrations"))
		return tap_part(registrations);
	fprintf(stderr, "usage: %s qps|mrs|connections|registrations N [MESSAGES]\n", argv[0]);
	return 2;
}
