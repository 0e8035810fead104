/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement in one go: the payloads of consecutive packets of one message are collected and written
 * to application memory by one call of the memory port. A batch is flushed before anything may
 * tell of its data (CQE, ACK) and at the end of every engine_rx, since it points into frames.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ports.h"
#include "dataplane/transport/psn.h"

#define PLACE_BUFS 64u

struct engine;
struct qp;
struct packet;

enum place_kind {
	PLACE_WRITE, /* into the responder's MR: resp.rkey, resp.va */
	PLACE_RECV,  /* into the receive in resp.rqe */
	PLACE_READ,  /* READ or atomic answer into the SGEs of WQE req.una */
};

struct place {
	struct qp *qp; /* NULL: empty */
	enum place_kind kind;
	psn_t psn; /* of its first packet */
	uint64_t off, len;
	unsigned n;
	struct buf_vec buf[PLACE_BUFS];
};

/* False: placing failed, the QP has been put into ERR with the right completion and answer. */
bool place_add(struct engine *e, struct qp *qp, enum place_kind kind, uint64_t off,
	       const struct packet *pk);
bool place_flush(struct engine *e);
void place_drop(struct engine *e, const struct qp *qp);
