/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory, regions on demand and the null region, at work. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DM_LEN 8192u
#define PAGE   4096u

static struct ibv_dm *dm_of(struct vport *port, struct ibv_mr **mr, unsigned access)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_LEN };
	struct ibv_dm *dm = ibv_alloc_dm(port->ctx, &attr);

	MUST(dm, "alloc_dm: %s", strerror(errno));
	*mr = ibv_reg_dm_mr(port->pd, dm, 0, DM_LEN, access | IBV_ACCESS_ZERO_BASED);
	MUST(*mr, "reg_dm_mr: %s", strerror(errno));
	return dm;
}

static void read_and_write(void)
{
	struct stage *s = set_up_usual();
	struct ibv_mr *mr;
	struct ibv_dm *dm = dm_of(s->pr, &mr, ALL_ACCESS);
	struct ibv_sge sge = sge_of(s, SIZE);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	uint8_t copy[SIZE];

	pattern_fill(s->lbuf, SIZE, 3, 0);
	wr.wr.rdma.remote_addr = 0;
	wr.wr.rdma.rkey = mr->rkey;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(!ibv_memcpy_from_dm(copy, dm, 0, SIZE), "memcpy_from_dm");
	MUST(pattern_differs(copy, SIZE, 3, 0) == SIZE, "the device memory holds other bytes");
	pattern_fill(copy, SIZE, 4, 0);
	MUST(!ibv_memcpy_to_dm(dm, 0, copy, SIZE), "memcpy_to_dm");
	wr.opcode = IBV_WR_RDMA_READ;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(pattern_differs(s->lbuf, SIZE, 4, 0) == SIZE, "READ brought other bytes");
	wr.wr.rdma.remote_addr = 1; /* one byte behind its end */
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_REM_ACCESS_ERR);
	MUST(ibv_free_dm(dm) == EBUSY && !ibv_dereg_mr(mr) && !ibv_free_dm(dm), "free_dm");
	tear_down(s);
}

static void atomics(void)
{
	struct stage *s = set_up_usual();
	struct ibv_mr *mr;
	struct ibv_dm *dm = dm_of(s->pr, &mr, ALL_ACCESS);
	struct ibv_sge sge = sge_of(s, 8);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
	uint64_t word = 40, old;

	MUST(!ibv_memcpy_to_dm(dm, 16, &word, 8), "memcpy_to_dm");
	wr.wr.atomic.remote_addr = 16;
	wr.wr.atomic.rkey = mr->rkey;
	wr.wr.atomic.compare_add = 2;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	memcpy(&old, s->lbuf, 8);
	MUST(!ibv_memcpy_from_dm(&word, dm, 16, 8), "memcpy_from_dm");
	MUST(old == 40 && word == 42, "was %lu, is %lu", (unsigned long)old, (unsigned long)word);
	MUST(!ibv_dereg_mr(mr) && !ibv_free_dm(dm), "free_dm");
	tear_down(s);
}

/* One region for the whole process: memory that did not exist when it was registered is in it. */
static void implicit(void)
{
	struct stage *s = set_up_usual();
	struct ibv_mr *all =
		ibv_reg_mr(s->pr->pd, NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = sge_of(s, PAGE);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	uint8_t *later;

	MUST(all, "reg_mr: %s", strerror(errno));
	later = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pattern_fill(s->lbuf, PAGE, 6, 0);
	wr.wr.rdma.remote_addr = (uintptr_t)later;
	wr.wr.rdma.rkey = all->rkey;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(pattern_differs(later, PAGE, 6, 0) == PAGE, "bytes differ");
	munmap(later, PAGE);
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_REM_ACCESS_ERR);
	MUST(!ibv_dereg_mr(all), "dereg_mr");
	tear_down(s);
}

/* Registered before it is mapped, moved while it is registered. */
static void on_demand(void)
{
	struct stage *s = set_up_usual();
	uint8_t *at = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = vreg(s->pr, at, 4 * PAGE, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = sge_of(s, SIZE);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);
	int again;

	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = mr->rkey;
	for (again = 0; again < 2; again++) {
		MUST(mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
		     "mmap: %s", strerror(errno));
		pattern_fill(s->lbuf, SIZE, (uint32_t)again, 0);
		post(&s->l, &wr);
		vcq_expect(s->l.scq, IBV_WC_SUCCESS);
		MUST(pattern_differs(at, SIZE, (uint32_t)again, 0) == SIZE, "bytes differ");
	}
	MUST(!ibv_dereg_mr(mr), "dereg_mr");
	munmap(at, 4 * PAGE);
	tear_down(s);
}

/* A list of real bytes, none, and real bytes again; then a message of which the middle is dropped.
 */
static void null_region(void)
{
	struct stage *s = set_up_usual();
	struct ibv_mr *null = ibv_alloc_null_mr(s->pl->pd), *null_r = ibv_alloc_null_mr(s->pr->pd);
	struct ibv_sge list[3] = { sge_of(s, 100), { 0, 5000, 0 }, sge_of(s, 100) };
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_SEND, list);
	struct ibv_sge into[3] = { { (uintptr_t)s->rbuf, 50, s->rmr->lkey },
				   { 0x1234, 100, 0 },
				   { (uintptr_t)s->rbuf + 50, 5050, s->rmr->lkey } };
	struct ibv_recv_wr recv = { .sg_list = into, .num_sge = 3 }, *bad;

	MUST(null && null_r, "alloc_null_mr: %s", strerror(errno));
	list[1].lkey = null->lkey;
	list[2].addr += 100;
	into[1].lkey = null_r->lkey;
	wr.num_sge = 3;
	pattern_fill(s->lbuf, 200, 8, 0);
	memset(s->rbuf, 0xee, SIZE);
	MUST(!ibv_post_recv(s->r.qp, &recv, &bad), "post_recv");
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(vcq_expect(s->r.rcq, IBV_WC_SUCCESS).byte_len == 5200, "length");
	/* Sent: 100 pattern, 5000 zeros, 100 pattern; bytes 50 to 149 of that are dropped. */
	MUST(pattern_differs(s->rbuf, 50, 8, 0) == 50, "the first bytes differ");
	for (unsigned i = 50; i < 50 + 4950; i++)
		MUST(!s->rbuf[i], "byte %u is not zero", i);
	MUST(pattern_differs(s->rbuf + 5000, 100, 8, 100) == 100, "the last bytes differ");
	MUST(s->rbuf[5100] == 0xee, "a byte too many");
	MUST(!ibv_dereg_mr(null) && !ibv_dereg_mr(null_r), "dereg_mr");
	tear_down(s);
}

/* It has no rkey, so none that a peer may guess. */
static void null_region_is_local(void)
{
	struct stage *s = set_up_usual();
	struct ibv_mr *null = ibv_alloc_null_mr(s->pr->pd);
	struct ibv_sge sge = sge_of(s, 64);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

	MUST(null && !null->rkey, "alloc_null_mr");
	wr.wr.rdma.remote_addr = 0;
	wr.wr.rdma.rkey = null->lkey;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_REM_ACCESS_ERR);
	MUST(!ibv_dereg_mr(null), "dereg_mr");
	tear_down(s);
}

#define DMA_PAGE 4096u
#define DMA_OFF  (DMA_PAGE + 64u) /* neither at the file's beginning nor at a page's */

static int make_memory(void)
{
	int fd = memfd_create("verbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, 3 * DMA_PAGE), "memfd: %s", strerror(errno));
	return fd;
}

/* A peer writes the region of these 128 bytes of fd and reads them again; neighbours stay. */
static void use_dmabuf(int fd)
{
	struct stage *s = set_up_usual();
	uint8_t *mem = mmap(NULL, 3 * DMA_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(s->pr->pd, DMA_OFF, 128, 0x10000, fd, ALL_ACCESS);
	struct ibv_sge sge = sge_of(s, 128);
	struct ibv_send_wr wr = remote_wr(s, IBV_WR_RDMA_WRITE, &sge);

	MUST(mem != MAP_FAILED, "mmap: %s", strerror(errno));
	MUST(mr && mr->length == 128, "reg_dmabuf_mr: %s", strerror(errno));
	memset(mem, 0xee, 3 * DMA_PAGE);
	wr.wr.rdma.remote_addr = 0x10000;
	wr.wr.rdma.rkey = mr->rkey;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(pattern_differs(mem + DMA_OFF, 128, 1, 0) == 128, "other bytes arrived");
	MUST(mem[DMA_OFF - 1] == 0xee && mem[DMA_OFF + 128] == 0xee, "a neighbour changed");
	mem[DMA_OFF] ^= 0xff; /* the program's stores are seen */
	wr.opcode = IBV_WR_RDMA_READ;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_SUCCESS);
	MUST(s->lbuf[0] == mem[DMA_OFF], "an old byte was read");
	wr.wr.rdma.remote_addr++;
	post(&s->l, &wr);
	vcq_expect(s->l.scq, IBV_WC_REM_ACCESS_ERR);
	MUST(!ibv_dereg_mr(mr), "dereg_mr: %s", strerror(errno));
	munmap(mem, 3 * DMA_PAGE);
	tear_down(s);
}

static void dmabuf_memory(void)
{
	int fd = make_memory();

	use_dmabuf(fd);
	close(fd);
}

/* The kernel's own dma-bufs, where it has some that a CPU can map. */
static void dmabuf_udmabuf(void)
{
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd = make_memory(), buf;
	struct udmabuf_create create = { .memfd = (uint32_t)fd, .size = 3 * DMA_PAGE };

	if (dev < 0) {
		printf("# no /dev/udmabuf here\n");
		close(fd);
		return;
	}
	MUST(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "seal: %s", strerror(errno));
	buf = ioctl(dev, UDMABUF_CREATE, &create);
	MUST(buf >= 0, "UDMABUF_CREATE: %s", strerror(errno));
	use_dmabuf(buf);
	close(buf);
	close(fd);
	close(dev);
}

static void dmabuf_refused(void)
{
	struct vport *p = vport_get("uroce0");
	int fd = make_memory(), ro, pipes[2];
	char name[32];

	MUST(!pipe(pipes), "pipe");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ro = open(name, O_RDONLY | O_CLOEXEC);
	MUST(!ibv_reg_dmabuf_mr(p->pd, 0, DMA_PAGE, 0, pipes[0], 0) && errno == EOPNOTSUPP,
	     "what is no memory: %s", strerror(errno));
	MUST(!ibv_reg_dmabuf_mr(p->pd, 0, DMA_PAGE, 0, ro, IBV_ACCESS_LOCAL_WRITE) &&
		     errno == EACCES,
	     "what is not open for writing: %s", strerror(errno));
	MUST(!ibv_reg_dmabuf_mr(p->pd, 2 * DMA_PAGE, 2 * DMA_PAGE, 0, fd, 0) && errno == EFAULT,
	     "what is longer than the file: %s", strerror(errno));
	MUST(!ibv_reg_dmabuf_mr(p->pd, 0, DMA_PAGE, 0, fd, IBV_ACCESS_ON_DEMAND) && errno == EINVAL,
	     "on demand: %s", strerror(errno));
	MUST(!ibv_reg_dmabuf_mr(p->pd, 0, 0, 0, fd, 0) && errno == EINVAL, "nothing");
	close(ro);
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
}

int main(int argc, char **argv)
{
	static const struct tap_case cases[] = {
		{ "device memory is written and read by a peer, from address 0", read_and_write,
		  0 },
		{ "atomics work on device memory", atomics, 0 },
		{ "an implicit region holds what is mapped later, and no longer what is unmapped",
		  implicit, 0 },
		{ "a region on demand need not be mapped, and may be mapped anew", on_demand, 0 },
		{ "the null region gives zeros and drops bytes amid a list", null_region, 0 },
		{ "a peer cannot use the null region", null_region_is_local, 0 },
		{ "memory named by a descriptor is written and read by a peer", dmabuf_memory, 0 },
		{ "so is a udmabuf, where the kernel makes some", dmabuf_udmabuf, 0 },
		{ "what cannot be mapped: EOPNOTSUPP, and other refusals", dmabuf_refused, 0 },
	};

	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
