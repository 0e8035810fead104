/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues. A receive leaves its slot when the daemon takes it, so what room there is
 * stands in the ring, and completions name the request by the daemon's copy of its wr_id.
 */
#include "provider/domain.h"

#include <errno.h>
#include <stdlib.h>

/* The daemon's answer must describe memory that holds all that we shall touch. */
static bool is_sound(const struct uroce_create_srq_rep *r)
{
	return r->depth && r->depth <= UROCE_MAX_QP_WR && !(r->depth & (r->depth - 1)) &&
	       r->max_wr <= r->depth && r->max_sge <= UROCE_MAX_SGE && r->stride % 16 == 0 &&
	       r->stride >= sizeof(struct uroce_rqe) + r->max_sge * sizeof(struct uroce_sge) &&
	       r->slots_off >= sizeof(struct uroce_ring) && r->slots_off % 16 == 0 &&
	       r->slots_off + (uint64_t)r->depth * r->stride <= r->size;
}

/* Takes over fd. */
static int adopt(struct uroce_srq *srq, const struct uroce_create_srq_rep *r, int fd)
{
	uint8_t *mem = uroce_map(fd, r->size);

	if (!mem)
		return errno;
	if (!is_sound(r)) {
		uroce_unmap(mem, r->size);
		return EIO;
	}
	if (srq->mem)
		uroce_unmap(srq->mem, srq->mem_size);
	srq->mem = mem;
	srq->mem_size = r->size;
	srq->ring = (struct uroce_ring *)mem;
	srq->slots = mem + r->slots_off;
	srq->depth = r->depth;
	srq->stride = r->stride;
	srq->max_wr = r->max_wr;
	srq->max_sge = r->max_sge;
	return 0;
}

static int make(struct uroce_context *ctx, struct uroce_srq *srq,
		const struct uroce_create_srq *req)
{
	struct uroce_create_srq_rep rep;
	int fd;
	struct uroce_ctrl_msg m = { .op = UROCE_OP_CREATE_SRQ,
				    .body = req,
				    .len = sizeof(*req),
				    .send_fd = -1,
				    .rep = &rep,
				    .rep_size = sizeof(rep),
				    .fds = &fd,
				    .max_fds = 1 };
	int err = uroce_context_send(ctx, &m);

	if (err)
		return err;
	err = m.n_fds == 1 ? adopt(srq, &rep, fd) : EIO;
	if (err) {
		uroce_context_destroy(ctx, UROCE_OP_DESTROY_SRQ, rep.handle, NULL);
		return err;
	}
	srq->v.srq.handle = rep.handle;
	srq->srqn = rep.srqn;
	return 0;
}

struct uroce_srq *uroce_srq_make(struct ibv_pd *pd, struct ibv_srq_attr *attr,
				 const struct uroce_create_srq *how)
{
	struct uroce_context *ctx = to_context(pd->context);
	struct uroce_create_srq req = *how;
	struct uroce_srq *srq = NULL;
	int err = EINVAL;

	req.pd = pd->handle;
	req.max_wr = attr->max_wr;
	req.max_sge = attr->max_sge;
	if (!req.max_wr || req.max_wr > ctx->attr.max_srq_wr || req.max_sge > ctx->attr.max_srq_sge)
		goto fail;
	err = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto fail;
	req.token = (uintptr_t)srq;
	err = make(ctx, srq, &req);
	if (err)
		goto fail;
	srq->domain = uroce_domain_get(uroce_domain_of(pd));
	uroce_lock_init(&srq->lock, uroce_domain_is_single_threaded(srq->domain));
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	return srq;
fail:
	free(srq);
	errno = err;
	return NULL;
}

struct ibv_srq *uroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	const struct uroce_create_srq how = { 0 };
	struct uroce_srq *srq = uroce_srq_make(pd, &attr->attr, &how);

	return srq ? &srq->v.srq : NULL;
}

/* Nobody posts while the receives move. */
static int resize(struct uroce_context *ctx, struct uroce_srq *srq, uint32_t max_wr)
{
	struct uroce_resize_srq req = { .handle = srq->v.srq.handle, .max_wr = max_wr };
	struct uroce_create_srq_rep rep;
	int fd, err;
	struct uroce_ctrl_msg m = { .op = UROCE_OP_RESIZE_SRQ,
				    .body = &req,
				    .len = sizeof(req),
				    .send_fd = -1,
				    .rep = &rep,
				    .rep_size = sizeof(rep),
				    .fds = &fd,
				    .max_fds = 1 };

	if (!max_wr || max_wr > ctx->attr.max_srq_wr)
		return EINVAL;
	uroce_lock(&srq->lock);
	err = uroce_context_send(ctx, &m);
	if (!err) {
		err = m.n_fds == 1 ? adopt(srq, &rep, fd) : EIO;
		srq->is_lost = err != 0;
	}
	uroce_unlock(&srq->lock);
	return err;
}

int uroce_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct uroce_context *ctx = to_context(ibsrq->context);
	struct uroce_srq *srq = to_srq(ibsrq);
	struct uroce_srq_attr req = { .handle = ibsrq->handle, .limit = attr->srq_limit };
	int err = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if ((mask & IBV_SRQ_LIMIT) && (mask & IBV_SRQ_MAX_WR) && attr->srq_limit > attr->max_wr)
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR)
		err = resize(ctx, srq, attr->max_wr);
	if (!err && (mask & IBV_SRQ_LIMIT))
		err = uroce_context_call(ctx, UROCE_OP_MODIFY_SRQ, &req, sizeof(req), NULL, 0);
	return err;
}

int uroce_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct uroce_handle req = { .handle = ibsrq->handle };
	struct uroce_srq_attr rep;
	int err = uroce_context_call(to_context(ibsrq->context), UROCE_OP_QUERY_SRQ, &req,
				     sizeof(req), &rep, sizeof(rep));

	if (err)
		return err;
	attr->max_wr = rep.max_wr;
	attr->max_sge = rep.max_sge;
	attr->srq_limit = rep.limit;
	return 0;
}

/* As for a CQ: unread events are dropped, read ones must be acknowledged first. */
static void await_acks(struct uroce_context *ctx, struct uroce_srq *srq, uint32_t sent)
{
	uint32_t dropped = uroce_source_forget(ctx->async, (uintptr_t)srq);
	uint32_t read =
		atomic_load(&ctx->is_dead) ? atomic_load(&srq->events_read) : sent - dropped;
	struct ibv_srq *v = &srq->v.srq;

	pthread_mutex_lock(&v->mutex);
	while ((int32_t)(v->events_completed - read) < 0)
		pthread_cond_wait(&v->cond, &v->mutex);
	pthread_mutex_unlock(&v->mutex);
}

int uroce_destroy_srq(struct ibv_srq *ibsrq)
{
	struct uroce_context *ctx = to_context(ibsrq->context);
	struct uroce_srq *srq = to_srq(ibsrq);
	uint32_t sent;
	int err = uroce_context_destroy(ctx, UROCE_OP_DESTROY_SRQ, ibsrq->handle, &sent);

	if (err)
		return err;
	if (uroce_ctrl_is_ours(&ctx->ctrl))
		await_acks(ctx, srq, sent);
	uroce_unmap(srq->mem, srq->mem_size);
	uroce_lock_fini(&srq->lock);
	uroce_domain_put(srq->domain);
	free(srq);
	return 0;
}

static int check_wr(const struct uroce_srq *srq, const struct ibv_recv_wr *wr, uint32_t head)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
		return EINVAL;
	return uroce_ring_room(srq->ring, head, srq->depth) ? 0 : ENOMEM;
}

int uroce_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uroce_srq *srq = to_srq(ibsrq);
	bool is_dead =
		atomic_load_explicit(&to_context(ibsrq->context)->is_dead, memory_order_relaxed);
	uint32_t head;
	int err;

	uroce_lock(&srq->lock);
	err = is_dead || srq->is_lost ? EIO : 0;
	for (head = srq->head; wr && !err; wr = wr->next) {
		err = check_wr(srq, wr, head);
		if (err)
			break;
		uroce_rqe_put(srq->slots + (size_t)(head & (srq->depth - 1)) * srq->stride, wr);
		head++;
	}
	if (head != srq->head) {
		srq->head = head;
		uroce_ring_publish(srq->ring, head);
	}
	uroce_unlock(&srq->lock);
	if (err)
		*bad = wr;
	return err;
}
