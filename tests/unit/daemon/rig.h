/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's real control plane in this process, on fake engines, with workers that have no
 * thread. The test is the client, at the other end of a real socket.
 */
#pragma once

#include <stdbool.h>

#include "dataplane/abi/ctrl.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/daemon/session.h"

#define RIG_WORKERS 2u

extern struct daemon rig;

void rig_setup(void); /* two workers, two devices, a run directory of its own */
void rig_teardown(void);

/* A connection: the daemon's session and our end. */
struct client {
	struct session *s; /* NULL once the daemon gave it up */
	int fd;
	uint32_t err; /* of the last reply */
	uint32_t len;
	int fds[UROCE_CTRL_FDS_MAX];
	unsigned n_fds;
	int fd_out; /* goes with the next message, if above 0 */
	_Alignas(8) uint8_t body[UROCE_CTRL_MSG_MAX];
};

void client_connect(struct client *c);
void client_close(struct client *c); /* as a process that exits */

/* One message as it is; the daemon serves it. True: a reply came (in err, len, body, fds). */
bool client_raw(struct client *c, const void *msg, size_t len);
/* A well-formed request. The error of the reply; 255 when there was none. */
uint32_t client_request(struct client *c, uint32_t op, const void *body, uint32_t len);
void client_close_fds(struct client *c);

/* HELLO to uroce0. */
void client_hello(struct client *c);

/* Objects, each made by the request; the handle. */
uint32_t client_pd(struct client *c);
uint32_t client_mr(struct client *c, uint32_t pd, void *addr, uint64_t len);
uint32_t client_cq(struct client *c, uint32_t channel);
uint32_t client_qp(struct client *c, uint32_t pd, uint32_t cq);
uint32_t client_handle(const struct client *c); /* first word of the reply */
uint32_t client_destroy(struct client *c, uint32_t op, uint32_t handle);
