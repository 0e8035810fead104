/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_S 10
#define TEXT_MAX         (256u << 20)

/* A path that does not fit sun_path is reached through a descriptor of its directory. */
static int fill_address(struct sockaddr_un *sun, const char *run_dir, int *dir)
{
	*sun = (struct sockaddr_un) { .sun_family = AF_UNIX };
	*dir = -1;
	if ((size_t)snprintf(sun->sun_path, sizeof(sun->sun_path), "%s/control.sock", run_dir) <
	    sizeof(sun->sun_path))
		return 0;
	*dir = open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir < 0)
		return -errno;
	snprintf(sun->sun_path, sizeof(sun->sun_path), "/proc/self/fd/%d/control.sock", *dir);
	return 0;
}

int client_open(struct client *c, const char *run_dir)
{
	struct timeval patience = { .tv_sec = ANSWER_TIMEOUT_S };
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	struct sockaddr_un sun;
	int dir, err;

	*c = (struct client) { .fd = -1 };
	err = fill_address(&sun, run_dir, &dir);
	if (err)
		return err;
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		err = -errno;
	if (!err) {
		setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		if (connect(c->fd, (struct sockaddr *)&sun, sizeof(sun)))
			err = -errno;
	}
	if (dir >= 0)
		close(dir);
	if (err) {
		client_close(c);
		return err;
	}
	if (!getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		c->daemon_pid = peer.pid;
	return 0;
}

int client_connect(struct client *c, const char *run_dir)
{
	struct uroce_hello hello = { .magic = UROCE_ABI_MAGIC, .version = UROCE_ABI_VERSION };
	int err = client_open(c, run_dir);

	if (err)
		return err;
	hello.client_pid = (uint32_t)getpid();
	err = client_call(c, UROCE_OP_ADMIN_HELLO, &hello, sizeof(hello), &c->hello,
			  sizeof(c->hello), NULL);
	if (!err && (c->hello.magic != UROCE_ABI_MAGIC || c->hello.version != UROCE_ABI_VERSION))
		err = -EPROTO;
	if (err)
		client_close(c);
	return err;
}

static void take_fds(struct msghdr *msg, int *fd)
{
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(msg); cm; cm = CMSG_NXTHDR(msg, cm)) {
		int n = (int)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		const unsigned char *at = CMSG_DATA(cm);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < n; i++) {
			int got;

			memcpy(&got, at + (size_t)i * sizeof(int), sizeof(got));
			if (fd && *fd < 0)
				*fd = got;
			else
				close(got);
		}
	}
}

static int receive(struct client *c, uint32_t op, void *rep, uint32_t rep_size, int *fd)
{
	char body[UROCE_CTRL_MSG_MAX], control[CMSG_SPACE(UROCE_CTRL_FDS_MAX * sizeof(int))];
	struct uroce_rep head;
	struct iovec iov[2] = { { &head, sizeof(head) }, { body, sizeof(body) } };
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_fds(&msg, fd);
	if (!n)
		return -ECONNRESET;
	if ((size_t)n < sizeof(head) || head.op != op || head.len > (size_t)n - sizeof(head))
		return -EPROTO;
	if (rep)
		memcpy(rep, body, head.len < rep_size ? head.len : rep_size);
	return -(int)head.err;
}

int client_call(struct client *c, uint32_t op, const void *body, uint32_t len, void *rep,
		uint32_t rep_size, int *fd)
{
	struct uroce_req head = { .op = op, .len = len };
	struct iovec iov[2] = { { &head, sizeof(head) }, { (void *)body, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };

	if (fd)
		*fd = -1;
	if (sendmsg(c->fd, &msg, MSG_NOSIGNAL) < 0)
		return -errno;
	return receive(c, op, rep, rep_size, fd);
}

static int read_text(int fd, char **text)
{
	struct stat st;
	size_t have = 0;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size < 0 || st.st_size > TEXT_MAX)
		return -EPROTO;
	*text = calloc(1, (size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	while (have < (size_t)st.st_size) {
		ssize_t n = pread(fd, *text + have, (size_t)st.st_size - have, (off_t)have);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	return 0;
}

int client_text(struct client *c, uint32_t op, const char *body, char **text)
{
	int fd = -1, err;

	*text = NULL;
	err = client_call(c, op, body, body ? (uint32_t)strlen(body) : 0, NULL, 0, &fd);
	if (fd >= 0) {
		int text_err = read_text(fd, text);

		close(fd);
		return err ? err : text_err;
	}
	return err ? err : -EPROTO;
}

void client_close(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
