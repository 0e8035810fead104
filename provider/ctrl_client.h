/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket as its client sees it: one request, one reply, in order. A call that fails for
 * another reason than the daemon's verdict (closed, late, malformed) ends the connection for good.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/abi/ctrl.h"

#define UROCE_CTRL_TIMEOUT_MS 10000

struct uroce_ctrl {
	int fd;
	pid_t owner; /* the process that connected; a fork's child must not talk here */
	pthread_mutex_t lock;
	atomic_bool is_broken;
};

struct uroce_ctrl_msg {
	uint32_t op;
	const void *body;
	uint32_t len;
	int send_fd;        /* -1: none */
	void *rep;          /* filled up to rep_size, zero behind what came */
	uint32_t rep_size;
	int *fds; /* descriptors of the reply: max_fds in, n_fds out; the caller's to close */
	unsigned max_fds, n_fds;
};

/* 0, or a positive errno with nothing left open. */
int uroce_ctrl_connect(struct uroce_ctrl *ctrl, const char *path);
void uroce_ctrl_close(struct uroce_ctrl *ctrl);

/* 0, or a positive errno: the daemon's, EIO when the connection is gone, EPERM in a fork's child.
 */
int uroce_ctrl_call(struct uroce_ctrl *ctrl, struct uroce_ctrl_msg *msg);

/* Has the daemon closed the connection? A system call, never blocks. */
bool uroce_ctrl_is_hung_up(struct uroce_ctrl *ctrl);

/* Are we the process that connected? */
bool uroce_ctrl_is_ours(const struct uroce_ctrl *ctrl);
