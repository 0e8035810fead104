/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that forks while its device is open: parent and child both go on. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static void work(struct stage *s, uint32_t seed)
{
	struct ibv_sge sge = sge_of(s, SIZE);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

	pattern_fill(s->lbuf, SIZE, seed, 0);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(pattern_differs(s->rbuf, SIZE, seed, 0) == SIZE, "bytes differ");
}

static void must_end_well(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	MUST(!status, "the child ended with %#x", status);
}

static void run_idle(void)
{
}

static void parent_goes_on(void)
{
	struct stage *s;
	pid_t pid;

	MUST(!ibv_fork_init() && ibv_is_fork_initialized() != IBV_FORK_DISABLED, "fork_init");
	s = set_up_usual();
	work(s, 1);
	pid = fork();
	if (!pid)
		_exit(tap_part(run_idle));
	work(s, 2); /* while the child has its copy of everything */
	must_end_well(pid);
	work(s, 3);
	tear_down(s);
}

static struct stage *inherited;

/* It may not use what the parent opened, but letting go of it must hurt nobody. */
static void let_go(void)
{
	MUST(!ibv_destroy_qp(inherited->l.qp) && !ibv_destroy_qp(inherited->r.qp), "destroy_qp");
	MUST(!ibv_dereg_mr(inherited->lmr) && !ibv_dereg_mr(inherited->rmr), "dereg_mr");
	MUST(!ibv_destroy_cq(inherited->l.scq), "destroy_cq");
	MUST(!ibv_alloc_pd(inherited->pl->ctx), "a PD on the parent's connection");
}

static void child_lets_go(void)
{
	struct stage *s = set_up_usual();
	pid_t pid;

	work(s, 4);
	inherited = s;
	pid = fork();
	if (!pid)
		_exit(tap_part(let_go));
	must_end_well(pid);
	work(s, 5);
	tear_down(s);
}

/* With a context of its own the child is a program like any other, also on the same device. */
static void own_context(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *buf = calloc(1, PAGE);

	MUST(list && list[0], "no devices");
	ctx = ibv_open_device(list[0]);
	MUST(ctx, "open_device: %s", strerror(errno));
	pd = ibv_alloc_pd(ctx);
	MUST(pd, "alloc_pd: %s", strerror(errno));
	mr = ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr, "reg_mr: %s", strerror(errno));
	MUST(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx), "close");
	ibv_free_device_list(list);
	free(buf);
}

static void child_opens_its_own(void)
{
	struct stage *s = set_up_usual();
	pid_t pid = fork();

	if (!pid)
		_exit(tap_part(own_context));
	work(s, 6);
	must_end_well(pid);
	work(s, 7);
	tear_down(s);
}

static uint8_t *both;

static void touch_both(void)
{
	both[0] = 0xaa; /* not registered: the child has it */
	MUST(both[0] == 0xaa, "memory");
}

/* What the parent registers never turns copy-on-write under the device's hands. */
static void memory_stays_the_parents(void)
{
	struct stage *s = set_up_usual();
	uint8_t *buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = vreg(s->pr, buf, SIZE, ALL_ACCESS);
	struct ibv_sge sge = sge_of(s, SIZE);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	pid_t pid;

	both = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(buf, 1, SIZE);
	pid = fork();
	if (!pid)
		_exit(tap_part(touch_both));
	pattern_fill(s->lbuf, SIZE, 8, 0);
	wr.wr.rdma.remote_addr = (uintptr_t)buf;
	wr.wr.rdma.rkey = mr->rkey;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(pattern_differs(buf, SIZE, 8, 0) == SIZE, "bytes went elsewhere");
	must_end_well(pid);
	MUST(!both[0], "the child wrote into the parent's memory");
	MUST(!ibv_dereg_mr(mr), "dereg_mr");
	tear_down(s);
}

int main(int argc, char **argv)
{
	static const struct tap_case cases[] = {
		{ "the parent's queues work during and after a child's life", parent_goes_on, 0 },
		{ "a child that destroys what it inherited destroys nothing", child_lets_go, 0 },
		{ "a child opens the device anew while its parent uses it", child_opens_its_own,
		  0 },
		{ "the device writes into the parent's memory, not a copy",
		  memory_stays_the_parents, 0 },
	};

	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
