/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine that does nothing but remember what it was told: the daemon's other side. */
#pragma once

#include "dataplane/engine.h"

#define FAKE_N_OPS 32u

extern struct fake_engine {
	unsigned n[FAKE_N_OPS]; /* commands, by op */
	struct cmd last;
	int fail_op; /* 1 + op: that command fails with fail_err */
	int fail_err;
	unsigned fail_from; /* not 0: only the command of this number fails, counted from 1 */
	uint32_t events_sent; /* for QP_DEL and CQ_DEL */
	unsigned rx, doorbells, expired;
	unsigned rx_before; /* of rx, when it first expired */
	uint64_t deadline, expired_at;
} fake;

void fake_count(struct engine *e, uint64_t value);
void fake_notify(struct engine *e, uint32_t owner, uint64_t channel, uint64_t token);
void fake_event(struct engine *e, uint32_t owner, uint64_t element, uint32_t type);
