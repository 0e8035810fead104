/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection to the daemon's control socket, as the `uroce` command uses it. */
#pragma once

#include "dataplane/abi/ctrl.h"

#include <sys/types.h>

struct client {
	int fd;
	pid_t daemon_pid; /* who made the socket, as the kernel says; 0: not visible from here */
	struct uroce_hello_rep hello;
};

/* Connects only. 0, or a negative errno; c->fd is then closed. */
int client_open(struct client *c, const char *run_dir);

/*
 * Connects and says ADMIN_HELLO. 0, or a negative errno: -ENOENT and -ECONNREFUSED mean that no
 * daemon runs there, -EPROTO that one of another version does (c->daemon_pid is then set).
 */
int client_connect(struct client *c, const char *run_dir);

/*
 * One request, one reply. The reply's body goes to rep (at most rep_size bytes); its first file
 * descriptor to *fd, if fd is given, others are closed. 0, or a negative errno: the daemon's, or
 * that of the socket.
 */
int client_call(struct client *c, uint32_t op, const void *body, uint32_t len, void *rep,
		uint32_t rep_size, int *fd);

/* A request whose reply is text in a memfd: *text is to be freed by the caller. */
int client_text(struct client *c, uint32_t op, const char *body, char **text);

void client_close(struct client *c);
