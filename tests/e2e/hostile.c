/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An enemy of the daemon: talks its contract directly and breaks every rule of it. It makes objects
 * as a client does, connects two of its QPs, and then at random posts work requests that are nearly
 * right, scribbles over all memory it shares with the daemon, and sends requests that are nearly
 * right or plain noise. When the daemon shows it the door, it comes back.
 *
 *   hostile SOCKET DEVICE SEED SECONDS
 *
 * Prints "ROUNDS CONNECTIONS" and exits with 0 when the daemon still answered at the end.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/abi/ctrl.h"
#include "dataplane/abi/ring.h"

#define N_QP    2u
#define MAX_FDS 32u
#define BUFFER  (256u << 10)

struct area {
	uint8_t *base;
	size_t size;
};

struct enemy {
	int sock;
	int fd[MAX_FDS];
	unsigned n_fds;
	uint32_t err;
	_Alignas(8) uint8_t body[UROCE_CTRL_MSG_MAX];
	struct area uar, cq, qp[N_QP];
	int event_fd, channel_fd; /* nobody reads the channel */
	struct uroce_create_qp_rep made[N_QP];
	uint32_t prod[N_QP];
	uint32_t pd, lkey, cq_handle;
};

static const char *path, *device;
static uint64_t rng;
static uint8_t buffer[BUFFER];
static uint64_t probe;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 32) % n;
}

/* Numbers that hurt more often than others. */
static uint32_t nasty(void)
{
	static const uint32_t v[] = { 0,          1,          2,         63,    64,
				      255,        256,        4095,      65535, 0x7fffffff,
				      0x80000000, 0xfffffffe, 0xffffffff };

	return rnd(2) ? v[rnd(sizeof(v) / sizeof(v[0]))] : (uint32_t)(rng >> rnd(32));
}

static void close_fds(struct enemy *e)
{
	while (e->n_fds)
		close(e->fd[--e->n_fds]);
}

/* Sends n bytes and takes the reply; false: the daemon closed the connection. */
static bool exchange(struct enemy *e, const void *msg, size_t n)
{
	char ctrl[CMSG_SPACE(MAX_FDS * sizeof(int))];
	struct uroce_rep rep = { 0 };
	struct iovec iov[2] = { { &rep, sizeof(rep) }, { e->body, sizeof(e->body) } };
	struct msghdr m = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_control = ctrl, .msg_controllen = sizeof(ctrl)
	};

	close_fds(e);
	if (send(e->sock, msg, n, MSG_NOSIGNAL) < 0)
		return false;
	if (recvmsg(e->sock, &m, MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(rep))
		return false;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		e->n_fds = (unsigned)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(e->fd, CMSG_DATA(h), e->n_fds * sizeof(int));
	}
	e->err = rep.err;
	return true;
}

static bool request(struct enemy *e, uint32_t op, const void *body, uint32_t len)
{
	struct {
		struct uroce_req head;
		uint8_t body[UROCE_CTRL_MSG_MAX];
	} q = { { op, len }, { 0 } };

	if (len)
		memcpy(q.body, body, len);
	return exchange(e, &q, sizeof(q.head) + len) && !e->err;
}

static bool map_fd(struct area *a, int fd, size_t size)
{
	a->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	a->size = size;
	return a->base != MAP_FAILED;
}

static void unmap(struct area *a)
{
	if (a->base && a->base != MAP_FAILED)
		munmap(a->base, a->size);
	a->base = NULL;
}

static bool hello(struct enemy *e)
{
	struct uroce_hello h = { .magic = UROCE_ABI_MAGIC,
				 .version = UROCE_ABI_VERSION,
				 .probe_addr = (uint64_t)(uintptr_t)&probe };

	strncpy(h.device, device, sizeof(h.device) - 1);
	if (!request(e, UROCE_OP_HELLO, &h, sizeof(h)) || e->n_fds < 3)
		return false;
	e->event_fd = dup(e->fd[2]);
	return map_fd(&e->uar, e->fd[0], ((struct uroce_hello_rep *)e->body)->uar_size);
}

static bool make_objects(struct enemy *e)
{
	struct uroce_reg_mr mr = { .access = 15,
				   .addr = (uint64_t)(uintptr_t)buffer,
				   .iova = (uint64_t)(uintptr_t)buffer,
				   .length = sizeof(buffer) };
	struct uroce_create_cq cq = { .cqe = 64 };
	struct uroce_create_qp qp = { .type = 2, .cap = { 64, 64, 4, 4, 128 } };

	if (!request(e, UROCE_OP_ALLOC_PD, NULL, 0))
		return false;
	e->pd = qp.pd = mr.pd = ((struct uroce_handle *)e->body)->handle;
	if (!request(e, UROCE_OP_REG_MR, &mr, sizeof(mr)))
		return false;
	e->lkey = ((struct uroce_reg_mr_rep *)e->body)->lkey;
	if (!request(e, UROCE_OP_CREATE_CHANNEL, NULL, 0))
		return false;
	cq.channel = ((struct uroce_handle *)e->body)->handle;
	e->channel_fd = dup(e->fd[0]);
	if (!request(e, UROCE_OP_CREATE_CQ, &cq, sizeof(cq)))
		return false;
	e->cq_handle = ((struct uroce_create_cq_rep *)e->body)->handle;
	qp.send_cq = qp.recv_cq = e->cq_handle;
	if (!map_fd(&e->cq, e->fd[0], ((struct uroce_create_cq_rep *)e->body)->size))
		return false;
	for (unsigned i = 0; i < N_QP; i++) {
		if (!request(e, UROCE_OP_CREATE_QP, &qp, sizeof(qp)))
			return false;
		memcpy(&e->made[i], e->body, sizeof(e->made[i]));
		if (!map_fd(&e->qp[i], e->fd[0], e->made[i].size))
			return false;
	}
	return true;
}

/* The masks that ibv_rc_pingpong gives. GID 1 of uroceN is ::ffff:198.18.0.(N + 1). */
static bool connect_qp(struct enemy *e, unsigned i)
{
	struct uroce_modify_qp m = { .handle = e->made[i].handle };
	struct uroce_qp_attr *a = &m.attr;

	a->qp_state = 1;
	a->port_num = 1;
	a->access = 15;
	m.mask = 1 | 1 << 3 | 1 << 4 | 1 << 5;
	if (!request(e, UROCE_OP_MODIFY_QP, &m, sizeof(m)))
		return false;
	a->qp_state = 2;
	a->path_mtu = 1 + rnd(5);
	a->dest_qp_num = e->made[(i + 1) % N_QP].qpn;
	a->max_dest_rd_atomic = 4;
	a->min_rnr_timer = 1;
	a->ah = (struct uroce_ah_attr) { .is_global = 1, .port_num = 1, .sgid_index = 1 };
	memcpy(a->ah.dgid + 10, "\xff\xff\xc6\x12\x00", 5);
	a->ah.dgid[15] = (uint8_t)(atoi(device + strlen(device) - 1) + 1);
	m.mask = 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20;
	if (!request(e, UROCE_OP_MODIFY_QP, &m, sizeof(m)))
		return false;
	a->qp_state = 3;
	a->timeout = 1;
	a->retry_cnt = a->rnr_retry = 1;
	a->max_rd_atomic = 4;
	m.mask = 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16;
	return request(e, UROCE_OP_MODIFY_QP, &m, sizeof(m));
}

static void leave(struct enemy *e)
{
	close_fds(e);
	if (e->event_fd > 0)
		close(e->event_fd);
	if (e->channel_fd > 0)
		close(e->channel_fd);
	unmap(&e->uar);
	unmap(&e->cq);
	for (unsigned i = 0; i < N_QP; i++)
		unmap(&e->qp[i]);
	if (e->sock >= 0)
		close(e->sock);
}

static bool enter(struct enemy *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memset(e, 0, sizeof(*e));
	e->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	if (connect(e->sock, (struct sockaddr *)&addr, sizeof(addr)) || !hello(e) ||
	    !make_objects(e))
		return false;
	for (unsigned i = 0; i < N_QP; i++)
		if (!connect_qp(e, i))
			return false;
	return true;
}

static void doorbell(struct enemy *e, unsigned i)
{
	struct uroce_uar_worker *u =
		(void *)(e->uar.base + UROCE_UAR_PAGE * (1 + (size_t)e->made[i].worker));
	static const uint64_t one = 1;

	if (uroce_uar_ring(u, e->made[i].slot) && write(e->event_fd, &one, 8) < 0)
		return;
}

static void fill_wqe(const struct enemy *e, unsigned i, uint8_t *slot)
{
	struct uroce_wqe w = { .wr_id = nasty(), .flags = UROCE_WQE_SIGNALED, .num_sge = 1 };
	struct uroce_sge sge = { (uint64_t)(uintptr_t)buffer + rnd(BUFFER / 2), rnd(BUFFER / 2),
				 e->lkey };

	w.opcode = (uint8_t)rnd(17);
	w.rkey = e->lkey;
	w.remote_addr = (uint64_t)(uintptr_t)buffer + rnd(BUFFER / 2) * (rnd(2) ? 1 : 8);
	if (!rnd(4)) {
		w.flags |= UROCE_WQE_INLINE;
		w.inline_len = rnd(4) ? rnd(128) : nasty();
	}
	switch (rnd(12)) {
	case 0:
		w.num_sge = (uint16_t)nasty();
		break;
	case 1:
		w.rkey = nasty();
		break;
	case 2:
		w.remote_addr = (uint64_t)nasty() << 32 | nasty();
		break;
	case 3:
		sge.length = nasty();
		break;
	case 4:
		sge.addr = (uint64_t)nasty() << 32 | nasty();
		break;
	case 5:
		w.flags = (uint8_t)nasty();
		break;
	case 6:
		sge.lkey = nasty();
		break;
	}
	memcpy(slot, &w, sizeof(w));
	memcpy(slot + sizeof(w), &sge,
	       e->made[i].sq_stride >= sizeof(w) + sizeof(sge) ? sizeof(sge) : 0);
}

static void post(struct enemy *e)
{
	unsigned i = rnd(N_QP);
	const struct uroce_create_qp_rep *m = &e->made[i];
	struct uroce_qp_page *page = (void *)e->qp[i].base;
	struct uroce_rqe *rqe;

	rqe = (void *)(e->qp[i].base + m->rq_off + (size_t)rnd(m->rq_depth) * m->rq_stride);
	*rqe = (struct uroce_rqe) { .wr_id = 1, .num_sge = rnd(8) ? rnd(5) : nasty() };
	*(struct uroce_sge *)(rqe + 1) =
		(struct uroce_sge) { (uint64_t)(uintptr_t)buffer, rnd(BUFFER), e->lkey };
	uroce_ring_publish(&page->rq, page->rq.prod + rnd(8));
	fill_wqe(e, i,
		 e->qp[i].base + m->sq_off +
			 (size_t)(e->prod[i] & (m->sq_depth - 1)) * m->sq_stride);
	uroce_ring_publish(&page->sq, ++e->prod[i]);
	uroce_cq_arm((struct uroce_cq_page *)e->cq.base, UROCE_ARM_ANY);
	/* Make room in the CQ without looking at it. */
	for (uint32_t off = 64; off + 128 < e->cq.size; off += 128 + 64 * 64) {
		struct uroce_ring *r = (void *)(e->cq.base + off);

		uroce_ring_consume(r, r->prod);
	}
	doorbell(e, i);
}

static void scribble(struct enemy *e)
{
	struct area *a[] = { &e->uar, &e->cq, &e->qp[0], &e->qp[1] };
	struct area *t = a[rnd(4)];

	for (unsigned n = rnd(64); n--;) {
		size_t head = t->size < 512 || rnd(2) ? t->size : 512;

		*(uint32_t *)(t->base + rnd((uint32_t)head / 4) * 4) = nasty();
	}
	doorbell(e, rnd(N_QP));
}

/* Requests, by the length that their body should have; what is not here is short. */
static const uint16_t body_len[64] = {
	[UROCE_OP_REG_MR] = sizeof(struct uroce_reg_mr),
	[UROCE_OP_CREATE_CQ] = sizeof(struct uroce_create_cq),
	[UROCE_OP_CREATE_QP] = sizeof(struct uroce_create_qp),
	[UROCE_OP_MODIFY_QP] = sizeof(struct uroce_modify_qp),
	[UROCE_OP_CREATE_AH] = sizeof(struct uroce_create_ah),
	[UROCE_OP_CREATE_SRQ] = sizeof(struct uroce_create_srq),
	[UROCE_OP_MODIFY_SRQ] = sizeof(struct uroce_srq_attr),
	[UROCE_OP_ATTACH_MCAST] = sizeof(struct uroce_mcast),
	[UROCE_OP_DETACH_MCAST] = sizeof(struct uroce_mcast),
	[UROCE_OP_REREG_MR] = sizeof(struct uroce_rereg_mr),
	[UROCE_OP_CREATE_XRCD] = sizeof(struct uroce_create_xrcd),
	[UROCE_OP_OPEN_QP] = sizeof(struct uroce_open_qp),
};

/* A request of a known kind: of the right length more often than not, with numbers that mean much.
 */
static bool noise(struct enemy *e)
{
	struct {
		struct uroce_req head;
		uint32_t body[64];
	} q;
	const uint32_t known[16] = { e->pd,
				     e->cq_handle,
				     e->made[0].handle,
				     e->made[1].handle,
				     e->made[0].qpn,
				     e->lkey,
				     1,
				     2,
				     3,
				     4,
				     9,
				     10,
				     15,
				     16,
				     64,
				     128 };

	q.head.op = rnd(16) ? 2 + rnd(40) : nasty();
	q.head.len = q.head.op < 64 && body_len[q.head.op] ? body_len[q.head.op] : rnd(2) * 8;
	if (!rnd(16))
		q.head.len = nasty();
	for (unsigned i = 0; i < 64; i++)
		q.body[i] = rnd(8) ? known[rnd(16)] : nasty();
	return exchange(e, &q, rnd(64) ? sizeof(q.head) + q.head.len % sizeof(q.body) : rnd(200));
}

static uint64_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

int main(int argc, char **argv)
{
	unsigned long rounds = 0, connections = 0;
	struct enemy e;
	uint64_t end;

	if (argc != 5)
		return 2;
	path = argv[1];
	device = argv[2];
	rng = strtoull(argv[3], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
	for (end = seconds() + strtoul(argv[4], NULL, 0); seconds() < end;) {
		bool is_in = enter(&e);

		if (!is_in && e.sock >= 0 && !e.uar.base) {
			fprintf(stderr, "hostile: the daemon does not answer: %s\n",
				strerror(e.err ? (int)e.err : errno));
			return 1;
		}
		connections++;
		for (unsigned n = 20 + rnd(400); is_in && n; n--, rounds++) {
			if (rnd(5))
				post(&e);
			else if (rnd(3))
				scribble(&e);
			else
				is_in = noise(&e);
		}
		leave(&e);
	}
	printf("%lu %lu\n", rounds, connections);
	return 0;
}
