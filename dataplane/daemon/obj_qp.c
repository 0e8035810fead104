/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"

/* Bits of enum ibv_qp_attr_mask. */
#define QP_AV       (1u << 7)
#define QP_PATH_MTU (1u << 8)
#define QP_DEST_QPN (1u << 20)

static uint32_t align(uint32_t n, uint32_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static int check_caps(const struct uroce_qp_cap *c)
{
	if (c->max_send_wr > UROCE_MAX_QP_WR || c->max_recv_wr > UROCE_MAX_QP_WR ||
	    c->max_send_sge > UROCE_MAX_SGE || c->max_recv_sge > UROCE_MAX_SGE ||
	    c->max_inline > UROCE_MAX_INLINE)
		return -EINVAL;
	return 0;
}

/* What is granted, never less than asked for, and where it lies in the QP's memory. */
static void lay_out(const struct uroce_qp_cap *want, bool has_rq, struct uroce_create_qp_rep *rep)
{
	struct uroce_qp_cap *got = &rep->cap;
	uint32_t room = sizeof(struct uroce_sge) * want->max_send_sge;

	*got = *want;
	if (room < want->max_inline)
		room = want->max_inline;
	if (want->max_send_wr) {
		rep->sq_depth = got->max_send_wr = round_up_pow2(want->max_send_wr);
		rep->sq_stride = align((uint32_t)sizeof(struct uroce_wqe) + room, UROCE_CACHE_LINE);
		/* The rest of the last line is there anyway. */
		got->max_inline = rep->sq_stride - (uint32_t)sizeof(struct uroce_wqe);
		if (got->max_inline > UROCE_MAX_INLINE)
			got->max_inline = UROCE_MAX_INLINE;
	}
	if (!has_rq) {
		got->max_recv_wr = got->max_recv_sge = 0;
	} else if (want->max_recv_wr) {
		rep->rq_depth = got->max_recv_wr = round_up_pow2(want->max_recv_wr);
		rep->rq_stride = (uint32_t)(sizeof(struct uroce_rqe) +
					    sizeof(struct uroce_sge) * want->max_recv_sge);
	}
	rep->sq_off = sizeof(struct uroce_qp_page);
	rep->rq_off = rep->sq_off + rep->sq_depth * rep->sq_stride;
	rep->size = (uint64_t)rep->rq_off + (uint64_t)rep->rq_depth * rep->rq_stride;
}

static int check_request(struct session *s, const struct uroce_create_qp *req, struct qp *qp)
{
	bool is_xrc = req->type == UROCE_QPT_XRC_SEND;

	if ((req->type < UROCE_QPT_RC || req->type > UROCE_QPT_UD) && !is_xrc)
		return -EOPNOTSUPP;
	qp->pd = handles_get(&s->pds, req->pd);
	qp->send_cq = handles_get(&s->cqs, req->send_cq);
	qp->recv_cq = is_xrc ? NULL : handles_get(&s->cqs, req->recv_cq);
	if (!qp->pd || !qp->send_cq || (!qp->recv_cq && !is_xrc))
		return -EINVAL;
	if (req->srq && !is_xrc && !(qp->srq = handles_get(&s->srqs, req->srq)))
		return -EINVAL;
	qp->token = req->token;
	return check_caps(&req->cap);
}

static int alloc_memory(struct session *s, struct qp *qp, struct uroce_create_qp_rep *rep)
{
	size_t mem = (engine_qp_size(rep->sq_depth) + 63) & ~(size_t)63;
	int err = shm_create(&qp->shm, "uroce-qp", rep->size);

	if (err)
		return err;
	rep->size = qp->shm.size;
	qp->bytes = qp->shm.size + mem;
	err = session_charge(s, qp->bytes);
	if (err)
		goto free_shm;
	qp->mem = aligned_alloc(64, mem);
	if (!qp->mem) {
		err = -ENOMEM;
		goto refund;
	}
	memset(qp->mem, 0, mem);
	return 0;
refund:
	session_refund(s, qp->bytes);
free_shm:
	shm_destroy(&qp->shm);
	return err;
}

static void free_memory(struct session *s, struct qp *qp)
{
	free(qp->mem);
	session_refund(s, qp->bytes);
	shm_destroy(&qp->shm);
}

static int take_numbers(struct session *s, struct qp *qp)
{
	uint8_t generation;
	uint32_t index;

	if (numbers_take(&s->slots, &qp->slot, &generation))
		return -ENOMEM;
	if (numbers_take(&s->dev->qpns, &index, &generation)) {
		numbers_give(&s->slots, qp->slot);
		return -ENOMEM;
	}
	qp->qpn = ((uint32_t)generation << 16 | index) & 0xffffff;
	qp->worker = index % s->daemon->n_workers;
	return 0;
}

static void give_numbers(struct session *s, struct qp *qp)
{
	numbers_give(&s->dev->qpns, qp->qpn & 0xffff);
	numbers_give(&s->slots, qp->slot);
}

static int give_to_engine(struct session *s, const struct qp *qp, const struct uroce_create_qp *req,
			  const struct uroce_create_qp_rep *rep)
{
	struct cmd cmd = {
		.op = ENGINE_QP_ADD,
		.qp_add = { .qpn = qp->qpn,
			    .type = req->type,
			    .pd = qp->pd->number,
			    .send_cqn = qp->send_cq->cqn,
			    .recv_cqn = qp->recv_cq ? qp->recv_cq->cqn : 0,
			    .srqn = qp->srq ? qp->srq->srqn : 0,
			    .owner = s->id,
			    .slot = qp->slot,
			    .sq_sig_all = req->sq_sig_all != 0,
			    .token = qp->token,
			    .cap = rep->cap,
			    .sq_depth = rep->sq_depth,
			    .rq_depth = rep->rq_depth,
			    .sq_stride = rep->sq_stride,
			    .rq_stride = rep->rq_stride,
			    .page = (struct uroce_qp_page *)qp->shm.base,
			    .sq = qp->shm.base + rep->sq_off,
			    .rq = qp->shm.base + rep->rq_off,
			    .mem = qp->mem },
	};

	return device_command(s->dev, qp->worker, &cmd, NULL);
}

static void del_from_engine(struct session *s, const struct qp *qp, uint32_t *events)
{
	struct cmd cmd = { .op = ENGINE_QP_DEL, .key = qp->qpn };
	struct cmd_reply rep;

	device_command(s->dev, qp->worker, &cmd, &rep);
	*events = rep.events_sent;
}

/* What a QP uses cannot go before it. */
static void count_users(const struct qp *qp, int n)
{
	qp->pd->refs += (uint32_t)n;
	qp->send_cq->refs += (uint32_t)n;
	if (qp->recv_cq)
		qp->recv_cq->refs += (uint32_t)n;
	if (qp->srq)
		qp->srq->refs += (uint32_t)n;
}

static void publish(struct session *s, struct qp *qp, struct uroce_create_qp_rep *rep)
{
	count_users(qp, 1);
	s->dev->n_qp++;
	__atomic_store_n(&s->qpn_of_slot[qp->slot], qp->qpn, __ATOMIC_RELAXED);
	rep->qpn = qp->qpn;
	rep->slot = qp->slot;
	rep->worker = qp->worker;
}

int request_create_qp(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_create_qp *req = body;
	struct uroce_create_qp_rep *rep;
	struct qp *qp;
	uint32_t unused;
	int err;

	if (req->type == UROCE_QPT_XRC_RECV)
		return xrc_target_create(s, req, r);
	rep = reply_body(r, sizeof(*rep));
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	err = check_request(s, req, qp);
	if (err)
		goto free_qp;
	lay_out(&req->cap, qp->recv_cq && !qp->srq, rep);
	err = alloc_memory(s, qp, rep);
	if (err)
		goto free_qp;
	err = take_numbers(s, qp);
	if (err)
		goto free_memory;
	err = give_to_engine(s, qp, req, rep);
	if (err)
		goto give_numbers;
	if (handles_add(&s->qps, qp, &rep->handle)) {
		err = -ENOMEM;
		goto del_qp;
	}
	publish(s, qp, rep);
	reply_give(r, qp->shm.fd);
	qp->shm.fd = -1;
	return 0;
del_qp:
	del_from_engine(s, qp, &unused);
give_numbers:
	give_numbers(s, qp);
free_memory:
	free_memory(s, qp);
free_qp:
	free(qp);
	return err;
}

int request_modify_qp(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_modify_qp *req = body;
	struct qp *qp = handles_get(&s->qps, req->handle);
	struct cmd cmd = { .op = ENGINE_QP_MODIFY };
	uint32_t dest_qpn;
	int err;

	(void)r;
	if (!qp)
		return -EINVAL;
	cmd.qp_modify =
		(struct cmd_qp_modify) { .qpn = qp->qpn, .mask = req->mask, .attr = req->attr };
	dest_qpn = req->mask & QP_DEST_QPN ? req->attr.dest_qp_num : qp->dest_qpn;
	/* As Linux: no larger packets than the port can carry now. */
	if ((req->mask & QP_PATH_MTU) && req->attr.path_mtu > device_mtu_enum(s->dev->net.path_mtu))
		return -EINVAL;
	if (req->mask & QP_AV) {
		err = device_resolve(s->dev, &req->attr.ah, qp->qpn, dest_qpn, &cmd.qp_modify.path);
		if (err)
			return err;
	}
	err = device_command(s->dev, qp->worker, &cmd, NULL);
	if (!err)
		qp->dest_qpn = dest_qpn;
	return err;
}

int request_query_qp(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_query_qp_rep *rep = reply_body(r, sizeof(*rep));
	const struct qp *qp = handles_get(&s->qps, h->handle);
	struct cmd cmd = { .op = ENGINE_QP_QUERY };
	struct cmd_reply out;
	int err;

	if (!qp)
		return -EINVAL;
	cmd.key = qp->qpn;
	err = device_command(s->dev, qp->worker, &cmd, &out);
	rep->attr = out.attr;
	return err;
}

void qp_free(struct session *s, struct qp *qp)
{
	if (qp->xrcd) {
		xrc_target_free(s, qp);
		return;
	}
	mcast_free(s, qp);
	give_numbers(s, qp);
	free_memory(s, qp);
	count_users(qp, -1);
	s->dev->n_qp--;
	free(qp);
}

int request_destroy_qp(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_destroy_rep *rep = reply_body(r, sizeof(*rep));
	struct qp *qp = handles_get(&s->qps, h->handle);

	if (!qp)
		return -EINVAL;
	if (qp->xrcd)
		return xrc_target_destroy(s, h->handle, rep);
	if (qp->groups)
		return -EBUSY; /* as Linux does: it has to be detached first */
	handles_del(&s->qps, h->handle);
	__atomic_store_n(&s->qpn_of_slot[qp->slot], 0, __ATOMIC_RELAXED);
	del_from_engine(s, qp, &rep->events_sent);
	/* What still waits for room in the socket is never sent. */
	rep->events_sent -= (uint32_t)notify_forget(&s->async, qp->token);
	qp_free(s, qp);
	return 0;
}
