/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct uroce_ring *uroce_cq_sub(const struct uroce_cq *cq, uint32_t i)
{
	return (struct uroce_ring *)(cq->mem + cq->sub_off + i * cq->sub_stride);
}

/* The daemon's answer must describe memory that holds all that we shall touch. */
static bool is_sound(const struct uroce_create_cq_rep *r)
{
	uint64_t sub = sizeof(struct uroce_ring) + (uint64_t)r->depth * sizeof(struct uroce_cqe);

	return r->depth && r->depth <= UROCE_MAX_CQE && !(r->depth & (r->depth - 1)) &&
	       r->n_subs && r->n_subs <= UROCE_MAX_WORKERS &&
	       r->sub_off >= sizeof(struct uroce_cq_page) && r->sub_stride >= sub &&
	       r->sub_stride % UROCE_CACHE_LINE == 0 && r->sub_off % UROCE_CACHE_LINE == 0 &&
	       r->size >= r->sub_off + r->n_subs * r->sub_stride && r->sub_stride <= r->size;
}

static void describe(struct uroce_cq *cq, uint8_t *mem, const struct uroce_create_cq_rep *r)
{
	cq->mem = mem;
	cq->mem_size = r->size;
	cq->depth = r->depth;
	cq->n_subs = r->n_subs;
	cq->sub_off = r->sub_off;
	cq->sub_stride = r->sub_stride;
	cq->v.cq.cqe = (int)r->depth;
}

static int request(struct uroce_context *ctx, struct uroce_cq *cq, uint32_t cqe)
{
	struct uroce_create_cq req = { .cqe = cqe, .token = (uintptr_t)cq };
	struct uroce_create_cq_rep rep;
	int fd;
	struct uroce_ctrl_msg m = { .op = UROCE_OP_CREATE_CQ, .body = &req, .len = sizeof(req),
				    .send_fd = -1, .rep = &rep, .rep_size = sizeof(rep), .fds = &fd,
				    .max_fds = 1 };
	uint8_t *mem;
	int err;

	if (cq->source || cq->wake)
		req.channel = uroce_source_handle(cq->source ? cq->source : cq->wake);
	err = uroce_context_send(ctx, &m);
	if (err)
		return err;
	if (m.n_fds != 1 || !is_sound(&rep)) {
		uroce_context_destroy(ctx, UROCE_OP_DESTROY_CQ, rep.handle, NULL);
		return EIO;
	}
	mem = uroce_map(fd, rep.size);
	if (!mem) {
		err = errno;
		uroce_context_destroy(ctx, UROCE_OP_DESTROY_CQ, rep.handle, NULL);
		return err;
	}
	describe(cq, mem, &rep);
	cq->page = (struct uroce_cq_page *)cq->mem;
	cq->v.cq.handle = rep.handle;
	return 0;
}

/* One for all CQs that have no channel; without it their pollers sleep by the clock. */
static struct uroce_source *wake_channel(struct uroce_context *ctx)
{
	struct uroce_source *wake;
	int fd;

	pthread_mutex_lock(&ctx->objects);
	if (!ctx->wake && uroce_channel_create(ctx, &fd, &ctx->wake))
		ctx->wake = NULL;
	wake = ctx->wake;
	pthread_mutex_unlock(&ctx->objects);
	return wake;
}

struct uroce_cq *uroce_cq_make(struct uroce_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			       struct uroce_pd *domain, bool is_single_threaded)
{
	struct ibv_context *ibctx = &ctx->vctx.context;
	struct uroce_cq *cq;
	int err = ENOMEM;

	if (attr->cqe < 1 || attr->cqe > ctx->attr.max_cqe ||
	    attr->comp_vector >= (uint32_t)ibctx->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto fail;
	err = EINVAL;
	if (attr->channel && !(cq->source = uroce_source_find(attr->channel->fd)))
		goto fail;
	if (!attr->channel)
		cq->wake = wake_channel(ctx);
	err = request(ctx, cq, attr->cqe);
	if (err)
		goto fail;
	cq->domain = uroce_domain_get(domain);
	uroce_lock_init(&cq->lock, is_single_threaded || uroce_domain_is_single_threaded(domain));
	pthread_mutex_lock(&ctx->objects);
	cq->next = ctx->cqs;
	ctx->cqs = cq;
	pthread_mutex_unlock(&ctx->objects);
	return cq;
fail:
	if (cq)
		uroce_source_put(cq->source);
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq *uroce_create_cq(struct ibv_context *ibctx, int cqe, struct ibv_comp_channel *channel,
			       int vector)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = cqe < 0 ? 0 : (uint32_t)cqe,
					    .channel = channel,
					    .comp_vector = (uint32_t)vector };
	struct uroce_cq *cq = uroce_cq_make(to_context(ibctx), &attr, NULL, false);

	return cq ? &cq->v.cq : NULL;
}

/* The page stays where it was first; of the memory around it only what it needs. */
static void leave_rings(struct uroce_cq *cq)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (cq->page_size) {
		uroce_unmap(cq->mem, cq->mem_size);
		return;
	}
	cq->page_size = page < cq->mem_size ? page : cq->mem_size;
	if (cq->page_size < cq->mem_size)
		uroce_unmap(cq->mem + cq->page_size, cq->mem_size - cq->page_size);
}

static int adopt_rings(struct uroce_cq *cq, const struct uroce_create_cq_rep *rep, int fd)
{
	uint8_t *mem = uroce_map(fd, rep->size);

	if (!mem)
		return errno;
	if (!is_sound(rep) || rep->n_subs != cq->n_subs) {
		uroce_unmap(mem, rep->size);
		return EIO;
	}
	leave_rings(cq);
	describe(cq, mem, rep);
	return 0;
}

int uroce_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct uroce_context *ctx = to_context(ibcq->context);
	struct uroce_cq *cq = to_cq(ibcq);
	struct uroce_resize_cq req = { .handle = ibcq->handle, .cqe = (uint32_t)cqe };
	struct uroce_create_cq_rep rep;
	int fd, err;
	struct uroce_ctrl_msg m = { .op = UROCE_OP_RESIZE_CQ,
				    .body = &req,
				    .len = sizeof(req),
				    .send_fd = -1,
				    .rep = &rep,
				    .rep_size = sizeof(rep),
				    .fds = &fd,
				    .max_fds = 1 };

	if (cqe < 1 || (uint32_t)cqe > ctx->attr.max_cqe)
		return EINVAL;
	uroce_lock(&cq->lock);
	err = uroce_context_send(ctx, &m);
	if (!err) {
		err = m.n_fds == 1 ? adopt_rings(cq, &rep, fd) : EIO;
		/* The daemon has moved and we cannot follow. */
		if (err)
			__atomic_store_n(&cq->page->overrun, 1, __ATOMIC_RELAXED);
	}
	uroce_unlock(&cq->lock);
	return err;
}

/*
 * Moderation allows the device to delay events until so many completions or so much time; this one
 * never does, which is within what was allowed.
 */
int uroce_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	(void)ibcq;
	return attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE ? EINVAL : 0;
}

static void cq_delist(struct uroce_context *ctx, struct uroce_cq *cq)
{
	pthread_mutex_lock(&ctx->objects);
	for (struct uroce_cq **p = &ctx->cqs; *p; p = &(*p)->next) {
		if (*p == cq) {
			*p = cq->next;
			break;
		}
	}
	pthread_mutex_unlock(&ctx->objects);
}

/*
 * Every event that was sent for the CQ is either still queued, and then dropped here, or was read
 * by the program, and then we wait for its acknowledgement: it names the CQ by address. Where
 * `sent` says nothing of the program (the daemon is dead, or sent wake-ups) those it was seen to
 * read count.
 */
static void await_acks(struct uroce_context *ctx, struct uroce_cq *cq, uint32_t sent)
{
	uint32_t dropped = uroce_source_forget(cq->source, (uintptr_t)cq) +
			   uroce_source_forget(ctx->async, (uintptr_t)cq);
	bool is_counted = !cq->wake && !atomic_load(&ctx->is_dead);
	uint32_t read = is_counted ? sent - dropped : atomic_load(&cq->events_read);
	struct ibv_cq *v = &cq->v.cq;

	pthread_mutex_lock(&v->mutex);
	while ((int32_t)(v->comp_events_completed + v->async_events_completed - read) < 0)
		pthread_cond_wait(&v->cond, &v->mutex);
	pthread_mutex_unlock(&v->mutex);
}

int uroce_destroy_cq(struct ibv_cq *ibcq)
{
	struct uroce_context *ctx = to_context(ibcq->context);
	struct uroce_cq *cq = to_cq(ibcq);
	uint32_t sent;
	int err = uroce_context_destroy(ctx, UROCE_OP_DESTROY_CQ, ibcq->handle, &sent);

	if (err)
		return err;
	cq_delist(ctx, cq);
	if (uroce_ctrl_is_ours(&ctx->ctrl))
		await_acks(ctx, cq, sent);
	uroce_source_put(cq->source);
	uroce_unmap(cq->mem, cq->mem_size);
	if (cq->page_size)
		uroce_unmap((uint8_t *)cq->page, cq->page_size);
	uroce_lock_fini(&cq->lock);
	uroce_domain_put(cq->domain);
	free(cq);
	return 0;
}

/*
 * An HCA that is told the consumer index as it is armed sends the event at once when a completion
 * lies beyond it, and programs count on that: UCX polls, finds nothing, arms, and sleeps. What came
 * between its poll and its arming must wake it. A program that has not polled since its last event
 * arms first and polls then, as the manual has it, and needs no event for what it will find.
 */
int uroce_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct uroce_context *ctx = to_context(ibcq->context);
	struct uroce_cq *cq = to_cq(ibcq);
	struct uroce_handle body = { .handle = ibcq->handle };

	if (!cq->source)
		return 0; /* there is nowhere to send an event */
	if (atomic_load(&ctx->is_dead))
		return EIO;
	uroce_cq_arm(cq->page, solicited_only ? UROCE_ARM_SOLICITED : UROCE_ARM_ANY);
	if (atomic_load_explicit(&cq->is_unlooked, memory_order_relaxed) ||
	    !uroce_cq_holds(cq, solicited_only))
		return 0;
	return uroce_context_call(ctx, UROCE_OP_FIRE_CQ, &body, sizeof(body), NULL, 0);
}

/* As with asynchronous events: another thread may have made the CQ. */
void uroce_cq_event(struct ibv_cq *ibcq)
{
	struct uroce_context *ctx = to_context(ibcq->context);
	struct uroce_cq *cq = to_cq(ibcq);

	pthread_mutex_lock(&ctx->objects);
	pthread_mutex_unlock(&ctx->objects);
	atomic_store_explicit(&cq->is_unlooked, true, memory_order_relaxed);
	atomic_fetch_add(&cq->events_read, 1);
}
