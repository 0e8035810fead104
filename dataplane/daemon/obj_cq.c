/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"

#define SUB_OFF 64u /* right after struct uroce_cq_page */

uint32_t round_up_pow2(uint32_t n)
{
	if (n > 1u << 31)
		return 1u << 31;
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

static uint64_t sub_stride(uint32_t depth)
{
	return sizeof(struct uroce_ring) + (uint64_t)depth * sizeof(struct uroce_cqe);
}

static struct uroce_ring *sub_ring(const struct shm *rings, uint32_t depth, unsigned worker)
{
	return (struct uroce_ring *)(rings->base + SUB_OFF + worker * sub_stride(depth));
}

static int alloc_memory(struct session *s, struct shm *shm, uint32_t depth)
{
	int err = shm_create(shm, "uroce-cq", SUB_OFF + s->daemon->n_workers * sub_stride(depth));

	if (err)
		return err;
	err = session_charge(s, shm->size);
	if (err)
		shm_destroy(shm);
	return err;
}

static void free_memory(struct session *s, struct shm *shm)
{
	if (!shm->base)
		return;
	session_refund(s, shm->size);
	shm_destroy(shm);
}

static int del_from_engines(struct session *s, const struct cq *cq, uint32_t *events)
{
	struct cmd cmd = { .op = ENGINE_CQ_DEL, .key = cq->cqn };
	struct cmd_reply rep = { 0 };
	int err = device_command_all(s->dev, &cmd, &rep);

	*events = rep.events_sent;
	return err;
}

static int give_to_engines(struct session *s, const struct cq *cq)
{
	for (unsigned w = 0; w < s->daemon->n_workers; w++) {
		struct cmd cmd = { .op = ENGINE_CQ_ADD,
				   .cq_add = { .cqn = cq->cqn,
					       .depth = cq->depth,
					       .owner = s->id,
					       .page = (struct uroce_cq_page *)cq->shm.base,
					       .channel = (uint64_t)(uintptr_t)cq->channel,
					       .token = cq->token } };
		uint32_t unused;
		int err;

		cmd.cq_add.ring = sub_ring(&cq->shm, cq->depth, w);
		err = device_command(s->dev, w, &cmd, NULL);
		if (err) {
			del_from_engines(s, cq, &unused);
			return err;
		}
	}
	return 0;
}

static int fill(struct session *s, struct cq *cq, const struct uroce_create_cq *req)
{
	if (!req->cqe || req->cqe > UROCE_MAX_CQE)
		return -EINVAL;
	cq->depth = round_up_pow2(req->cqe);
	cq->token = req->token;
	if (!req->channel)
		return 0;
	cq->channel = handles_get(&s->channels, req->channel);
	return cq->channel ? 0 : -EINVAL;
}

static void describe(const struct session *s, const struct cq *cq, uint32_t handle,
		     struct uroce_create_cq_rep *rep)
{
	rep->handle = handle;
	rep->depth = cq->depth;
	rep->n_subs = s->daemon->n_workers;
	rep->sub_off = SUB_OFF;
	rep->sub_stride = sub_stride(cq->depth);
	rep->size = cq->rings.base ? cq->rings.size : cq->shm.size;
}

int request_create_cq(struct session *s, const void *body, struct reply *r)
{
	struct uroce_create_cq_rep *rep = reply_body(r, sizeof(*rep));
	struct cq *cq = calloc(1, sizeof(*cq));
	uint8_t generation;
	uint32_t unused, handle;
	int err;

	if (!cq)
		return -ENOMEM;
	cq->rings.fd = -1;
	err = fill(s, cq, body);
	if (err)
		goto free_cq;
	err = alloc_memory(s, &cq->shm, cq->depth);
	if (err)
		goto free_cq;
	err = numbers_take(&s->dev->cqns, &cq->cqn, &generation) ? -ENOMEM : 0;
	if (err)
		goto free_memory;
	err = give_to_engines(s, cq);
	if (err)
		goto give_number;
	if (handles_add(&s->cqs, cq, &handle)) {
		err = -ENOMEM;
		goto del_cq;
	}
	if (cq->channel)
		cq->channel->refs++;
	s->dev->n_cq++;
	describe(s, cq, handle, rep);
	reply_give(r, cq->shm.fd);
	cq->shm.fd = -1;
	return 0;
del_cq:
	del_from_engines(s, cq, &unused);
give_number:
	numbers_give(&s->dev->cqns, cq->cqn);
free_memory:
	free_memory(s, &cq->shm);
free_cq:
	free(cq);
	return err;
}

static int move(struct session *s, const struct cq *cq, const struct shm *to, uint32_t depth,
		unsigned worker)
{
	struct cmd cmd = { .op = ENGINE_CQ_RESIZE,
			   .cq_resize = { cq->cqn, depth, sub_ring(to, depth, worker) } };

	return device_command(s->dev, worker, &cmd, NULL);
}

/*
 * All engines move or none does. One that has moved can always go back: where there was not room
 * enough for another, the old ring is the larger.
 */
static int move_all(struct session *s, const struct cq *cq, const struct shm *to, uint32_t depth)
{
	const struct shm *from = cq->rings.base ? &cq->rings : &cq->shm;
	unsigned w;
	int err = 0;

	for (w = 0; !err && w < s->daemon->n_workers; w++)
		err = move(s, cq, to, depth, w);
	if (!err)
		return 0;
	for (w--; w-- > 0;)
		move(s, cq, from, cq->depth, w);
	return err;
}

int request_resize_cq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_resize_cq *req = body;
	struct uroce_create_cq_rep *rep = reply_body(r, sizeof(*rep));
	struct cq *cq = handles_get(&s->cqs, req->handle);
	uint32_t depth = round_up_pow2(req->cqe);
	struct shm to;
	int err;

	if (!cq || !req->cqe || req->cqe > UROCE_MAX_CQE)
		return -EINVAL;
	err = alloc_memory(s, &to, depth);
	if (err)
		return err;
	err = move_all(s, cq, &to, depth);
	if (err) {
		free_memory(s, &to);
		return err;
	}
	if (cq->rings.base) {
		free_memory(s, &cq->rings);
	} else {
		/* The page that arms it stays where it is, so that no event gets lost. */
		size_t whole = cq->shm.size;

		shm_trim(&cq->shm, sizeof(struct uroce_cq_page));
		session_refund(s, whole - cq->shm.size);
	}
	cq->rings = to;
	cq->depth = depth;
	describe(s, cq, req->handle, rep);
	reply_give(r, cq->rings.fd);
	cq->rings.fd = -1;
	return 0;
}

/* Any worker will do: whoever takes the arm word off the page sends the event. */
int request_fire_cq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct cq *cq = handles_get(&s->cqs, h->handle);
	struct cmd cmd = { .op = ENGINE_CQ_FIRE };

	(void)r;
	if (!cq)
		return -EINVAL;
	cmd.key = cq->cqn;
	return device_command(s->dev, 0, &cmd, NULL);
}

void cq_free(struct session *s, struct cq *cq)
{
	numbers_give(&s->dev->cqns, cq->cqn);
	free_memory(s, &cq->rings);
	free_memory(s, &cq->shm);
	if (cq->channel)
		cq->channel->refs--;
	s->dev->n_cq--;
	free(cq);
}

int request_destroy_cq(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_destroy_rep *rep = reply_body(r, sizeof(*rep));
	struct cq *cq = handles_get(&s->cqs, h->handle);
	int err;

	if (!cq)
		return -EINVAL;
	if (cq->refs)
		return -EBUSY;
	err = del_from_engines(s, cq, &rep->events_sent);
	if (err)
		return err;
	/* What still waits for room in the sockets is never sent. */
	rep->events_sent -= (uint32_t)notify_forget(&s->async, cq->token);
	if (cq->channel)
		rep->events_sent -= (uint32_t)notify_forget(&cq->channel->notify, cq->token);
	handles_del(&s->cqs, h->handle);
	cq_free(s, cq);
	return 0;
}
