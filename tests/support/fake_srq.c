/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/fake_srq.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/abi/ring.h"

#define MAX_SGE 4u

static int command(const struct fake_srq *srq, const struct cmd *cmd)
{
	struct cmd_reply none;

	return engine_command(srq->dev->engine, srq->dev->now, cmd, &none);
}

struct fake_srq *fake_srq_new_xrc(struct fake_dev *d, uint32_t number, uint32_t depth, uint32_t pd,
				  uint32_t xrcd, const struct fake_cq *cq)
{
	struct fake_srq *srq = aligned_alloc(64, (sizeof(*srq) + 63) & ~(size_t)63);
	struct cmd cmd;
	int err;

	assert(srq);
	memset(srq, 0, sizeof(*srq));
	srq->dev = d;
	srq->srqn = number;
	srq->depth = depth;
	srq->stride = 128;
	srq->slots = calloc(depth, srq->stride);
	assert(srq->slots);
	cmd = (struct cmd) { .op = ENGINE_SRQ_ADD,
			     .srq_add = { .srqn = number,
					  .pd = pd,
					  .xrcd = xrcd,
					  .cqn = cq ? cq->cqn : 0,
					  .owner = 1,
					  .max_sge = MAX_SGE,
					  .depth = depth,
					  .stride = srq->stride,
					  .token = (uint64_t)(uintptr_t)srq,
					  .ring = &srq->ring,
					  .slots = srq->slots,
					  .shared = &srq->shared } };
	err = command(srq, &cmd);
	assert(!err);
	(void)err;
	return srq;
}

struct fake_srq *fake_srq_new(struct fake_dev *d, uint32_t number, uint32_t depth)
{
	return fake_srq_new_xrc(d, number, depth, 1, 0, NULL);
}

int fake_srq_del(struct fake_srq *srq)
{
	struct cmd cmd = { .op = ENGINE_SRQ_DEL, .key = srq->srqn };
	int err = command(srq, &cmd);

	if (err)
		return err;
	free(srq->slots);
	free(srq);
	return 0;
}

int fake_srq_limit(struct fake_srq *srq, uint32_t limit)
{
	struct cmd cmd = { .op = ENGINE_SRQ_LIMIT, .srq_limit = { srq->srqn, limit } };

	return command(srq, &cmd);
}

uint32_t fake_srq_left(const struct fake_srq *srq)
{
	return srq->prod - srq->ring.cons;
}

bool fake_srq_post(struct fake_srq *srq, uint64_t wr_id, const struct uroce_sge *sge,
		   uint32_t n_sge)
{
	uint8_t *slot = srq->slots + (size_t)(srq->prod & (srq->depth - 1)) * srq->stride;
	struct uroce_rqe r = { .wr_id = wr_id, .num_sge = n_sge };

	if (fake_srq_left(srq) == srq->depth)
		return false;
	memcpy(slot, &r, sizeof(r));
	memcpy(slot + sizeof(r), sge, n_sge * sizeof(*sge));
	uroce_ring_publish(&srq->ring, ++srq->prod);
	return true;
}
