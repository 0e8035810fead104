/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kind of memory that a process can have, another process's memory, and very much of it. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN   (200u * 1024)
#define START 123u /* of the region in its mapping: not a page boundary */

static void *map_of(int fd, size_t size, int flags)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	MUST(at != MAP_FAILED, "mmap: %s", strerror(errno));
	return at;
}

static int temporary_file(size_t size)
{
	char path[] = "/tmp/uroce-e2e-XXXXXX";
	int fd = mkstemp(path);

	MUST(fd >= 0 && !unlink(path) && !ftruncate(fd, (off_t)size), "mkstemp: %s",
	     strerror(errno));
	return fd;
}

static int memory_file(size_t size)
{
	int fd = memfd_create("uroce-e2e", MFD_CLOEXEC);

	MUST(fd >= 0 && !ftruncate(fd, (off_t)size), "memfd: %s", strerror(errno));
	return fd;
}

/* WRITE to, READ from and SEND to the region at `at`, against a heap buffer at the other end. */
static void work_on(uint8_t *at)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	uint8_t *heap = malloc(LEN);
	struct ibv_mr *lmr = vreg(pl, heap, LEN, ALL_ACCESS);
	struct ibv_mr *rmr = vreg(pr, at + START, LEN, ALL_ACCESS);
	struct ibv_sge sge = { (uintptr_t)heap, LEN, lmr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED };
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_SEND };
	struct vqp l, r;

	vqp_pair(&l, pl, &r, pr, &vqp_usual);
	for (unsigned i = 0; i < 3; i++) {
		bool is_read = opcodes[i] == IBV_WR_RDMA_READ;

		pattern_fill(is_read ? at + START : heap, LEN, i, 0);
		pattern_fill(at, START, 77, 0);
		pattern_fill(at + START + LEN, 99, 78, 0);
		wr.opcode = opcodes[i];
		wr.wr.rdma.remote_addr = (uintptr_t)at + START;
		wr.wr.rdma.rkey = rmr->rkey;
		if (opcodes[i] == IBV_WR_SEND)
			post_recv(&r, 1, at + START, LEN, rmr->lkey);
		post(&l, &wr);
		vcq_expect(l.scq, IBV_WC_SUCCESS);
		if (opcodes[i] == IBV_WR_SEND)
			vcq_expect(r.rcq, IBV_WC_SUCCESS);
		MUST(pattern_differs(is_read ? heap : at + START, LEN, i, 0) == LEN,
		     "opcode %d: bytes differ", opcodes[i]);
		MUST(pattern_differs(at, START, 77, 0) == START, "bytes before the region changed");
		MUST(pattern_differs(at + START + LEN, 99, 78, 0) == 99,
		     "bytes behind the region changed");
	}
	vqp_close(&l);
	vqp_close(&r);
	MUST(!ibv_dereg_mr(lmr) && !ibv_dereg_mr(rmr), "dereg_mr: %s", strerror(errno));
	free(heap);
}

#define SPACE (LEN + 65536u)

static void heap(void)
{
	uint8_t *at = malloc(SPACE);

	work_on(at);
	free(at);
}

static void stack(void)
{
	uint8_t at[SPACE];

	work_on(at);
}

static void statics(void)
{
	static uint8_t bss[SPACE], data[SPACE] = { 1 };

	work_on(bss);
	work_on(data);
}

static void file_shared(void)
{
	int fd = temporary_file(SPACE);
	uint8_t *at = map_of(fd, SPACE, MAP_SHARED), *copy = malloc(LEN);

	work_on(at);
	MUST(pread(fd, copy, LEN, START) == LEN, "pread: %s", strerror(errno));
	MUST(!memcmp(copy, at + START, LEN), "the file holds other bytes than its mapping");
	munmap(at, SPACE);
	free(copy);
	close(fd);
}

static void file_private(void)
{
	int fd = temporary_file(SPACE);
	uint8_t *at = map_of(fd, SPACE, MAP_PRIVATE), *copy = malloc(LEN);

	work_on(at);
	MUST(pread(fd, copy, LEN, START) == LEN, "pread: %s", strerror(errno));
	for (unsigned i = 0; i < LEN; i++)
		MUST(!copy[i], "a private mapping changed its file");
	munmap(at, SPACE);
	free(copy);
	close(fd);
}

/* One WRITE from `from` to `to`, of which one is good memory; both ends' QPs are used up. */
static void write_fails(uint8_t *from, uint8_t *to, enum ibv_wc_status status, int fd)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	struct ibv_mr *lmr = vreg(pl, from, LEN, ALL_ACCESS), *rmr = vreg(pr, to, LEN, ALL_ACCESS);
	struct ibv_sge sge = { (uintptr_t)from, LEN, lmr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .opcode = IBV_WR_RDMA_WRITE };
	struct vqp l, r;

	vqp_pair(&l, pl, &r, pr, &vqp_usual);
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = rmr->rkey;
	MUST(!ftruncate(fd, 0), "ftruncate: %s", strerror(errno));
	post(&l, &wr);
	vcq_expect(l.scq, status);
	vqp_close(&l);
	vqp_close(&r);
	MUST(!ibv_dereg_mr(lmr) && !ibv_dereg_mr(rmr), "dereg_mr: %s", strerror(errno));
}

/* The daemon copies to and from it directly: a file cut short must hurt nobody but its owner. */
static void cut_short(void)
{
	uint8_t *heap = malloc(SPACE);

	for (int is_target = 0; is_target < 2; is_target++) {
		int fd = memory_file(SPACE);
		uint8_t *at = map_of(fd, SPACE, MAP_SHARED);

		write_fails(is_target ? heap : at, is_target ? at : heap,
			    is_target ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR, fd);
		munmap(at, SPACE);
		close(fd);
	}
	work_on(heap);
	free(heap);
}

static void shared_memory(void)
{
	int fd = memory_file(SPACE);
	uint8_t *at = map_of(fd, SPACE, MAP_SHARED), *twin = map_of(fd, SPACE, MAP_SHARED);

	work_on(at);
	MUST(!memcmp(at, twin, SPACE), "another mapping of it shows other bytes");
	munmap(at, SPACE);
	munmap(twin, SPACE);
	close(fd);
}

/* The program may close the descriptor, and map from an offset. */
static void shared_memory_closed(void)
{
	int fd = memory_file(SPACE + 8192);
	uint8_t *at = mmap(NULL, SPACE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);

	MUST(at != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	work_on(at);
	munmap(at, SPACE);
}

static void anonymous_shared(void)
{
	uint8_t *at = map_of(-1, SPACE, MAP_SHARED | MAP_ANONYMOUS);

	work_on(at);
	munmap(at, SPACE);
}

/* Half anonymous, half a file: one region over two mappings. */
static void two_mappings(void)
{
	int fd = memory_file(SPACE);
	uint8_t *at = map_of(-1, SPACE, MAP_PRIVATE | MAP_ANONYMOUS);

	MUST(mmap(at + 64 * 1024, SPACE - 64 * 1024, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		  fd, 0) != MAP_FAILED,
	     "mmap: %s", strerror(errno));
	work_on(at);
	munmap(at, SPACE);
	close(fd);
}

static void read_only(void)
{
	struct stage *s = set_up_usual();
	uint8_t *at = map_of(-1, SIZE, MAP_PRIVATE | MAP_ANONYMOUS);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	pattern_fill(at, SIZE, 5, 0);
	MUST(!mprotect(at, SIZE, PROT_READ), "mprotect: %s", strerror(errno));
	mr = vreg(s->pl, at, SIZE, IBV_ACCESS_REMOTE_READ);
	sge = (struct ibv_sge) { (uintptr_t)at, SIZE, mr->lkey };
	wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(pattern_differs(s->rbuf, SIZE, 5, 0) == SIZE, "bytes differ");
	MUST(!ibv_dereg_mr(mr), "dereg_mr: %s", strerror(errno));
	munmap(at, SIZE);
	tear_down(s);
}

/* A file of `period` bytes mapped again and again over `total` bytes of address space. */
static uint8_t *map_over_and_over(size_t period, size_t total)
{
	int fd = memory_file(period);
	uint8_t *at = map_of(-1, total, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);

	for (size_t done = 0; done < total; done += period) {
		size_t n = total - done < period ? total - done : period;

		MUST(mmap(at + done, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
			     MAP_FAILED,
		     "mmap: %s", strerror(errno));
	}
	close(fd);
	return at;
}

/*
 * One message of n bytes, in little memory. The two periods differ, so a byte of the destination
 * shows whether the last of the bytes that fell on it came from where it should.
 */
static void giant(enum ibv_wr_opcode opcode, size_t n)
{
	const size_t from_period = 12u << 20, to_period = 20u << 20;
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	bool is_read = opcode == IBV_WR_RDMA_READ;
	uint8_t *from = map_over_and_over(from_period, n), *to = map_over_and_over(to_period, n);
	uint8_t *here = is_read ? to : from, *there = is_read ? from : to;
	struct ibv_mr *lmr = vreg(pl, here, n, ALL_ACCESS), *rmr = vreg(pr, there, n, ALL_ACCESS);
	struct ibv_sge sge = { (uintptr_t)here, (uint32_t)n, lmr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_wc wc;
	struct vqp l, r;

	pattern_fill(from, from_period, 3, 0);
	vqp_pair(&l, pl, &r, pr, &vqp_usual);
	wr.wr.rdma.remote_addr = (uintptr_t)there;
	wr.wr.rdma.rkey = rmr->rkey;
	post(&l, &wr);
	vcq_wait(l.scq, &wc, 1, 100000);
	MUST(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	for (size_t j = 0; j < to_period; j++) {
		size_t last = j + (n - 1 - j) / to_period * to_period;

		MUST(to[j] == pattern_byte(3, last % from_period), "the byte at %zu is wrong",
		     last);
	}
	vqp_close(&l);
	vqp_close(&r);
	MUST(!ibv_dereg_mr(lmr) && !ibv_dereg_mr(rmr), "dereg_mr: %s", strerror(errno));
	munmap(from, n);
	munmap(to, n);
}

static void write_1_gib(void)
{
	giant(IBV_WR_RDMA_WRITE, 1u << 30);
}

static void read_256_mib(void)
{
	giant(IBV_WR_RDMA_READ, 256u << 20);
}

/* What the two processes tell each other before they talk by verbs. */
struct card {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, rkey;
};

struct end {
	struct vport *port;
	struct vqp qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	struct card other;
};

static void meet(struct end *e, const char *device, int fd)
{
	struct card own;

	e->port = vport_get(device);
	e->buf = calloc(2, LEN);
	e->mr = vreg(e->port, e->buf, 2 * (size_t)LEN, ALL_ACCESS);
	vqp_make(&e->qp, e->port, &vqp_usual, NULL, NULL);
	own = (struct card) { e->port->gid, (uintptr_t)e->buf, e->qp.qp->qp_num, e->mr->rkey };
	MUST(write(fd, &own, sizeof(own)) == sizeof(own), "write: %s", strerror(errno));
	MUST(read(fd, &e->other, sizeof(own)) == sizeof(own), "the peer is gone");
	vqp_connect(&e->qp, e->other.qpn, &e->other.gid, &vqp_usual);
	post_recv(&e->qp, 1, e->buf + LEN, LEN, e->mr->lkey);
	MUST(write(fd, "r", 1) == 1 && read(fd, &own, 1) == 1, "the peer is gone");
}

static void do_work(struct end *e, enum ibv_wr_opcode opcode, uint32_t at, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + at, length, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = 0x1234 };

	wr.wr.rdma.remote_addr = e->other.addr + at;
	wr.wr.rdma.rkey = e->other.rkey;
	post(&e->qp, &wr);
	vcq_expect(e->qp.scq, IBV_WC_SUCCESS);
}

/* The peer's part: gets a WRITE, is told by a SEND, writes something of its own back. */
static void peer(void)
{
	struct end e;

	meet(&e, "uroce1", 3);
	MUST(vcq_expect(e.qp.rcq, IBV_WC_SUCCESS).imm_data == 0x1234, "another immediate");
	MUST(pattern_differs(e.buf, LEN, 1, 0) == LEN, "WRITE: bytes differ");
	MUST(pattern_differs(e.buf + LEN, 1000, 2, 0) == 1000, "SEND: bytes differ");
	pattern_fill(e.buf, LEN, 4, 0);
	do_work(&e, IBV_WR_RDMA_WRITE, 0, LEN);
	do_work(&e, IBV_WR_SEND_WITH_IMM, LEN, 1000);
	MUST(read(3, e.buf, 1) == 1, "the other is gone"); /* it has read our memory by now */
}

static void two_processes(void)
{
	int fds[2], status;
	struct end e;
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		dup2(fds[1], 3);
		close_range(4, ~0u, 0);
		execl("/proc/self/exe", "verbs_memory", "--peer", (char *)NULL);
		_exit(9);
	}
	close(fds[1]);
	meet(&e, "uroce0", fds[0]);
	pattern_fill(e.buf, LEN, 1, 0);
	pattern_fill(e.buf + LEN, 1000, 2, 0);
	do_work(&e, IBV_WR_RDMA_WRITE, 0, LEN);
	do_work(&e, IBV_WR_SEND_WITH_IMM, LEN, 1000);
	vcq_expect(e.qp.rcq, IBV_WC_SUCCESS);
	MUST(pattern_differs(e.buf, LEN, 4, 0) == LEN, "the peer's WRITE: bytes differ");
	memset(e.buf, 0, LEN);
	do_work(&e, IBV_WR_RDMA_READ, 0, LEN);
	MUST(pattern_differs(e.buf, LEN, 4, 0) == LEN, "READ: bytes differ");
	MUST(write(fds[0], "x", 1) == 1, "write: %s", strerror(errno));
	MUST(waitpid(pid, &status, 0) == pid && status == 0, "the peer ended with %x", status);
	vqp_close(&e.qp);
	MUST(!ibv_dereg_mr(e.mr), "dereg_mr: %s", strerror(errno));
	close(fds[0]);
	free(e.buf);
}

static const struct tap_case cases[] = {
	{ "heap", heap, 0 },
	{ "stack", stack, 0 },
	{ "static data", statics, 0 },
	{ "a shared mapping of a file, which then holds the bytes", file_shared, 0 },
	{ "a private mapping of a file, which stays as it was", file_private, 0 },
	{ "shared memory, and what another mapping of it shows", shared_memory, 0 },
	{ "shared memory whose descriptor is closed, from an offset", shared_memory_closed, 0 },
	{ "anonymous shared memory", anonymous_shared, 0 },
	{ "shared memory whose file is cut short", cut_short, 0 },
	{ "one region over two mappings", two_mappings, 0 },
	{ "read-only memory can be sent from", read_only, 0 },
	{ "two processes write, send to and read each other", two_processes, 0 },
	{ "one READ of 256 MiB", read_256_mib, 120 },
	{ "one WRITE of 1 GiB", write_1_gib, 120 },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--peer"))
		return tap_part(peer);
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
