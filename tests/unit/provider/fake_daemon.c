/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/provider/fake_daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/provider/fake_world.h"

#define MUST(x) ((x) ? (void)0 : abort())

struct answer {
	uint32_t err, len, n_fds;
	int fds[UROCE_CTRL_FDS_MAX];
	_Alignas(8) uint8_t body[1024];
};

static void *add_body(struct answer *a, uint32_t len)
{
	a->len = len;
	memset(a->body, 0, len);
	return a->body;
}

static uint8_t *add_memory(struct answer *a, size_t size)
{
	int fd = memfd_create("fake", MFD_CLOEXEC);
	uint8_t *mem;

	MUST(fd >= 0 && !ftruncate(fd, (off_t)size));
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(mem != MAP_FAILED);
	a->fds[a->n_fds++] = fd;
	return mem;
}

/* Both ends; ours is returned, the reader's goes into the answer. */
static int add_events(struct answer *a)
{
	int sv[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	a->fds[a->n_fds++] = sv[1];
	return sv[0];
}

static void do_hello(struct fake *f, const struct uroce_hello *h, struct answer *a)
{
	struct uroce_hello_rep *r = add_body(a, sizeof(*r));
	struct uroce_uar *uar;

	r->magic = UROCE_ABI_MAGIC;
	r->version = f->version;
	strcpy(r->daemon_version, "fake");
	if (h->version != f->version) {
		a->err = EPROTO;
		return;
	}
	r->n_workers = FAKE_WORKERS;
	r->uar_size = UROCE_UAR_PAGE * (1 + FAKE_WORKERS);
	r->memory_err = f->memory_err;
	f->uar = add_memory(a, r->uar_size);
	uar = (struct uroce_uar *)f->uar;
	uar->magic = UROCE_ABI_MAGIC;
	f->async_fd = add_events(a);
	for (unsigned w = 0; w < FAKE_WORKERS; w++) {
		f->wake_fd[w] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		a->fds[a->n_fds++] = dup(f->wake_fd[w]);
	}
}

static void do_query_device(struct answer *a)
{
	struct uroce_device_attr *d = add_body(a, sizeof(*d));

	strcpy(d->fw_ver, "fake");
	d->max_qp = 16;
	d->max_qp_wr = 64;
	d->max_sge = 4;
	d->max_inline = 128;
	d->max_cq = 16;
	d->max_cqe = 1024;
	d->max_mr = d->max_pd = 16;
	d->phys_port_cnt = 1;
}

static void do_query_port(struct answer *a)
{
	struct uroce_port_attr *p = add_body(a, sizeof(*p));

	p->state = 4;
	p->max_mtu = p->active_mtu = 5;
	p->gid_tbl_len = 1;
	p->pkey_tbl_len = 1;
	p->active_speed = 32;
	p->active_width = 2;
	p->link_layer = 2;
}

static void do_create_channel(struct fake *f, struct answer *a)
{
	struct uroce_handle *h = add_body(a, sizeof(*h));

	while (f->channel_fd[h->handle])
		h->handle++;
	f->channel_fd[h->handle++] = add_events(a);
	a->fds[a->n_fds++] = dup(f->channel_fd[h->handle - 1]);
}

static void do_create_cq(struct fake *f, const struct uroce_create_cq *req, struct answer *a)
{
	struct uroce_create_cq_rep *r = add_body(a, sizeof(*r));
	struct fake_cq *cq = f->cq;

	while (cq->is_used)
		cq++;
	r->handle = (uint32_t)(cq - f->cq) + 1;
	for (r->depth = 1; r->depth < req->cqe; r->depth *= 2)
		;
	r->n_subs = FAKE_WORKERS;
	r->sub_off = 64;
	r->sub_stride = sizeof(struct uroce_ring) + r->depth * sizeof(struct uroce_cqe);
	r->size = r->sub_off + r->n_subs * r->sub_stride;
	*cq = (struct fake_cq) { .is_used = true,
				 .channel = req->channel,
				 .token = req->token,
				 .depth = r->depth,
				 .stride = r->sub_stride };
	cq->mem = add_memory(a, r->size);
}

static void do_create_qp(struct fake *f, const struct uroce_create_qp *req, struct answer *a)
{
	struct uroce_create_qp_rep *r = add_body(a, sizeof(*r));
	struct fake_qp *qp = f->qp;

	while (qp->is_used)
		qp++;
	r->handle = (uint32_t)(qp - f->qp) + 1;
	r->slot = 70 + r->handle; /* in the second word of the bitmap */
	r->qpn = 0x100 + r->handle;
	r->worker = 1;
	r->cap = req->cap;
	for (r->sq_depth = 1; r->sq_depth < req->cap.max_send_wr; r->sq_depth *= 2)
		;
	for (r->rq_depth = 1; r->rq_depth < req->cap.max_recv_wr; r->rq_depth *= 2)
		;
	r->sq_stride = 64 + 128;
	r->rq_stride = 16 + 64;
	r->sq_off = sizeof(struct uroce_qp_page);
	r->rq_off = r->sq_off + r->sq_depth * r->sq_stride;
	r->size = r->rq_off + r->rq_depth * r->rq_stride;
	*qp = (struct fake_qp) { .is_used = true, .req = *req, .rep = *r };
	qp->mem = add_memory(a, r->size);
}

static void do_destroy(struct fake *f, uint32_t op, const struct uroce_handle *h, struct answer *a)
{
	struct uroce_destroy_rep *r = add_body(a, sizeof(*r));

	if (op == UROCE_OP_DESTROY_CQ) {
		r->events_sent = f->cq[h->handle - 1].events_sent;
		f->cq[h->handle - 1].is_used = false;
	} else {
		r->events_sent = f->qp[h->handle - 1].events_sent;
		f->qp[h->handle - 1].is_used = false;
	}
}

static void do_reg_mr(struct fake *f, const struct uroce_reg_mr *req, struct answer *a)
{
	struct uroce_reg_mr_rep *r = add_body(a, sizeof(*r));

	f->mr = *req;
	r->handle = 7;
	r->lkey = r->rkey = 0x1234;
}

static void serve(struct fake *f, uint32_t op, const void *body, struct answer *a)
{
	const struct uroce_handle *h = body;

	switch (op) {
	case UROCE_OP_HELLO:
		return do_hello(f, body, a);
	case UROCE_OP_PROBE_MEMORY:
		f->n_probes++;
		a->err = f->probe_err;
		return;
	case UROCE_OP_QUERY_DEVICE:
		return do_query_device(a);
	case UROCE_OP_QUERY_PORT:
		return do_query_port(a);
	case UROCE_OP_CREATE_CHANNEL:
		return do_create_channel(f, a);
	case UROCE_OP_DESTROY_CHANNEL:
		close(f->channel_fd[h->handle - 1]);
		f->channel_fd[h->handle - 1] = 0;
		f->n_channels_gone++;
		return;
	case UROCE_OP_CREATE_CQ:
		return do_create_cq(f, body, a);
	case UROCE_OP_FIRE_CQ:
		f->cq[h->handle - 1].n_fired++;
		return;
	case UROCE_OP_CREATE_QP:
		return do_create_qp(f, body, a);
	case UROCE_OP_MODIFY_QP:
		f->qp[((const struct uroce_modify_qp *)body)->handle - 1].modified =
			*(const struct uroce_modify_qp *)body;
		return;
	case UROCE_OP_QUERY_QP:
		memcpy(add_body(a, sizeof(struct uroce_query_qp_rep)),
		       &f->qp[h->handle - 1].modified.attr, sizeof(struct uroce_query_qp_rep));
		return;
	case UROCE_OP_DESTROY_CQ:
	case UROCE_OP_DESTROY_QP:
		return do_destroy(f, op, h, a);
	case UROCE_OP_REG_MR:
		return do_reg_mr(f, body, a);
	case UROCE_OP_ALLOC_NULL_MR:
		*(struct uroce_reg_mr_rep *)add_body(a, sizeof(struct uroce_reg_mr_rep)) =
			(struct uroce_reg_mr_rep) { .handle = 8, .lkey = 0x4321 };
		return;
	case UROCE_OP_DEREG_MR:
		f->n_mrs_gone++;
		return;
	case UROCE_OP_CREATE_AH:
		f->ah = *(const struct uroce_create_ah *)body;
		*(struct uroce_create_ah_rep *)add_body(a, sizeof(struct uroce_create_ah_rep)) =
			(struct uroce_create_ah_rep) { .handle = 9, .ah = 0x30009 };
		return;
	case UROCE_OP_ALLOC_PD:
		((struct uroce_handle *)add_body(a, sizeof(*h)))->handle = 5;
		return;
	default:
		return;
	}
}

static void answer(int fd, uint32_t op, struct answer *a)
{
	struct uroce_rep head = { .op = op, .err = a->err, .len = a->len, .n_fds = a->n_fds };
	struct iovec iov[2] = { { &head, sizeof(head) }, { a->body, a->len } };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(UROCE_CTRL_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (a->n_fds) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(a->n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(a->n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), a->fds, a->n_fds * sizeof(int));
	}
	MUST(sendmsg(fd, &msg, MSG_NOSIGNAL) > 0);
	for (unsigned i = 0; i < a->n_fds; i++)
		close(a->fds[i]);
}

/* One connection at a time. Ends when stop_fd is written. */
static void *run(void *arg)
{
	struct fake *f = arg;

	for (;;) {
		struct pollfd p[2] = { { .fd = f->stop_fd, .events = POLLIN },
				       { .fd = f->conn_fd < 0 ? f->listen_fd : f->conn_fd,
					 .events = POLLIN } };
		_Alignas(8) uint8_t buf[UROCE_CTRL_MSG_MAX] = { 0 };
		struct answer a = { 0 };
		struct uroce_req req;

		poll(p, 2, -1);
		if (p[0].revents)
			return NULL;
		if (f->conn_fd < 0) {
			f->conn_fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
			continue;
		}
		if (recv(f->conn_fd, buf, sizeof(buf), 0) < (ssize_t)sizeof(req)) {
			close(f->conn_fd);
			f->conn_fd = -1;
			continue;
		}
		memcpy(&req, buf, sizeof(req));
		serve(f, req.op, buf + sizeof(req), &a);
		answer(f->conn_fd, req.op, &a);
	}
}

void fake_start(struct fake *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	strcpy(f->dir, "/tmp/uroce-fake-XXXXXX");
	MUST(mkdtemp(f->dir));
	fake_tree(f->dir);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/control.sock", f->dir);
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	MUST(!bind(f->listen_fd, (struct sockaddr *)&sa, sizeof(sa)) && !listen(f->listen_fd, 4));
	f->conn_fd = -1;
	f->stop_fd = eventfd(0, EFD_CLOEXEC);
	MUST(!pthread_create(&f->thread, NULL, run, f));
}

void fake_die(struct fake *f)
{
	uint64_t one = 1;

	MUST(write(f->stop_fd, &one, sizeof(one)) == sizeof(one));
	pthread_join(f->thread, NULL);
	close(f->listen_fd);
	if (f->conn_fd >= 0)
		close(f->conn_fd);
	if (f->uar)
		close(f->async_fd);
	for (unsigned i = 0; i < FAKE_MAX; i++) {
		if (f->channel_fd[i])
			close(f->channel_fd[i]);
	}
	close(f->stop_fd);
	fake_tree_remove(f->dir);
}

struct uroce_uar_worker *fake_uar(struct fake *f, uint32_t worker)
{
	return (struct uroce_uar_worker *)(f->uar + UROCE_UAR_PAGE * (1 + worker));
}

void fake_complete(struct fake *f, uint32_t cq_handle, uint32_t sub, const struct uroce_cqe *cqe)
{
	struct fake_cq *cq = &f->cq[cq_handle - 1];
	struct uroce_ring *ring = (struct uroce_ring *)(cq->mem + 64 + sub * cq->stride);
	struct uroce_cqe *cqes = (struct uroce_cqe *)(ring + 1);

	cqes[cq->prod[sub]++ & (cq->depth - 1)] = *cqe;
	uroce_ring_publish(ring, cq->prod[sub]);
}

void fake_notify(struct fake *f, uint32_t cq_handle)
{
	struct fake_cq *cq = &f->cq[cq_handle - 1];

	MUST(send(f->channel_fd[cq->channel - 1], &cq->token, 8, MSG_NOSIGNAL) == 8);
	cq->events_sent++;
}

void fake_async(struct fake *f, uint64_t element, uint32_t type)
{
	struct uroce_async_record rec = { .element = element, .type = type };

	for (unsigned i = 0; i < FAKE_MAX; i++) {
		if (f->qp[i].is_used && f->qp[i].req.token == element)
			f->qp[i].events_sent++;
		if (f->cq[i].is_used && f->cq[i].token == element)
			f->cq[i].events_sent++;
	}
	MUST(send(f->async_fd, &rec, sizeof(rec), MSG_NOSIGNAL) == sizeof(rec));
}
