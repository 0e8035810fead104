/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages: framing, checks that hold for all of them, and the table of handlers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/abi/ctrl.h"

struct session;

/* A reply in the making. Handlers put at most UROCE_CTRL_FDS_MAX descriptors. */
struct reply {
	uint32_t len;
	uint32_t n_fds;
	int fd[UROCE_CTRL_FDS_MAX];
	bool is_ours[UROCE_CTRL_FDS_MAX]; /* stays open here after it was sent */
	_Alignas(8) uint8_t body[UROCE_CTRL_MSG_MAX - sizeof(struct uroce_rep)];
};

/* Zeroed room for the body. */
void *reply_body(struct reply *r, uint32_t len);

/* Passes fd; reply_give also closes it here, whatever happens. */
void reply_lend(struct reply *r, int fd);
void reply_give(struct reply *r, int fd);

/* Reads one request, runs it, answers. False: the session is over. */
bool dispatch_serve(struct session *s);
