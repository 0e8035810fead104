/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: receives that many QPs take from, perhaps in several engines at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/engine.h"

struct qp;

/* What the engines of a device share of an SRQ; in the daemon's own memory, never the program's. */
struct srq_shared {
	uint32_t tail;  /* receives taken */
	uint32_t limit; /* armed when not 0 */
	uint32_t events_sent;
	uint32_t reserved[13];
};

struct srq {
	bool is_live;
	uint32_t srqn, pd, owner, max_sge, depth, stride;
	uint32_t users;
	uint32_t xrcd;
	struct cq *cq; /* XRC */
	uint64_t token;
	struct uroce_ring *ring;
	const uint8_t *slots;
	struct srq_shared *shared;
};

int srq_add(struct engine *e, const struct cmd_srq_add *cmd);
int srq_limit(struct engine *e, const struct cmd_srq_limit *cmd);
int srq_resize(struct engine *e, const struct cmd_srq_resize *cmd);
int srq_query(struct engine *e, uint32_t srqn, struct cmd_reply *reply);
int srq_del(struct engine *e, uint32_t srqn, uint32_t *events_sent);
struct srq *srq_find(struct engine *e, uint32_t srqn);

/* The protection domain of the receives of a QP: a shared queue has its own. */
uint32_t srq_pd(const struct qp *qp);

/* As rqe_take. */
int srq_take(struct engine *e, struct qp *qp);
