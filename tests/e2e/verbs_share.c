/* SPDX-License-Identifier: BSD-3-Clause */
/* A context handed to another process by its command descriptor, and what can be imported from it.
 */
#include "tests/e2e/verbs_lib.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE   4096u
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* What the owner tells the importer, with its command descriptor. */
struct offer {
	uint32_t pd, mr, dm;
	uint64_t addr;
};

static void send_offer(int sock, const struct offer *o, int fd)
{
	struct iovec iov = { (void *)(uintptr_t)o, sizeof(*o) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} ctrl = { 0 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = ctrl.room,
			    .msg_controllen = sizeof(ctrl.room) };

	ctrl.head.cmsg_level = SOL_SOCKET;
	ctrl.head.cmsg_type = SCM_RIGHTS;
	ctrl.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&ctrl.head), &fd, sizeof(fd));
	MUST(sendmsg(sock, &m, 0) == sizeof(*o), "sendmsg: %s", strerror(errno));
}

static int receive_offer(int sock, struct offer *o)
{
	struct iovec iov = { o, sizeof(*o) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} ctrl = { 0 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = ctrl.room,
			    .msg_controllen = sizeof(ctrl.room) };
	int fd;

	MUST(recvmsg(sock, &m, 0) == sizeof(*o) && CMSG_FIRSTHDR(&m), "recvmsg: %s",
	     strerror(errno));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void write_to(struct vqp *from, struct ibv_mr *mr, const struct offer *o, uint32_t rkey,
		     enum ibv_wc_status status)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, SIZE, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = o->addr;
	wr.wr.rdma.rkey = rkey;
	MUST(!ibv_post_send(from->qp, &wr, &bad), "post_send: %s", strerror(errno));
	vcq_expect(from->scq, status);
}

static void look_at_dm(struct ibv_context *ctx, const struct offer *o)
{
	struct ibv_dm *dm = ibv_import_dm(ctx, o->dm);
	uint8_t copy[64];

	MUST(dm, "import_dm: %s", strerror(errno));
	MUST(!ibv_memcpy_from_dm(copy, dm, 64, 64), "memcpy_from_dm");
	MUST(pattern_differs(copy, 64, 9, 64) == 64, "the device memory holds other bytes");
	ibv_unimport_dm(dm);
	MUST(!ibv_import_dm(ctx, o->dm + 1) && errno == EINVAL, "import of no device memory");
}

/*
 * The importer's QP is of the owner's PD, so a peer reaches the owner's region through it: the
 * bytes land in another process than the one whose QP they came to.
 */
static void importer(int sock)
{
	struct vport *own = vport_get("uroce0"), imported;
	struct offer o;
	int fd = receive_offer(sock, &o);
	uint8_t *buf = malloc(SIZE);
	struct ibv_mr *mr = vreg(own, buf, SIZE, ACCESS), *theirs;
	struct vqp l, r;
	char c = 0;

	imported.ctx = ibv_import_device(fd);
	MUST(imported.ctx, "import_device: %s", strerror(errno));
	MUST(!strcmp(ibv_get_device_name(imported.ctx->device), "uroce1"), "it is %s",
	     ibv_get_device_name(imported.ctx->device));
	MUST(!ibv_query_gid(imported.ctx, 1, 1, &imported.gid), "query_gid");
	imported.pd = ibv_import_pd(imported.ctx, o.pd);
	MUST(imported.pd, "import_pd: %s", strerror(errno));
	theirs = ibv_import_mr(imported.pd, o.mr);
	MUST(theirs, "import_mr: %s", strerror(errno));
	MUST(ibv_dereg_mr(theirs) == EOPNOTSUPP, "a region was taken from its owner");
	look_at_dm(imported.ctx, &o);
	pattern_fill(buf, SIZE, 5, 0);
	vqp_pair(&l, own, &r, &imported, &vqp_usual);
	write_to(&l, mr, &o, theirs->rkey, IBV_WC_SUCCESS);
	MUST(write(sock, &c, 1) == 1 && read(sock, &c, 1) == 1, "socket");
	/* The owner has gone, and its memory with it; the importer stays. */
	write_to(&l, mr, &o, theirs->rkey, IBV_WC_REM_ACCESS_ERR);
	vqp_close(&l);
	vqp_close(&r);
	ibv_unimport_mr(theirs);
	ibv_unimport_pd(imported.pd);
	MUST(!ibv_close_device(imported.ctx), "close_device");
}

static int part_sock;

static void run_importer(void)
{
	importer(part_sock);
}

static struct ibv_dm *make_dm(struct ibv_context *ctx)
{
	struct ibv_alloc_dm_attr attr = { .length = 256 };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	uint8_t bytes[256];

	MUST(dm, "alloc_dm: %s", strerror(errno));
	pattern_fill(bytes, 256, 9, 0);
	MUST(!ibv_memcpy_to_dm(dm, 0, bytes, 256), "memcpy_to_dm");
	return dm;
}

static void across_processes(void)
{
	int sv[2], status;
	struct vport *port;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	struct offer o;
	uint8_t *buf = calloc(1, SIZE);
	pid_t pid;
	char c;

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), "socketpair");
	pid = fork();
	if (!pid) {
		close(sv[0]);
		part_sock = sv[1];
		_exit(tap_part(run_importer));
	}
	close(sv[1]);
	port = vport_get("uroce1");
	mr = vreg(port, buf, SIZE, ACCESS);
	dm = make_dm(port->ctx);
	o = (struct offer) { port->pd->handle, mr->handle, dm->handle, (uintptr_t)buf };
	send_offer(sv[0], &o, port->ctx->cmd_fd);
	MUST(read(sv[0], &c, 1) == 1, "the importer failed");
	MUST(pattern_differs(buf, SIZE, 5, 0) == SIZE, "the bytes did not come here");
	MUST(!ibv_dereg_mr(mr) && !ibv_free_dm(dm), "dereg_mr");
	MUST(write(sv[0], &c, 1) == 1, "socket");
	MUST(waitpid(pid, &status, 0) == pid && !status, "the importer ended with %#x", status);
	free(buf);
}

static void only_what_was_offered(void)
{
	struct vport *port = vport_get("uroce0");
	struct ibv_context *ctx = ibv_import_device(dup(port->ctx->cmd_fd));
	struct ibv_pd *pd;

	MUST(!ibv_import_device(open("/dev/null", O_RDONLY)) && errno == EINVAL,
	     "a stranger's descriptor was taken: %s", strerror(errno));
	MUST(ctx, "import_device: %s", strerror(errno));
	MUST(!ibv_import_pd(ctx, 0xdead) && errno == EINVAL, "import of no PD");
	pd = ibv_import_pd(ctx, port->pd->handle);
	MUST(pd, "import_pd: %s", strerror(errno));
	MUST(!ibv_import_mr(pd, 0xdead) && errno == EINVAL, "import of no region");
	MUST(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx), "close");
}

/* A region of one PD cannot be had through another. */
static void regions_stay_in_their_pd(void)
{
	struct vport *port = vport_get("uroce0");
	struct ibv_context *ctx = ibv_import_device(dup(port->ctx->cmd_fd));
	struct ibv_pd *other, *pd;
	static uint8_t buf[64];
	struct ibv_mr *mr = vreg(port, buf, sizeof(buf), ACCESS);

	MUST(ctx, "import_device: %s", strerror(errno));
	other = ibv_alloc_pd(ctx);
	pd = ibv_import_pd(ctx, port->pd->handle);
	MUST(other && pd, "PDs");
	MUST(!ibv_import_mr(other, mr->handle) && errno == EINVAL, "import into another PD");
	ibv_unimport_pd(pd);
	MUST(!ibv_dealloc_pd(other) && !ibv_close_device(ctx) && !ibv_dereg_mr(mr), "close");
}

int main(int argc, char **argv)
{
	static const struct tap_case cases[] = {
		{ "a process works on the memory of the one whose context it imported",
		  across_processes, 0 },
		{ "nothing is imported but what the owner has", only_what_was_offered, 0 },
		{ "a region is imported into its own PD only", regions_stay_in_their_pd, 0 },
	};

	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
