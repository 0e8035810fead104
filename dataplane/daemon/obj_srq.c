/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: one ring in the client's memory, and what the engines of the device share.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/abi/ring.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"

#define SLOTS_OFF   ((uint32_t)sizeof(struct uroce_ring))
#define SRQ_XRC     1u  /* type of CREATE_SRQ */
#define SHARED_SIZE 64u /* what engine.h asks for */

static struct uroce_ring *ring_of(const struct shm *shm)
{
	return (struct uroce_ring *)shm->base;
}

static int fill(struct session *s, struct srq *srq, const struct uroce_create_srq *req)
{
	if (req->type > SRQ_XRC)
		return -EOPNOTSUPP;
	if (!req->max_wr || req->max_wr > UROCE_MAX_QP_WR || req->max_sge > UROCE_MAX_SGE ||
	    req->limit > req->max_wr)
		return -EINVAL;
	srq->pd = handles_get(&s->pds, req->pd);
	srq->token = req->token;
	srq->depth = round_up_pow2(req->max_wr);
	srq->max_sge = req->max_sge;
	srq->stride =
		(uint32_t)(sizeof(struct uroce_rqe) + req->max_sge * sizeof(struct uroce_sge));
	if (req->type == SRQ_XRC) {
		srq->xrcd = handles_get(&s->xrcds, req->xrcd);
		srq->cq = handles_get(&s->cqs, req->cq);
		if (!srq->xrcd || !srq->cq)
			return -EINVAL;
	}
	return srq->pd ? 0 : -EINVAL;
}

/* What an SRQ uses cannot go before it. */
static void count_users(const struct srq *srq, int n)
{
	srq->pd->refs += (uint32_t)n;
	if (!srq->xrcd)
		return;
	srq->xrcd->refs += (uint32_t)n;
	srq->cq->refs += (uint32_t)n;
}

static int alloc_memory(struct session *s, struct shm *shm, uint32_t depth, uint32_t stride)
{
	int err = shm_create(shm, "uroce-srq", SLOTS_OFF + (size_t)depth * stride);

	if (err)
		return err;
	err = session_charge(s, shm->size);
	if (err)
		shm_destroy(shm);
	return err;
}

static void free_memory(struct session *s, struct shm *shm)
{
	session_refund(s, shm->size);
	shm_destroy(shm);
}

/* Returns the events sent for it: all engines count in one place, so the last one to let go knows.
 */
static uint32_t del_from_engines(struct session *s, const struct srq *srq)
{
	struct cmd cmd = { .op = ENGINE_SRQ_DEL, .key = srq->srqn };
	struct cmd_reply out = { 0 };

	for (unsigned w = 0; w < s->daemon->n_workers; w++)
		device_command(s->dev, w, &cmd, &out);
	return out.events_sent;
}

static int give_to_engines(struct session *s, const struct srq *srq, uint32_t limit)
{
	struct cmd cmd = { .op = ENGINE_SRQ_ADD,
			   .srq_add = { .srqn = srq->srqn,
					.pd = srq->pd->number,
					.owner = s->id,
					.max_sge = srq->max_sge,
					.depth = srq->depth,
					.stride = srq->stride,
					.xrcd = srq->xrcd ? xrcd_number(srq->xrcd) : 0,
					.cqn = srq->cq ? srq->cq->cqn : 0,
					.token = srq->token,
					.ring = ring_of(&srq->shm),
					.slots = srq->shm.base + SLOTS_OFF,
					.shared = srq->shared } };
	int err = device_command_all(s->dev, &cmd, NULL);

	if (!err && limit) {
		cmd = (struct cmd) { .op = ENGINE_SRQ_LIMIT, .srq_limit = { srq->srqn, limit } };
		err = device_command(s->dev, 0, &cmd, NULL);
	}
	if (err)
		del_from_engines(s, srq);
	return err;
}

static void describe(const struct srq *srq, uint32_t handle, struct uroce_create_srq_rep *rep)
{
	rep->handle = handle;
	rep->srqn = srq->srqn;
	rep->max_wr = rep->depth = srq->depth;
	rep->max_sge = srq->max_sge;
	rep->stride = srq->stride;
	rep->slots_off = SLOTS_OFF;
	rep->size = srq->shm.size;
}

int request_create_srq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_create_srq *req = body;
	struct uroce_create_srq_rep *rep = reply_body(r, sizeof(*rep));
	struct srq *srq = calloc(1, sizeof(*srq));
	uint8_t generation;
	uint32_t handle;
	int err;

	if (!srq)
		return -ENOMEM;
	err = fill(s, srq, req);
	if (err)
		goto free_srq;
	err = alloc_memory(s, &srq->shm, srq->depth, srq->stride);
	if (err)
		goto free_srq;
	srq->shared = aligned_alloc(UROCE_CACHE_LINE, SHARED_SIZE);
	if (!srq->shared || numbers_take(&s->dev->srqns, &srq->srqn, &generation)) {
		err = -ENOMEM;
		goto free_shared;
	}
	memset(srq->shared, 0, SHARED_SIZE);
	err = give_to_engines(s, srq, req->limit);
	if (err)
		goto give_number;
	if (handles_add(&s->srqs, srq, &handle)) {
		err = -ENOMEM;
		goto del_srq;
	}
	count_users(srq, 1);
	s->dev->n_srq++;
	describe(srq, handle, rep);
	reply_give(r, srq->shm.fd);
	srq->shm.fd = -1;
	return 0;
del_srq:
	del_from_engines(s, srq);
give_number:
	numbers_give(&s->dev->srqns, srq->srqn);
free_shared:
	free(srq->shared);
	free_memory(s, &srq->shm);
free_srq:
	free(srq);
	return err;
}

static int query(struct session *s, const struct srq *srq, struct cmd_reply *out)
{
	struct cmd cmd = { .op = ENGINE_SRQ_QUERY, .key = srq->srqn };

	/* What the engines share, so any of them can tell, and set it. */
	return device_command(s->dev, 0, &cmd, out);
}

int request_modify_srq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_srq_attr *req = body;
	const struct srq *srq = handles_get(&s->srqs, req->handle);
	struct cmd cmd = { .op = ENGINE_SRQ_LIMIT };

	(void)r;
	if (!srq)
		return -EINVAL;
	cmd.srq_limit = (struct cmd_srq_limit) { srq->srqn, req->limit };
	return device_command(s->dev, 0, &cmd, NULL);
}

int request_query_srq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_srq_attr *rep = reply_body(r, sizeof(*rep));
	const struct srq *srq = handles_get(&s->srqs, h->handle);
	struct cmd_reply out;
	int err = srq ? query(s, srq, &out) : -EINVAL;

	if (err)
		return err;
	rep->handle = h->handle;
	rep->max_wr = srq->depth;
	rep->max_sge = srq->max_sge;
	rep->limit = out.srq.limit;
	return 0;
}

/*
 * The client posts nothing meanwhile (if it does, it confuses but itself). So a receive stands
 * under the same index in both memories, and it does not matter which of them an engine takes it
 * from.
 */
static int copy_receives(const struct srq *srq, const struct shm *to, uint32_t depth,
			 uint32_t taken)
{
	int64_t n = uroce_ring_pending(ring_of(&srq->shm), taken, srq->depth);

	if (n < 0 || n > depth)
		return -EINVAL;
	for (uint32_t i = taken; i != taken + (uint32_t)n; i++)
		memcpy(to->base + SLOTS_OFF + (size_t)(i & (depth - 1)) * srq->stride,
		       srq->shm.base + SLOTS_OFF + (size_t)(i & (srq->depth - 1)) * srq->stride,
		       srq->stride);
	uroce_ring_consume(ring_of(to), taken);
	uroce_ring_publish(ring_of(to), taken + (uint32_t)n);
	return 0;
}

static void switch_memory(struct session *s, struct srq *srq, const struct shm *to, uint32_t depth)
{
	struct cmd cmd = { .op = ENGINE_SRQ_RESIZE,
			   .srq_resize = { srq->srqn, depth, ring_of(to), to->base + SLOTS_OFF } };

	device_command_all(s->dev, &cmd, NULL); /* cannot fail: every engine has it */
	free_memory(s, &srq->shm);
	srq->shm = *to;
	srq->depth = depth;
}

int request_resize_srq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_resize_srq *req = body;
	struct uroce_create_srq_rep *rep = reply_body(r, sizeof(*rep));
	struct srq *srq = handles_get(&s->srqs, req->handle);
	uint32_t depth = round_up_pow2(req->max_wr);
	struct cmd_reply out;
	struct shm shm;
	int err;

	if (!srq || !req->max_wr || req->max_wr > UROCE_MAX_QP_WR)
		return -EINVAL;
	err = alloc_memory(s, &shm, depth, srq->stride);
	if (err)
		return err;
	err = query(s, srq, &out);
	if (!err && out.srq.limit > depth)
		err = -EINVAL;
	if (!err)
		err = copy_receives(srq, &shm, depth, out.srq.taken);
	if (err) {
		free_memory(s, &shm);
		return err;
	}
	switch_memory(s, srq, &shm, depth);
	describe(srq, req->handle, rep);
	reply_give(r, srq->shm.fd);
	srq->shm.fd = -1;
	return 0;
}

void srq_free(struct session *s, struct srq *srq)
{
	numbers_give(&s->dev->srqns, srq->srqn);
	free_memory(s, &srq->shm);
	free(srq->shared);
	count_users(srq, -1);
	s->dev->n_srq--;
	free(srq);
}

int request_destroy_srq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_destroy_rep *rep = reply_body(r, sizeof(*rep));
	struct srq *srq = handles_get(&s->srqs, h->handle);

	if (!srq)
		return -EINVAL;
	if (srq->refs)
		return -EBUSY;
	/* QPs of its XRC domain, whosever they are, may take from it up to here. */
	rep->events_sent = del_from_engines(s, srq);
	rep->events_sent -= (uint32_t)notify_forget(&s->async, srq->token);
	handles_del(&s->srqs, h->handle);
	srq_free(s, srq);
	return 0;
}
