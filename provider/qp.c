/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/domain.h"

#include <errno.h>
#include <stdlib.h>

#define QP_ATTR_MASK                                                                     \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | \
	 IBV_QP_INIT_ATTR_CREATE_FLAGS)

static bool is_power_of_two(uint32_t v)
{
	return v && !(v & (v - 1));
}

static bool fits(const struct uroce_create_qp_rep *r, uint32_t off, uint32_t depth, uint32_t stride,
		 uint32_t least)
{
	if (!depth)
		return true;
	return is_power_of_two(depth) && depth <= 2 * UROCE_MAX_QP_WR && stride >= least &&
	       stride % 16 == 0 && off % UROCE_CACHE_LINE == 0 &&
	       off >= sizeof(struct uroce_qp_page) && off + (uint64_t)depth * stride <= r->size;
}

/* The daemon's answer must describe memory that holds all that we shall touch. */
static bool is_sound(const struct uroce_context *ctx, const struct uroce_create_qp_rep *r)
{
	uint32_t sge = r->cap.max_send_sge * (uint32_t)sizeof(struct uroce_sge);
	uint32_t body = sge > r->cap.max_inline ? sge : r->cap.max_inline;

	return r->slot < UROCE_CTX_QPS && r->worker < ctx->n_workers &&
	       r->cap.max_send_sge <= UROCE_MAX_SGE && r->cap.max_recv_sge <= UROCE_MAX_SGE &&
	       r->cap.max_inline <= UROCE_MAX_INLINE && r->cap.max_send_wr <= r->sq_depth &&
	       r->cap.max_recv_wr <= r->rq_depth && r->size >= sizeof(struct uroce_qp_page) &&
	       fits(r, r->sq_off, r->sq_depth, r->sq_stride,
		    (uint32_t)sizeof(struct uroce_wqe) + body) &&
	       fits(r, r->rq_off, r->rq_depth, r->rq_stride,
		    (uint32_t)sizeof(struct uroce_rqe) +
			    r->cap.max_recv_sge * (uint32_t)sizeof(struct uroce_sge));
}

/* Waits for who is just leaving it. */
static bool is_slot_empty(struct uroce_context *ctx, uint32_t slot)
{
	bool is_empty;

	pthread_mutex_lock(&ctx->objects);
	is_empty = !ctx->qp_slot[slot];
	pthread_mutex_unlock(&ctx->objects);
	return is_empty;
}

int uroce_wq_init(struct uroce_wq *wq, struct uroce_pd *domain, struct uroce_ring *ring,
		  uint8_t *slots, uint32_t depth, uint32_t stride)
{
	uroce_lock_init(&wq->lock, uroce_domain_is_single_threaded(domain));
	wq->ring = ring;
	wq->slots = slots;
	wq->depth = depth;
	wq->stride = stride;
	if (!depth)
		return 0;
	wq->wr = uroce_domain_alloc(domain, depth * sizeof(*wq->wr), UROCE_RES_QP,
				    &wq->is_wr_custom);
	return wq->wr ? 0 : ENOMEM;
}

static void wq_fini(struct uroce_wq *wq, struct uroce_pd *domain)
{
	uroce_domain_free(domain, wq->wr, UROCE_RES_QP, wq->is_wr_custom);
	uroce_lock_fini(&wq->lock);
}

/* An XRC send QP receives nothing: what is said of it is left aside. */
static bool has_receives(const struct ibv_qp_init_attr_ex *a)
{
	return a->qp_type != IBV_QPT_XRC_SEND;
}

static bool has_rq(const struct ibv_qp_init_attr_ex *a)
{
	return has_receives(a) && !a->srq;
}

static int check_init_attr(const struct uroce_context *ctx, const struct ibv_qp_init_attr_ex *a)
{
	const struct uroce_device_attr *d = &ctx->attr;

	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    uroce_wr_ex_check(a->qp_type, a->send_ops_flags))
		return EOPNOTSUPP;
	if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UC && a->qp_type != IBV_QPT_UD &&
	    a->qp_type != IBV_QPT_XRC_SEND)
		return EOPNOTSUPP;
	if (!a->send_cq || (has_receives(a) && !a->recv_cq))
		return EINVAL;
	if (a->cap.max_send_wr > d->max_qp_wr || a->cap.max_send_sge > d->max_sge ||
	    a->cap.max_inline_data > d->max_inline)
		return EINVAL;
	/* Without a receive queue of its own these say nothing. */
	if (has_rq(a) && (a->cap.max_recv_wr > d->max_qp_wr || a->cap.max_recv_sge > d->max_sge))
		return EINVAL;
	return 0;
}

static int request(struct uroce_context *ctx, struct uroce_qp *qp, struct ibv_qp_init_attr_ex *a,
		   struct uroce_create_qp_rep *rep, int *fd)
{
	struct uroce_create_qp req = {
		.type = a->qp_type,
		.pd = a->pd->handle,
		.send_cq = a->send_cq->handle,
		.recv_cq = has_receives(a) ? a->recv_cq->handle : 0,
		.srq = has_receives(a) && a->srq ? a->srq->handle : 0,
		.sq_sig_all = a->sq_sig_all != 0,
		.cap = { a->cap.max_send_wr, has_rq(a) ? a->cap.max_recv_wr : 0,
			 a->cap.max_send_sge, has_rq(a) ? a->cap.max_recv_sge : 0,
			 a->cap.max_inline_data },
		.token = (uintptr_t)qp,
	};
	struct uroce_ctrl_msg m = { .op = UROCE_OP_CREATE_QP,
				    .body = &req,
				    .len = sizeof(req),
				    .send_fd = -1,
				    .rep = rep,
				    .rep_size = sizeof(*rep),
				    .fds = fd,
				    .max_fds = 1 };
	int err = uroce_context_send(ctx, &m);

	if (!err && m.n_fds != 1) {
		uroce_context_destroy(ctx, UROCE_OP_DESTROY_QP, rep->handle, NULL);
		err = EIO;
	}
	return err;
}

static int map_queues(struct uroce_context *ctx, struct uroce_qp *qp,
		      const struct uroce_create_qp_rep *r, int fd)
{
	int err;

	qp->mem = uroce_map(fd, r->size);
	if (!qp->mem)
		return errno;
	if (!is_sound(ctx, r) || !is_slot_empty(ctx, r->slot))
		return EIO;
	qp->mem_size = r->size;
	qp->page = (struct uroce_qp_page *)qp->mem;
	err = uroce_wq_init(&qp->sq, qp->domain, &qp->page->sq, qp->mem + r->sq_off, r->sq_depth,
			    r->sq_stride);
	if (!err)
		err = uroce_wq_init(&qp->rq, qp->domain, &qp->page->rq, qp->mem + r->rq_off,
				    r->rq_depth, r->rq_stride);
	qp->sq.max_wr = r->cap.max_send_wr;
	qp->sq.max_sge = r->cap.max_send_sge;
	qp->rq.max_wr = r->cap.max_recv_wr;
	qp->rq.max_sge = r->cap.max_recv_sge;
	qp->max_inline = r->cap.max_inline;
	qp->slot = r->slot;
	qp->worker = r->worker;
	return err;
}

/* The library leaves all of ibv_qp to us. */
static void fill_public(struct ibv_context *ibctx, struct uroce_qp *qp,
			struct ibv_qp_init_attr_ex *a, const struct uroce_create_qp_rep *r)
{
	struct ibv_qp *v = &qp->v.qp;

	v->context = ibctx;
	v->qp_context = a->qp_context;
	v->pd = a->pd;
	v->send_cq = a->send_cq;
	v->recv_cq = has_receives(a) ? a->recv_cq : NULL;
	v->srq = has_receives(a) ? a->srq : NULL;
	v->handle = r->handle;
	v->qp_num = r->qpn;
	v->qp_type = a->qp_type;
	v->state = IBV_QPS_RESET;
	pthread_mutex_init(&v->mutex, NULL);
	pthread_cond_init(&v->cond, NULL);
	qp->sq_sig_all = a->sq_sig_all != 0;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		uroce_wr_ex_init(qp, a->send_ops_flags);
	a->cap.max_send_wr = r->cap.max_send_wr;
	a->cap.max_recv_wr = r->cap.max_recv_wr;
	a->cap.max_send_sge = r->cap.max_send_sge;
	a->cap.max_recv_sge = r->cap.max_recv_sge;
	a->cap.max_inline_data = r->cap.max_inline;
}

void uroce_qp_free(struct uroce_qp *qp)
{
	uroce_unmap(qp->mem, qp->mem_size);
	wq_fini(&qp->sq, qp->domain);
	wq_fini(&qp->rq, qp->domain);
	uroce_domain_put(qp->domain);
	free(qp);
}

static struct ibv_qp *create(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *a)
{
	struct uroce_context *ctx = to_context(ibctx);
	struct uroce_create_qp_rep rep;
	struct uroce_qp *qp = NULL;
	int err = check_init_attr(ctx, a), fd;

	if (!err && !(qp = calloc(1, sizeof(*qp))))
		err = ENOMEM;
	if (!err)
		err = request(ctx, qp, a, &rep, &fd);
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	qp->domain = uroce_domain_get(uroce_domain_of(a->pd));
	err = map_queues(ctx, qp, &rep, fd);
	if (err) {
		uroce_context_destroy(ctx, UROCE_OP_DESTROY_QP, rep.handle, NULL);
		uroce_qp_free(qp);
		errno = err;
		return NULL;
	}
	fill_public(ibctx, qp, a, &rep);
	pthread_mutex_lock(&ctx->objects);
	qp->next = ctx->qps;
	ctx->qps = qp;
	__atomic_store_n(&ctx->qp_slot[qp->slot], qp, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctx->objects);
	return &qp->v.qp;
}

struct ibv_qp *uroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .qp_context = attr->qp_context,
					  .send_cq = attr->send_cq,
					  .recv_cq = attr->recv_cq,
					  .srq = attr->srq,
					  .cap = attr->cap,
					  .qp_type = attr->qp_type,
					  .sq_sig_all = attr->sq_sig_all,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = pd };
	struct ibv_qp *qp = create(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp *uroce_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	if ((attr->comp_mask & ~(uint32_t)QP_ATTR_MASK) ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return uroce_xrc_target_create(ctx, attr);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
		errno = EINVAL;
		return NULL;
	}
	return create(ctx, attr);
}

static void lock_cqs(struct uroce_cq *a, struct uroce_cq *b)
{
	uroce_lock(a < b ? &a->lock : &b->lock);
	if (a != b)
		uroce_lock(a < b ? &b->lock : &a->lock);
}

static void unlock_cqs(struct uroce_cq *a, struct uroce_cq *b)
{
	if (a != b)
		uroce_unlock(&b->lock);
	uroce_unlock(&a->lock);
}

/*
 * The daemon completes nothing more for this QP; what lies in its CQs must not reach the program.
 * `objects` held.
 */
void uroce_qp_forget_work(struct uroce_qp *qp, bool leave)
{
	struct uroce_context *ctx = to_context(qp->v.qp.context);
	struct uroce_cq *send_cq = to_cq(qp->v.qp.send_cq), *recv_cq = to_cq(qp->v.qp.recv_cq);

	if (!send_cq) /* XRC receive: its completions are those of SRQs, and stay */
		return;
	if (!recv_cq)
		recv_cq = send_cq;
	lock_cqs(send_cq, recv_cq);
	if (uroce_ctrl_is_ours(&ctx->ctrl)) {
		uroce_cq_purge(send_cq, qp);
		if (recv_cq != send_cq)
			uroce_cq_purge(recv_cq, qp);
	}
	if (leave) {
		__atomic_store_n(&ctx->qp_slot[qp->slot], NULL, __ATOMIC_RELAXED);
		for (struct uroce_qp **p = &ctx->qps; *p; p = &(*p)->next) {
			if (*p == qp) {
				*p = qp->next;
				break;
			}
		}
	}
	unlock_cqs(send_cq, recv_cq);
}

/* As for a CQ: unread events are dropped, read ones must be acknowledged first. */
static void await_acks(struct uroce_context *ctx, struct uroce_qp *qp, uint32_t sent)
{
	uint32_t dropped = uroce_source_forget(ctx->async, (uintptr_t)qp);
	uint32_t read = atomic_load(&ctx->is_dead) ? atomic_load(&qp->events_read) : sent - dropped;
	struct ibv_qp *v = &qp->v.qp;

	pthread_mutex_lock(&v->mutex);
	while ((int32_t)(v->events_completed - read) < 0)
		pthread_cond_wait(&v->cond, &v->mutex);
	pthread_mutex_unlock(&v->mutex);
}

int uroce_destroy_qp(struct ibv_qp *ibqp)
{
	struct uroce_context *ctx = to_context(ibqp->context);
	struct uroce_qp *qp = to_qp(ibqp);
	uint32_t sent;
	int err;

	/* The daemon may give the slot away at once: whoever gets it must find it empty. */
	pthread_mutex_lock(&ctx->objects);
	err = uroce_context_destroy(ctx, UROCE_OP_DESTROY_QP, ibqp->handle, &sent);
	if (!err)
		uroce_qp_forget_work(qp, true);
	pthread_mutex_unlock(&ctx->objects);
	if (err)
		return err;
	if (uroce_ctrl_is_ours(&ctx->ctrl))
		await_acks(ctx, qp, sent);
	pthread_cond_destroy(&ibqp->cond);
	pthread_mutex_destroy(&ibqp->mutex);
	uroce_qp_free(qp);
	return 0;
}
