/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/daemon/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/daemon/dispatch.h"
#include "dataplane/daemon/worker.h"
#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"

struct daemon rig;
static uint64_t probe_word = 0x1122334455667788;

void rig_setup(void)
{
	struct link_port *ports[UROCE_MAX_WORKERS] = { 0 };
	char dir[] = "/tmp/uroce-test-XXXXXX";
	int err;

	memset(&fake, 0, sizeof(fake));
	memset(&rig, 0, sizeof(rig));
	fake.deadline = UINT64_MAX;
	log_set_level(LOG_LEVEL_ERROR);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(rundir_open(&rig.dir, dir), 0);
	for (unsigned i = 0; i < RIG_WORKERS; i++) {
		struct worker_conf conf = { .id = i };

		rig.worker[rig.n_workers++] = worker_create(&conf, &err);
		ck_assert_int_eq(err, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct config_device conf = { .link = LINK_SWITCH };
		struct config_error e;
		struct device_net net;

		ck_assert_int_eq(config_device_check(&conf, i, &e), 0);
		ck_assert_int_eq(device_net_make(&net, &conf, i), 0);
		ck_assert_int_eq(device_create(&rig.device[i], &rig, i, &net, ports), 0);
		rig.n_devices++;
	}
}

void rig_teardown(void)
{
	char path[PATH_MAX];

	for (unsigned i = 0; i < DAEMON_MAX_SESSIONS; i++)
		if (rig.session[i])
			session_destroy(rig.session[i]);
	for (unsigned i = 0; i < rig.n_workers; i++)
		worker_destroy(rig.worker[i]);
	for (unsigned i = 0; i < rig.n_devices; i++)
		device_destroy(rig.device[i]);
	strcpy(path, rig.dir.path);
	rundir_close(&rig.dir);
	rmdir(path);
}

void client_connect(struct client *c)
{
	int sv[2];

	memset(c, 0, sizeof(*c));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	c->fd = sv[1];
	ck_assert_int_eq(session_create(&c->s, &rig, sv[0]), 0);
}

/* As the control loop does it. */
static void serve(struct client *c)
{
	if (c->s && !dispatch_serve(c->s)) {
		session_destroy(c->s);
		c->s = NULL;
	}
}

void client_close(struct client *c)
{
	close(c->fd);
	c->fd = -1;
	serve(c);
	ck_assert_ptr_null(c->s);
	client_close_fds(c);
}

void client_close_fds(struct client *c)
{
	for (unsigned i = 0; i < c->n_fds; i++)
		close(c->fds[i]);
	c->n_fds = 0;
}

static void take_fds(struct client *c, struct msghdr *m)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		c->n_fds = (unsigned)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(c->fds, CMSG_DATA(h), c->n_fds * sizeof(int));
	}
}

static ssize_t send_with_fd(struct client *c, const void *msg, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)msg, len };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} ctrl = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (c->fd_out > 0) {
		m.msg_control = ctrl.room;
		m.msg_controllen = sizeof(ctrl.room);
		ctrl.head.cmsg_level = SOL_SOCKET;
		ctrl.head.cmsg_type = SCM_RIGHTS;
		ctrl.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&ctrl.head), &c->fd_out, sizeof(int));
	}
	c->fd_out = 0;
	return sendmsg(c->fd, &m, MSG_NOSIGNAL);
}

bool client_raw(struct client *c, const void *msg, size_t len)
{
	char ctrl[CMSG_SPACE(sizeof(c->fds))];
	struct uroce_rep rep;
	struct iovec iov[2] = { { &rep, sizeof(rep) }, { c->body, sizeof(c->body) } };
	struct msghdr m = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_control = ctrl, .msg_controllen = sizeof(ctrl)
	};
	ssize_t n;

	client_close_fds(c);
	ck_assert_int_eq(send_with_fd(c, msg, len), (ssize_t)len);
	serve(c);
	n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return false;
	ck_assert_uint_ge((size_t)n, sizeof(rep));
	ck_assert_uint_eq(rep.len, (size_t)n - sizeof(rep));
	c->err = rep.err;
	c->len = rep.len;
	take_fds(c, &m);
	ck_assert_uint_eq(c->n_fds, rep.n_fds);
	return true;
}

uint32_t client_request(struct client *c, uint32_t op, const void *body, uint32_t len)
{
	struct {
		struct uroce_req head;
		uint8_t body[UROCE_CTRL_MSG_MAX];
	} q = { { op, len }, { 0 } };

	if (len)
		memcpy(q.body, body, len);
	return client_raw(c, &q, sizeof(q.head) + len) ? c->err : 255;
}

void client_hello(struct client *c)
{
	struct uroce_hello h = { .magic = UROCE_ABI_MAGIC,
				 .version = UROCE_ABI_VERSION,
				 .device = "uroce0",
				 .probe_addr = (uint64_t)(uintptr_t)&probe_word };

	ck_assert_uint_eq(client_request(c, UROCE_OP_HELLO, &h, sizeof(h)), 0);
}

uint32_t client_handle(const struct client *c)
{
	uint32_t h;

	memcpy(&h, c->body, sizeof(h));
	return h;
}

uint32_t client_pd(struct client *c)
{
	ck_assert_uint_eq(client_request(c, UROCE_OP_ALLOC_PD, NULL, 0), 0);
	return client_handle(c);
}

uint32_t client_mr(struct client *c, uint32_t pd, void *addr, uint64_t len)
{
	struct uroce_reg_mr q = { .pd = pd,
				  .access = 15,
				  .addr = (uint64_t)(uintptr_t)addr,
				  .iova = (uint64_t)(uintptr_t)addr,
				  .length = len };

	ck_assert_uint_eq(client_request(c, UROCE_OP_REG_MR, &q, sizeof(q)), 0);
	return client_handle(c);
}

uint32_t client_cq(struct client *c, uint32_t channel)
{
	struct uroce_create_cq q = { .cqe = 100, .channel = channel, .token = 0xc0 };

	ck_assert_uint_eq(client_request(c, UROCE_OP_CREATE_CQ, &q, sizeof(q)), 0);
	return client_handle(c);
}

uint32_t client_qp(struct client *c, uint32_t pd, uint32_t cq)
{
	struct uroce_create_qp q = { .type = UROCE_QPT_RC,
				     .pd = pd,
				     .send_cq = cq,
				     .recv_cq = cq,
				     .cap = { 10, 20, 3, 2, 100 },
				     .token = 0xd0 };

	ck_assert_uint_eq(client_request(c, UROCE_OP_CREATE_QP, &q, sizeof(q)), 0);
	return client_handle(c);
}

uint32_t client_destroy(struct client *c, uint32_t op, uint32_t handle)
{
	struct uroce_handle h = { .handle = handle };

	return client_request(c, op, &h, sizeof(h));
}
