/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections: domains, SRQs of a domain, and its receive QPs. Such a QP has no
 * queues and belongs to its domain; what we hold is a handle, of as many processes as there are.
 */
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

struct uroce_xrcd {
	struct ibv_xrcd v; /* first */
	uint32_t handle;
};

static uint32_t xrcd_handle(const struct ibv_xrcd *xrcd)
{
	return ((const struct uroce_xrcd *)xrcd)->handle;
}

struct ibv_xrcd *uroce_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct uroce_create_xrcd req = { .flags = (uint32_t)attr->oflags };
	struct uroce_handle rep;
	struct uroce_ctrl_msg m = { .op = UROCE_OP_CREATE_XRCD,
				    .body = &req,
				    .len = sizeof(req),
				    .send_fd = attr->fd,
				    .rep = &rep,
				    .rep_size = sizeof(rep) };
	struct uroce_xrcd *xrcd = NULL;
	int err = attr->comp_mask & ~needed ? EOPNOTSUPP : EINVAL;

	if (attr->comp_mask != needed)
		goto fail;
	err = EBADF; /* asked here: a message cannot bring what is not open */
	if (attr->fd != -1 && fcntl(attr->fd, F_GETFD) < 0)
		goto fail;
	err = ENOMEM;
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		goto fail;
	err = uroce_context_send(to_context(ctx), &m);
	if (err)
		goto fail;
	xrcd->v.context = ctx;
	xrcd->handle = rep.handle;
	return &xrcd->v;
fail:
	free(xrcd);
	errno = err;
	return NULL;
}

int uroce_close_xrcd(struct ibv_xrcd *xrcd)
{
	int err = uroce_context_destroy(to_context(xrcd->context), UROCE_OP_DESTROY_XRCD,
					xrcd_handle(xrcd), NULL);

	if (!err)
		free(xrcd);
	return err;
}

static int check_srq(const struct ibv_context *ctx, const struct ibv_srq_init_attr_ex *a)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (a->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc))
		return EOPNOTSUPP; /* tag matching, and what is newer */
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd || a->pd->context != ctx)
		return EINVAL;
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || a->srq_type == IBV_SRQT_BASIC)
		return 0;
	if (a->srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP;
	if ((a->comp_mask & xrc) != xrc || !a->xrcd || a->xrcd->context != ctx || !a->cq ||
	    a->cq->context != ctx)
		return EINVAL;
	return 0;
}

/* The public part, which the library fills for ibv_create_srq only. */
static void srq_fill_public(struct ibv_context *ctx, struct ibv_srq *v,
			    const struct ibv_srq_init_attr_ex *a)
{
	v->context = ctx;
	v->srq_context = a->srq_context;
	v->pd = a->pd;
	v->events_completed = 0;
	pthread_mutex_init(&v->mutex, NULL);
	pthread_cond_init(&v->cond, NULL);
}

struct ibv_srq *uroce_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct uroce_create_srq how = { 0 };
	struct uroce_srq *srq;
	int err = check_srq(ctx, attr);

	if (err) {
		errno = err;
		return NULL;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC) {
		how.type = attr->srq_type;
		how.xrcd = xrcd_handle(attr->xrcd);
		how.cq = attr->cq->handle;
	}
	srq = uroce_srq_make(attr->pd, &attr->attr, &how);
	if (!srq)
		return NULL;
	srq_fill_public(ctx, &srq->v.srq, attr);
	return &srq->v.srq;
}

int uroce_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	*srq_num = to_srq(srq)->srqn;
	return 0;
}

static void target_fill_public(struct ibv_context *ctx, struct uroce_qp *qp, void *qp_context,
			       const struct uroce_create_qp_rep *r)
{
	struct ibv_qp *v = &qp->v.qp;

	v->context = ctx;
	v->qp_context = qp_context;
	v->handle = r->handle;
	v->qp_num = r->qpn;
	v->qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&v->mutex, NULL);
	pthread_cond_init(&v->cond, NULL);
	qp->slot = r->slot;
	/* Queues that hold nothing, so that nobody has to ask whether they are there. */
	uroce_wq_init(&qp->sq, NULL, NULL, NULL, 0, 0);
	uroce_wq_init(&qp->rq, NULL, NULL, NULL, 0, 0);
}

/* op: CREATE_QP or OPEN_QP, whose request is req; *token in it is to be the QP's address. */
static struct uroce_qp *target_make(struct ibv_context *ctx, uint32_t op, const void *req,
				    uint32_t len, uint64_t *token, void *qp_context)
{
	struct uroce_qp *qp = calloc(1, sizeof(*qp));
	struct uroce_create_qp_rep rep;
	int err;

	if (!qp)
		return NULL;
	*token = (uintptr_t)qp;
	err = uroce_context_call(to_context(ctx), op, req, len, &rep, sizeof(rep));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	target_fill_public(ctx, qp, qp_context, &rep);
	return qp;
}

struct ibv_qp *uroce_xrc_target_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct uroce_create_qp req = { .type = IBV_QPT_XRC_RECV };
	struct uroce_qp *qp;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd ||
	    attr->xrcd->context != ctx) {
		errno = EINVAL;
		return NULL;
	}
	/* It sends nothing, so there is nothing that ibv_wr_* could post. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr->send_ops_flags) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	req.xrcd = xrcd_handle(attr->xrcd);
	qp = target_make(ctx, UROCE_OP_CREATE_QP, &req, sizeof(req), &req.token, attr->qp_context);
	if (!qp)
		return NULL;
	qp->v.qp.state = IBV_QPS_RESET;
	attr->cap = (struct ibv_qp_cap) { 0 };
	return &qp->v.qp;
}

struct ibv_qp *uroce_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				IBV_QP_OPEN_ATTR_TYPE;
	struct uroce_open_qp req = { .qpn = attr->qp_num };
	struct uroce_qp *qp;

	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((attr->comp_mask & needed) != needed || attr->qp_type != IBV_QPT_XRC_RECV ||
	    !attr->xrcd || attr->xrcd->context != ctx) {
		errno = EINVAL;
		return NULL;
	}
	req.xrcd = xrcd_handle(attr->xrcd);
	qp = target_make(ctx, UROCE_OP_OPEN_QP, &req, sizeof(req), &req.token,
			 attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
	if (!qp)
		return NULL;
	qp->v.qp.state = IBV_QPS_UNKNOWN; /* whoever made it knows; a query tells */
	return &qp->v.qp;
}
