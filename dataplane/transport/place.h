/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement in one go: payloads of packets, of one message or of many, are collected and written to
 * application memory by one call of the memory port. The batch is flushed at the end of every
 * engine_rx, since it points into frames, and before anything that could not be taken back tells of
 * its data. A receive completion waits in the batch behind its data; an ACK waits in its queue, out
 * of which it can be taken until engine_rx has returned.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/abi/abi.h"
#include "dataplane/ports.h"
#include "dataplane/transport/psn.h"

#define PLACE_BUFS  64u
#define PLACE_VECS  64u
#define PLACE_ITEMS 32u

struct engine;
struct qp;
struct packet;

enum place_kind {
	PLACE_WRITE, /* into the responder's MR: resp.rkey, resp.va */
	PLACE_RECV,  /* into the receive in resp.rqe */
	PLACE_READ,  /* READ or atomic answer into the SGEs of WQE req.reads.wqe */
};

/* Consecutive packets of one message. */
struct place_item {
	struct qp *qp; /* NULL: given up */
	enum place_kind kind;
	bool is_solicited;
	bool has_cqe; /* cqe is to be pushed once the data is in place */
	psn_t psn;    /* of its first packet */
	uint64_t off, len;
	uint32_t wqe; /* READ */
	unsigned n_vec, n_buf;
	struct uroce_cqe cqe; /* RECV: wr_id and wqe_index are always there */
};

struct place {
	unsigned n, n_vec, n_buf;
	bool is_open; /* the last item takes more; unless a WRITE it has no vec yet */
	struct mem_vec vec[PLACE_VECS];
	struct buf_vec buf[PLACE_BUFS];
	struct place_item item[PLACE_ITEMS];
};

/*
 * False, of add and close: placing failed, the QP has been put into ERR with the right completion
 * and answer. dst: of a WRITE's first packet, where the whole message goes; else NULL.
 */
bool place_add(struct engine *e, struct qp *qp, enum place_kind kind, uint64_t off,
	       const struct packet *pk, const struct mem_vec *dst);

/* The message is at its end: what it needs to be placed is taken from the QP now. */
bool place_close(struct engine *e, struct qp *qp);

/* A receive completes when all placed so far is there. */
void place_then_complete(struct engine *e, struct qp *qp, struct uroce_cqe *cqe, bool is_solicited);

/* False: something was not placed; its QP has been dealt with as above. */
bool place_flush(struct engine *e);
