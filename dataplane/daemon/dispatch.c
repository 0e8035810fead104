/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/dispatch.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/daemon/admin.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/hello.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/daemon/session.h"

#define ANY_LENGTH UINT32_MAX /* text, which the handler gets with a NUL behind it */
#define MAX_FDS_IN 1u

/* A request as it came in. */
struct request {
	struct uroce_req head;
	_Alignas(8) uint8_t body[UROCE_CTRL_MSG_MAX - sizeof(struct uroce_req)];
	uint8_t nul;
};

static const struct {
	enum session_role role; /* who may ask */
	uint32_t len;           /* of the body, exactly */
	request_fn *fn;
} table[] = {
	/* clang-format off */
	[UROCE_OP_HELLO]           = { SESSION_NEW,    sizeof(struct uroce_hello),      request_hello },
	[UROCE_OP_QUERY_DEVICE]    = { SESSION_CLIENT, 0,                               request_query_device },
	[UROCE_OP_QUERY_PORT]      = { SESSION_CLIENT, 0,                               request_query_port },
	[UROCE_OP_ALLOC_PD]        = { SESSION_CLIENT, 0,                               request_alloc_pd },
	[UROCE_OP_FREE_PD]         = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_free_pd },
	[UROCE_OP_REG_MR]          = { SESSION_CLIENT, sizeof(struct uroce_reg_mr),     request_reg_mr },
	[UROCE_OP_DEREG_MR]        = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_dereg_mr },
	[UROCE_OP_CREATE_CHANNEL]  = { SESSION_CLIENT, 0,                               request_create_channel },
	[UROCE_OP_DESTROY_CHANNEL] = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_destroy_channel },
	[UROCE_OP_CREATE_CQ]       = { SESSION_CLIENT, sizeof(struct uroce_create_cq),  request_create_cq },
	[UROCE_OP_DESTROY_CQ]      = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_destroy_cq },
	[UROCE_OP_CREATE_QP]       = { SESSION_CLIENT, sizeof(struct uroce_create_qp),  request_create_qp },
	[UROCE_OP_MODIFY_QP]       = { SESSION_CLIENT, sizeof(struct uroce_modify_qp),  request_modify_qp },
	[UROCE_OP_QUERY_QP]        = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_query_qp },
	[UROCE_OP_DESTROY_QP]      = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_destroy_qp },
	[UROCE_OP_CREATE_AH]       = { SESSION_CLIENT, sizeof(struct uroce_create_ah),  request_create_ah },
	[UROCE_OP_DESTROY_AH]      = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_destroy_ah },
	[UROCE_OP_CREATE_SRQ]      = { SESSION_CLIENT, sizeof(struct uroce_create_srq), request_create_srq },
	[UROCE_OP_MODIFY_SRQ]      = { SESSION_CLIENT, sizeof(struct uroce_srq_attr),   request_modify_srq },
	[UROCE_OP_QUERY_SRQ]       = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_query_srq },
	[UROCE_OP_RESIZE_SRQ]      = { SESSION_CLIENT, sizeof(struct uroce_resize_srq), request_resize_srq },
	[UROCE_OP_DESTROY_SRQ]     = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_destroy_srq },
	[UROCE_OP_ATTACH_MCAST]    = { SESSION_CLIENT, sizeof(struct uroce_mcast),      request_attach_mcast },
	[UROCE_OP_DETACH_MCAST]    = { SESSION_CLIENT, sizeof(struct uroce_mcast),      request_detach_mcast },
	[UROCE_OP_CREATE_XRCD]     = { SESSION_CLIENT, sizeof(struct uroce_create_xrcd), request_create_xrcd },
	[UROCE_OP_DESTROY_XRCD]    = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_destroy_xrcd },
	[UROCE_OP_OPEN_QP]         = { SESSION_CLIENT, sizeof(struct uroce_open_qp),    request_open_qp },
	[UROCE_OP_RESIZE_CQ]       = { SESSION_CLIENT, sizeof(struct uroce_resize_cq),  request_resize_cq },
	[UROCE_OP_FIRE_CQ]         = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_fire_cq },
	[UROCE_OP_REREG_MR]        = { SESSION_CLIENT, sizeof(struct uroce_rereg_mr),   request_rereg_mr },
	[UROCE_OP_ALLOC_MW]        = { SESSION_CLIENT, sizeof(struct uroce_alloc_mw),   request_alloc_mw },
	[UROCE_OP_FREE_MW]         = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_free_mw },
	[UROCE_OP_PROBE_MEMORY]    = { SESSION_CLIENT, 0,                               request_probe_memory },
	[UROCE_OP_ALLOC_NULL_MR]   = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_alloc_null_mr },
	[UROCE_OP_IMPORT_PD]       = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_import_pd },
	[UROCE_OP_IMPORT_MR]       = { SESSION_CLIENT, sizeof(struct uroce_import_mr),  request_import_mr },
	[UROCE_OP_SHARE_DM]        = { SESSION_CLIENT, sizeof(struct uroce_share_dm),   request_share_dm },
	[UROCE_OP_UNSHARE_DM]      = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_unshare_dm },
	[UROCE_OP_IMPORT_DM]       = { SESSION_CLIENT, sizeof(struct uroce_handle),     request_import_dm },
	[UROCE_OP_ADMIN_HELLO]     = { SESSION_NEW,    sizeof(struct uroce_hello),      request_admin_hello },
	[UROCE_OP_ADMIN_STATUS]    = { SESSION_ADMIN,  0,                               request_admin_status },
	[UROCE_OP_ADMIN_STOP]      = { SESSION_ADMIN,  0,                               request_admin_stop },
	[UROCE_OP_ADMIN_FAULT]     = { SESSION_ADMIN,  ANY_LENGTH,                      request_admin_fault },
	[UROCE_OP_ADMIN_DEVICE]    = { SESSION_ADMIN,  ANY_LENGTH,                      request_admin_device },
	/* clang-format on */
};
#define N_OPS (sizeof(table) / sizeof(table[0]))

void *reply_body(struct reply *r, uint32_t len)
{
	memset(r->body, 0, len);
	r->len = len;
	return r->body;
}

static void add_fd(struct reply *r, int fd, bool is_ours)
{
	r->fd[r->n_fds] = fd;
	r->is_ours[r->n_fds++] = is_ours;
}

void reply_lend(struct reply *r, int fd)
{
	add_fd(r, fd, true);
}

void reply_give(struct reply *r, int fd)
{
	add_fd(r, fd, false);
}

static void drop_received(struct session *s)
{
	if (s->fd_in >= 0)
		close(s->fd_in);
	s->fd_in = -1;
}

/* The first descriptor is for the request, which may keep it; there should be no other. */
static void take_received(struct session *s, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (unsigned i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (s->fd_in < 0)
				s->fd_in = fd;
			else
				close(fd);
		}
	}
}

/* 1: a request is there; 0: nothing now; negative: the connection is of no more use. */
static int receive(struct session *s, struct request *q)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(MAX_FDS_IN * sizeof(int))];
	} ctrl;
	struct iovec iov = { q, offsetof(struct request, nul) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctrl.room,
			    .msg_controllen = sizeof(ctrl.room) };
	ssize_t n = recvmsg(s->sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	take_received(s, &m);
	if (n == 0)
		return -ECONNRESET;
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || (size_t)n < sizeof(q->head) ||
	    q->head.len != (size_t)n - sizeof(q->head))
		return -EBADMSG;
	return 1;
}

/* Of a device that was removed only these are left. */
static bool is_take_down(uint32_t op)
{
	switch (op) {
	case UROCE_OP_FREE_PD:
	case UROCE_OP_DEREG_MR:
	case UROCE_OP_DESTROY_CHANNEL:
	case UROCE_OP_DESTROY_CQ:
	case UROCE_OP_DESTROY_QP:
	case UROCE_OP_DESTROY_AH:
	case UROCE_OP_DESTROY_SRQ:
	case UROCE_OP_DETACH_MCAST:
	case UROCE_OP_FREE_MW:
	case UROCE_OP_DESTROY_XRCD:
	case UROCE_OP_UNSHARE_DM:
		return true;
	default:
		return false;
	}
}

static int run(struct session *s, struct request *q, struct reply *r)
{
	if (q->head.op >= N_OPS || !table[q->head.op].fn)
		return -EOPNOTSUPP;
	if (table[q->head.op].role != s->role)
		return -EPERM;
	if (table[q->head.op].len != ANY_LENGTH && table[q->head.op].len != q->head.len)
		return -EINVAL;
	if (s->role == SESSION_CLIENT && s->dev->is_gone && !is_take_down(q->head.op))
		return -EIO;
	q->body[q->head.len] = 0;
	return table[q->head.op].fn(s, q->body, r);
}

static int answer(struct session *s, const struct uroce_rep *head, struct reply *r)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(UROCE_CTRL_FDS_MAX * sizeof(int))];
	} ctrl = { 0 };
	struct iovec iov[2] = { { (void *)head, sizeof(*head) }, { r->body, r->len } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	int err = 0;

	if (r->n_fds) {
		struct cmsghdr *c = &ctrl.align;

		m.msg_control = ctrl.room;
		m.msg_controllen = CMSG_SPACE(r->n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(r->n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), r->fd, r->n_fds * sizeof(int));
	}
	/* A client that does not read its replies has no more use for us. */
	if (sendmsg(s->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		err = -errno;
	for (uint32_t i = 0; i < r->n_fds; i++)
		if (!r->is_ours[i])
			close(r->fd[i]);
	return err;
}

bool dispatch_serve(struct session *s)
{
	static struct request q;
	static struct reply r;
	struct uroce_rep head;
	int err = receive(s, &q);

	if (err <= 0) {
		drop_received(s);
		if (err == -EBADMSG)
			log_info("client pid %d (%s): malformed message", (int)s->pid, s->comm);
		return err == 0;
	}
	r.len = r.n_fds = 0;
	err = run(s, &q, &r);
	drop_received(s);
	/* EPROTO is said by HELLO only, which tells both versions also when they differ. */
	if (err && err != -EPROTO)
		r.len = 0;
	head = (struct uroce_rep){ q.head.op, (uint32_t)-err, r.len, r.n_fds };
	log_debug("client %u: request %u: %s", s->id, q.head.op, err ? strerror(-err) : "ok");
	return answer(s, &head, &r) == 0;
}
