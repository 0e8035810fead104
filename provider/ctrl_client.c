/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/ctrl_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A path too long for a socket address is reached through its folder's descriptor. */
static int address(struct sockaddr_un *sa, const char *path, int *dir_fd)
{
	char copy[PATH_MAX], *slash;

	*dir_fd = -1;
	sa->sun_family = AF_UNIX;
	if (strlen(path) < sizeof(sa->sun_path)) {
		strcpy(sa->sun_path, path);
		return 0;
	}
	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return ENAMETOOLONG;
	slash = strrchr(copy, '/');
	if (!slash)
		return ENAMETOOLONG;
	*slash = 0;
	*dir_fd = open(copy, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir_fd < 0)
		return errno;
	if (snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%.80s", *dir_fd,
		     slash + 1) < (int)sizeof(sa->sun_path))
		return 0;
	close(*dir_fd);
	return ENAMETOOLONG;
}

int uroce_ctrl_connect(struct uroce_ctrl *ctrl, const char *path)
{
	struct sockaddr_un sa = { 0 };
	int dir_fd, err;

	err = address(&sa, path, &dir_fd);
	if (err)
		return err;
	ctrl->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ctrl->fd < 0) {
		err = errno;
	} else if (connect(ctrl->fd, (struct sockaddr *)&sa, sizeof(sa))) {
		err = errno;
		close(ctrl->fd);
	}
	if (dir_fd >= 0)
		close(dir_fd);
	if (err)
		return err;
	ctrl->owner = getpid();
	pthread_mutex_init(&ctrl->lock, NULL);
	atomic_store(&ctrl->is_broken, false);
	return 0;
}

void uroce_ctrl_close(struct uroce_ctrl *ctrl)
{
	if (uroce_ctrl_is_ours(ctrl))
		close(ctrl->fd);
	ctrl->fd = -1;
	pthread_mutex_destroy(&ctrl->lock);
}

bool uroce_ctrl_is_ours(const struct uroce_ctrl *ctrl)
{
	return ctrl->owner == getpid();
}

bool uroce_ctrl_is_hung_up(struct uroce_ctrl *ctrl)
{
	struct pollfd p = { .fd = ctrl->fd };

	if (atomic_load(&ctrl->is_broken))
		return true;
	if (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLERR | POLLNVAL)))
		return false;
	atomic_store(&ctrl->is_broken, true);
	return true;
}

static int send_request(struct uroce_ctrl *ctrl, const struct uroce_ctrl_msg *m)
{
	struct uroce_req head = { .op = m->op, .len = m->len };
	struct iovec iov[2] = { { &head, sizeof(head) }, { (void *)(uintptr_t)m->body, m->len } };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	if (m->send_fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &m->send_fd, sizeof(int));
	}
	do
		n = sendmsg(ctrl->fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)(sizeof(head) + m->len) ? 0 : EIO;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int await_reply(int fd)
{
	int64_t end = now_ms() + UROCE_CTRL_TIMEOUT_MS;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		int64_t left = end - now_ms();
		int n = poll(&p, 1, left > 0 ? (int)left : 0);

		if (n > 0)
			return 0;
		if (n == 0)
			return ETIMEDOUT;
		if (errno != EINTR)
			return EIO;
	}
}

/* Take the descriptors of a message; those there is no room for are closed. */
static void take_fds(struct msghdr *msg, struct uroce_ctrl_msg *m)
{
	m->n_fds = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (m->n_fds < m->max_fds)
				m->fds[m->n_fds++] = fd;
			else
				close(fd);
		}
	}
}

static void drop_fds(struct uroce_ctrl_msg *m)
{
	for (unsigned i = 0; i < m->n_fds; i++)
		close(m->fds[i]);
	m->n_fds = 0;
}

/* EIO: the stream is of no use any more. *verdict: what the daemon said. */
static int receive_reply(struct uroce_ctrl *ctrl, struct uroce_ctrl_msg *m, int *verdict)
{
	struct uroce_rep head = { 0 };
	uint8_t body[UROCE_CTRL_MSG_MAX];
	struct iovec iov[2] = { { &head, sizeof(head) }, { body, sizeof(body) } };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(UROCE_CTRL_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	ssize_t n;

	do
		n = recvmsg(ctrl->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return EIO;
	take_fds(&msg, m);
	if (n < (ssize_t)sizeof(head) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    head.op != m->op || head.len != (size_t)n - sizeof(head)) {
		drop_fds(m);
		return EIO;
	}
	if (m->rep)
		memcpy(m->rep, body, head.len < m->rep_size ? head.len : m->rep_size);
	*verdict = (int)head.err;
	if (head.err)
		drop_fds(m);
	return 0;
}

int uroce_ctrl_call(struct uroce_ctrl *ctrl, struct uroce_ctrl_msg *m)
{
	int err = EIO, verdict = 0;

	m->n_fds = 0;
	if (m->rep)
		memset(m->rep, 0, m->rep_size);
	if (!uroce_ctrl_is_ours(ctrl))
		return EPERM;
	pthread_mutex_lock(&ctrl->lock);
	if (!atomic_load(&ctrl->is_broken)) {
		err = send_request(ctrl, m);
		if (!err)
			err = await_reply(ctrl->fd);
		if (!err)
			err = receive_reply(ctrl, m, &verdict);
		if (err)
			atomic_store(&ctrl->is_broken, true);
	}
	pthread_mutex_unlock(&ctrl->lock);
	return err ? err : verdict;
}
