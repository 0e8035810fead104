/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: this worker's sub-ring of each, overflow, and when an event is due. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/engine.h"

struct cq {
	uint32_t cqn;
	uint32_t depth;
	uint32_t prod; /* ours; the page only gets a copy */
	uint32_t owner;
	uint32_t users; /* queues of QPs that complete here */
	uint32_t events_sent;
	bool is_live;
	bool is_overrun;
	bool is_dirty;      /* on the engine's list: has completions no event was judged for */
	bool has_solicited; /* one of them is solicited or failed */
	struct uroce_cq_page *page;
	struct uroce_ring *ring;
	struct uroce_cqe *cqe;
	uint64_t channel, token;
	struct cq *next_dirty;
};

struct engine;

int cq_add(struct engine *e, const struct cmd_cq_add *cmd);
int cq_resize(struct engine *e, const struct cmd_cq_resize *cmd);
int cq_fire(struct engine *e, uint32_t cqn);
int cq_del(struct engine *e, uint32_t cqn, uint32_t *events_sent);
struct cq *cq_find(struct engine *e, uint32_t cqn);

/* Publishes a completion. False: no room, the CQ is in error now (and the QP must follow). */
bool cq_push(struct engine *e, struct cq *cq, const struct uroce_cqe *cqe, bool solicited);

/* Judge events for all CQs that got completions; once at the end of every entry to the engine. */
void cq_notify_dirty(struct engine *e);
