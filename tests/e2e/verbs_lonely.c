/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are not there, or no longer, and queue pairs by the thousand. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY  0xfffffeu /* no QP has this number: it is no index we hand out */
#define PAIRS   500u
#define SAMPLES 7u

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* From posting to the completion, to a peer that never answers. */
static double time_to_fail(uint8_t timeout, uint8_t retry_cnt)
{
	struct vport *port = vport_get("uroce0");
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct vqp_conf conf = vqp_usual;
	double began, ended;
	struct vqp v;

	conf.timeout = timeout;
	conf.retry_cnt = retry_cnt;
	vqp_make(&v, port, &conf, NULL, NULL);
	vqp_connect(&v, NOBODY, &vport_get("uroce1")->gid, &conf);
	began = now_s();
	post(&v, &wr);
	vcq_expect(v.scq, IBV_WC_RETRY_EXC_ERR);
	ended = now_s();
	must_be_in(&v, IBV_QPS_ERR, "the requester");
	vqp_close(&v);
	return ended - began;
}

static int by_value(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

static void ack_timeout(void)
{
	static const struct {
		uint8_t timeout, retry_cnt;
	} all[] = { { 13, 0 }, { 14, 0 }, { 15, 0 }, { 13, 2 }, { 14, 1 } };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		double due = 4.096e-6 * (1u << all[i].timeout) * (all[i].retry_cnt + 1);
		double took[SAMPLES];

		for (unsigned k = 0; k < SAMPLES; k++)
			took[k] = time_to_fail(all[i].timeout, all[i].retry_cnt);
		qsort(took, SAMPLES, sizeof(took[0]), by_value);
		MUST(took[0] >= due * 0.999, "timeout %u, retry_cnt %u: after %.3f ms of %.3f",
		     all[i].timeout, all[i].retry_cnt, took[0] * 1e3, due * 1e3);
		MUST(took[SAMPLES / 2] <= due * 1.1,
		     "timeout %u, retry_cnt %u: the median is %.3f ms, the formula says %.3f",
		     all[i].timeout, all[i].retry_cnt, took[SAMPLES / 2] * 1e3, due * 1e3);
	}
}

struct hello {
	uint32_t qpn;
	union ibv_gid gid;
};

static int sock[2];

/* The peer: connects, says that it is there, and waits for its end. */
static void be_killed(void)
{
	struct vport *port = vport_get("uroce1");
	struct hello mine, theirs;
	struct vqp v;

	vqp_make(&v, port, &vqp_usual, NULL, NULL);
	mine = (struct hello) { v.qp->qp_num, port->gid };
	MUST(write(sock[1], &mine, sizeof(mine)) == sizeof(mine), "write");
	MUST(read(sock[1], &theirs, sizeof(theirs)) == sizeof(theirs), "read");
	vqp_connect(&v, theirs.qpn, &theirs.gid, &vqp_usual);
	MUST(write(sock[1], "", 1) == 1, "write");
	for (;;)
		pause();
}

/*
 * A WRITE without bytes touches nobody's memory: it succeeds as long as the peer's queue pair lives
 * on in the daemon, and then its retries run out.
 */
static void killed_peer(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct hello mine, theirs;
	struct vport *port;
	struct ibv_wc wc;
	struct vqp v;
	pid_t pid;
	char ready;
	int status;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock), "socketpair: %s", strerror(errno));
	pid = fork(); /* before anything is opened here */
	if (!pid)
		_exit(tap_part(be_killed));
	port = vport_get("uroce0");
	vqp_make(&v, port, &vqp_usual, NULL, NULL);
	mine = (struct hello) { v.qp->qp_num, port->gid };
	MUST(read(sock[0], &theirs, sizeof(theirs)) == sizeof(theirs), "read");
	MUST(write(sock[0], &mine, sizeof(mine)) == sizeof(mine), "write");
	vqp_connect(&v, theirs.qpn, &theirs.gid, &vqp_usual);
	MUST(read(sock[0], &ready, 1) == 1, "read");
	post(&v, &wr);
	vcq_expect(v.scq, IBV_WC_SUCCESS);
	MUST(!kill(pid, SIGKILL), "kill");
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "waitpid: %#x", status);
	do {
		post(&v, &wr);
		vcq_wait(v.scq, &wc, 1, 10000);
	} while (wc.status == IBV_WC_SUCCESS);
	MUST(wc.status == IBV_WC_RETRY_EXC_ERR, "%s", ibv_wc_status_str(wc.status));
	must_be_in(&v, IBV_QPS_ERR, "the survivor");
	vqp_close(&v);
	close(sock[0]);
	close(sock[1]);
}

static void use(struct vqp *l, struct vqp *r, struct ibv_mr *lmr, struct ibv_mr *rmr, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)lmr->addr + 64 * i, 64, lmr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = (uintptr_t)rmr->addr + 64 * i;
	wr.wr.rdma.rkey = rmr->rkey;
	post(l, &wr);
	vcq_expect(l->scq, IBV_WC_SUCCESS);
	post_recv(r, i, (uint8_t *)rmr->addr + 64 * i, 64, rmr->lkey);
	wr.opcode = IBV_WR_SEND;
	post(l, &wr);
	vcq_expect(l->scq, IBV_WC_SUCCESS);
	vcq_expect(r->rcq, IBV_WC_SUCCESS);
}

static void thousand(void)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	struct vqp_conf conf = vqp_usual;
	struct vqp *l = calloc(PAIRS, sizeof(*l)), *r = calloc(PAIRS, sizeof(*r));
	uint8_t *from = malloc(64 * PAIRS), *to = calloc(64, PAIRS);
	struct ibv_mr *lmr, *rmr;

	MUST(l && r && from && to, "no memory");
	conf.send_wr = conf.recv_wr = 4;
	conf.send_sge = conf.recv_sge = 1;
	lmr = vreg(pl, from, 64 * PAIRS, ALL_ACCESS);
	rmr = vreg(pr, to, 64 * PAIRS, ALL_ACCESS);
	pattern_fill(from, 64 * PAIRS, 3, 0);
	for (unsigned i = 0; i < PAIRS; i++)
		vqp_pair(&l[i], pl, &r[i], pr, &conf);
	for (unsigned i = 0; i < PAIRS; i++)
		use(&l[i], &r[i], lmr, rmr, i);
	MUST(pattern_differs(to, 64 * PAIRS, 3, 0) == 64 * PAIRS, "bytes differ");
	for (unsigned i = 0; i < PAIRS; i++) {
		vqp_close(&l[i]);
		vqp_close(&r[i]);
	}
	MUST(!ibv_dereg_mr(lmr) && !ibv_dereg_mr(rmr), "dereg_mr");
	free(l);
	free(r);
	free(from);
	free(to);
}

/* The one that forks comes first: a device must not be open then. */
static const struct tap_case cases[] = {
	{ "a peer killed by SIGKILL: RETRY_EXC_ERR, and no hang", killed_peer, 0 },
	{ "a dead peer: (retry_cnt + 1) x 4.096 us x 2^timeout", ack_timeout, 60 },
	{ "1,000 queue pairs are opened, used and closed", thousand, 120 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
