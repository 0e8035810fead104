/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/fake_app.h"

#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/abi/ring.h"

static void on_notify(void *ctx, uint32_t owner, uint32_t cqn, uint64_t channel, uint64_t token)
{
	struct fake_cq *cq = (struct fake_cq *)(uintptr_t)token;

	(void)ctx, (void)owner, (void)channel;
	assert(cq->cqn == cqn);
	cq->n_notified++;
}

static struct fake_dev *dev_of_mem(void *ctx)
{
	return (struct fake_dev *)((char *)ctx - offsetof(struct fake_dev, mem));
}

static void on_event(void *ctx, const struct engine_event *ev)
{
	struct fake_dev *d = dev_of_mem(ctx);

	if (d->n_events < FAKE_MAX_EVENTS)
		d->event[d->n_events] = *ev;
	d->n_events++;
}

static void on_trace(void *ctx, const struct trace_record *rec)
{
	struct fake_dev *d = dev_of_mem(ctx);

	if (d->on_trace)
		d->on_trace(d->trace_ctx, rec);
}

static void *zalloc(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) & ~(size_t)63);

	assert(p);
	return memset(p, 0, (size + 63) & ~(size_t)63);
}

void fake_dev_init(struct fake_dev *d, unsigned side, const struct engine_conf *conf)
{
	struct engine_conf c = conf ? *conf : (struct engine_conf) { .check_icrc = true };

	memset(d, 0, sizeof(*d));
	c.max_qp = c.max_qp ? c.max_qp : FAKE_MAX_QP;
	c.max_cq = c.max_cq ? c.max_cq : FAKE_MAX_CQ;
	c.max_mr = c.max_mr ? c.max_mr : FAKE_MAX_MR;
	fake_mem_init(&d->mem);
	memcpy(d->mac, (uint8_t[]) { 0x02, 0x55, 0x52, 0x4f, 0, (uint8_t)(side + 1) }, 6);
	d->gid[10] = d->gid[11] = 0xff;
	memcpy(d->gid + 12, (uint8_t[]) { 198, 18, 0, (uint8_t)(side + 1) }, 4);
	d->ports = (struct ports) {
		.ctx = &d->mem,
		.mem_read = fake_mem_read,
		.mem_write = fake_mem_write,
		.mem_atomic = fake_mem_atomic,
		.cq_notify = on_notify,
		.event = on_event,
		.trace = on_trace,
	};
	d->arena = zalloc(engine_size(&c));
	d->engine = engine_create(&c, &d->ports, d->arena);
	assert(d->engine);
}

void fake_dev_free(struct fake_dev *d)
{
	for (unsigned i = 0; i < FAKE_MAX_QP; i++)
		if (d->qp[i])
			fake_qp_del(d->qp[i]);
	for (unsigned i = 0; i < FAKE_MAX_CQ; i++)
		if (d->cq[i])
			fake_cq_del(d->cq[i]);
	fake_mem_free(&d->mem);
	free(d->arena);
}

static int command(struct fake_dev *d, const struct cmd *cmd, struct cmd_reply *reply)
{
	struct cmd_reply none;

	return engine_command(d->engine, d->now, cmd, reply ? reply : &none);
}

struct fake_region *fake_reg_pd(struct fake_dev *d, uint64_t len, uint32_t access, uint32_t pd)
{
	struct fake_region *r = fake_region_new(&d->mem, len);
	uint32_t slot = 1;
	struct cmd cmd;
	int err;

	while (slot < FAKE_MAX_MR && d->mr_owner[slot])
		slot++;
	assert(slot < FAKE_MAX_MR);
	d->mr_owner[slot] = r->index + 1;
	r->key = slot << 8 | (++d->mr_generation[slot] & 0xff);
	r->access = access;
	r->pd = pd;
	r->live = true;
	cmd = (struct cmd) { .op = ENGINE_MR_ADD,
			     .mr_add = { .key = r->key,
					 .pd = pd,
					 .access = access,
					 .iova = r->iova,
					 .length = len,
					 .addr = r->addr,
					 .region = r->index + 1 } };
	err = command(d, &cmd, NULL);
	assert(!err);
	(void)err;
	return r;
}

struct fake_region *fake_reg(struct fake_dev *d, uint64_t len, uint32_t access)
{
	return fake_reg_pd(d, len, access, 1);
}

int fake_dereg(struct fake_dev *d, struct fake_region *r)
{
	struct cmd cmd = { .op = ENGINE_MR_DEL, .key = r->key };
	int err = command(d, &cmd, NULL);

	r->live = false;
	d->mr_owner[r->key >> 8] = 0;
	return err;
}

struct fake_cq *fake_cq_new(struct fake_dev *d, uint32_t depth)
{
	struct fake_cq *cq = calloc(1, sizeof(*cq));
	uint32_t i = 0;
	struct cmd cmd;
	int err;

	assert(cq);
	while (i < FAKE_MAX_CQ && d->cq[i])
		i++;
	assert(i < FAKE_MAX_CQ);
	d->cq[i] = cq;
	cq->dev = d;
	cq->depth = depth;
	cq->cqn = (++d->cq_generation[i] & 0xff) << 16 | i;
	cq->page = zalloc(sizeof(*cq->page) + sizeof(struct uroce_ring) +
			  depth * sizeof(struct uroce_cqe));
	cq->ring = (struct uroce_ring *)(cq->page + 1);
	cq->cqes = (struct uroce_cqe *)(cq->ring + 1);
	cmd = (struct cmd) { .op = ENGINE_CQ_ADD,
			     .cq_add = { .cqn = cq->cqn,
					 .depth = depth,
					 .owner = 1,
					 .page = cq->page,
					 .ring = cq->ring,
					 .channel = 7,
					 .token = (uint64_t)(uintptr_t)cq } };
	err = command(d, &cmd, NULL);
	assert(!err);
	(void)err;
	return cq;
}

int fake_cq_del(struct fake_cq *cq)
{
	struct cmd cmd = { .op = ENGINE_CQ_DEL, .key = cq->cqn };
	int err = command(cq->dev, &cmd, NULL);

	if (err)
		return err;
	cq->dev->cq[cq->cqn & 0xffff] = NULL;
	free(cq->page);
	free(cq);
	return 0;
}

static uint32_t pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static struct fake_qp *qp_alloc(struct fake_dev *d, const struct fake_qp_conf *conf)
{
	struct fake_qp *qp = calloc(1, sizeof(*qp));
	uint32_t payload;

	assert(qp);
	qp->dev = d;
	qp->conf = *conf;
	qp->conf.type = conf->type ? conf->type : UROCE_QPT_RC;
	qp->conf.pd = conf->pd ? conf->pd : 1;
	qp->conf.sq_depth = conf->sq_depth ? conf->sq_depth : 64;
	qp->conf.rq_depth = conf->rq_depth ? conf->rq_depth : 64;
	qp->conf.max_sge = conf->max_sge ? conf->max_sge : 4;
	qp->conf.max_inline = conf->max_inline ? conf->max_inline : 256;
	qp->cap = (struct uroce_qp_cap) { qp->conf.sq_depth, qp->conf.rq_depth, qp->conf.max_sge,
					  qp->conf.max_sge, qp->conf.max_inline };
	if (conf->xrcd)
		qp->conf.sq_depth = qp->conf.rq_depth = 0;
	payload = qp->cap.max_send_sge * (uint32_t)sizeof(struct uroce_sge);
	if (payload < qp->cap.max_inline)
		payload = qp->cap.max_inline;
	qp->sq_stride = pow2((uint32_t)sizeof(struct uroce_wqe) + payload);
	qp->rq_stride = pow2((uint32_t)sizeof(struct uroce_rqe) +
			     qp->cap.max_recv_sge * (uint32_t)sizeof(struct uroce_sge));
	qp->page = zalloc(sizeof(*qp->page));
	qp->sq = zalloc((size_t)qp->conf.sq_depth * qp->sq_stride);
	qp->rq = zalloc((size_t)qp->conf.rq_depth * qp->rq_stride);
	qp->mem = zalloc(engine_qp_size(qp->conf.sq_depth));
	return qp;
}

static void qp_release(struct fake_qp *qp)
{
	free(qp->page);
	free(qp->sq);
	free(qp->rq);
	free(qp->mem);
	free(qp);
}

struct fake_qp *fake_qp_new(struct fake_dev *d, const struct fake_qp_conf *conf)
{
	struct fake_qp *qp = qp_alloc(d, conf);
	uint32_t i = 2;
	struct cmd cmd;

	while (i < FAKE_MAX_QP && d->qp[i])
		i++;
	assert(i < FAKE_MAX_QP);
	qp->qpn = (++d->qp_generation[i] << 16 | i) & 0xffffff;
	qp->slot = i;
	cmd = (struct cmd) { .op = ENGINE_QP_ADD,
			     .qp_add = { .qpn = qp->qpn,
					 .type = qp->conf.type,
					 .pd = qp->conf.pd,
					 .send_cqn = conf->send_cq ? conf->send_cq->cqn : 0,
					 .recv_cqn = conf->recv_cq ? conf->recv_cq->cqn : 0,
					 .xrcd = conf->xrcd,
					 .srqn = conf->srqn,
					 .owner = 1,
					 .slot = qp->slot,
					 .sq_sig_all = conf->sq_sig_all,
					 .token = (uint64_t)(uintptr_t)qp,
					 .cap = qp->cap,
					 .sq_depth = qp->conf.sq_depth,
					 .rq_depth = qp->conf.rq_depth,
					 .sq_stride = qp->sq_stride,
					 .rq_stride = qp->rq_stride,
					 .page = qp->page,
					 .sq = qp->sq,
					 .rq = qp->rq,
					 .mem = qp->mem } };
	if (command(d, &cmd, NULL)) {
		qp_release(qp);
		return NULL;
	}
	d->qp[i] = qp;
	return qp;
}

int fake_qp_del(struct fake_qp *qp)
{
	struct cmd cmd = { .op = ENGINE_QP_DEL, .key = qp->qpn };
	int err = command(qp->dev, &cmd, NULL);

	qp->dev->qp[qp->slot] = NULL;
	qp_release(qp);
	return err;
}

/* A reset QP starts with empty queues on both sides: the provider zeroes its indices too. */
static void queues_restart(struct fake_qp *qp)
{
	qp->sq_prod = qp->rq_prod = 0;
	qp->sq_done = qp->rq_done = 0;
	uroce_ring_publish(&qp->page->sq, 0);
	uroce_ring_publish(&qp->page->rq, 0);
}

int fake_qp_modify(struct fake_qp *qp, const struct uroce_qp_attr *attr, uint32_t mask,
		   const struct net_path *path)
{
	struct cmd cmd = { .op = ENGINE_QP_MODIFY,
			   .qp_modify = { .qpn = qp->qpn, .mask = mask, .attr = *attr } };
	int err;

	if (path)
		cmd.qp_modify.path = *path;
	err = command(qp->dev, &cmd, NULL);
	if (!err && (mask & IBV_QP_STATE) && attr->qp_state == UROCE_QPS_RESET)
		queues_restart(qp);
	return err;
}

int fake_qp_to(struct fake_qp *qp, enum uroce_qps state)
{
	struct uroce_qp_attr attr = { .qp_state = state };

	return fake_qp_modify(qp, &attr, IBV_QP_STATE, NULL);
}

enum uroce_qps fake_qp_state(const struct fake_qp *qp)
{
	struct cmd cmd = { .op = ENGINE_QP_QUERY, .key = qp->qpn };
	struct cmd_reply reply;
	int err = command(qp->dev, &cmd, &reply);

	assert(!err);
	(void)err;
	return reply.attr.qp_state;
}

uint32_t fake_sq_room(const struct fake_qp *qp)
{
	return qp->conf.sq_depth - (qp->sq_prod - qp->sq_done);
}

uint32_t fake_rq_room(const struct fake_qp *qp)
{
	return qp->conf.rq_depth - (qp->rq_prod - qp->rq_done);
}

bool fake_post_send(struct fake_qp *qp, const struct fake_wr *wr)
{
	uint8_t *slot = qp->sq + (size_t)(qp->sq_prod & (qp->conf.sq_depth - 1)) * qp->sq_stride;
	struct uroce_wqe w = {
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->flags,
		.num_sge = (uint16_t)wr->n_sge,
		.inline_len = wr->inline_len,
		.imm = wr->imm,
		.rkey = wr->rkey,
		.remote_addr = wr->remote_addr,
		.compare_add = wr->compare_add,
		.swap = wr->swap,
		.ah = wr->ah,
		.remote_qpn = wr->remote_qpn,
		.remote_qkey = wr->remote_qkey,
	};
	size_t room = qp->sq_stride - sizeof(w);

	if (!fake_sq_room(qp))
		return false;
	memcpy(slot, &w, sizeof(w));
	if (wr->flags & UROCE_WQE_INLINE) {
		if (wr->inline_data)
			memcpy(slot + sizeof(w), wr->inline_data,
			       wr->inline_len < room ? wr->inline_len : room);
	} else {
		uint32_t n = wr->n_sge < UROCE_MAX_SGE ? wr->n_sge : UROCE_MAX_SGE;
		size_t len = n * sizeof(struct uroce_sge);

		memcpy(slot + sizeof(w), wr->sge, len < room ? len : room);
	}
	uroce_ring_publish(&qp->page->sq, ++qp->sq_prod);
	qp->rung = true;
	return true;
}

bool fake_post_recv(struct fake_qp *qp, uint64_t wr_id, const struct uroce_sge *sge, uint32_t n_sge)
{
	uint8_t *slot = qp->rq + (size_t)(qp->rq_prod & (qp->conf.rq_depth - 1)) * qp->rq_stride;
	struct uroce_rqe r = { .wr_id = wr_id, .num_sge = n_sge };
	size_t room = qp->rq_stride - sizeof(r), len = n_sge * sizeof(*sge);

	if (!fake_rq_room(qp))
		return false;
	memcpy(slot, &r, sizeof(r));
	if (sge)
		memcpy(slot + sizeof(r), sge, len < room ? len : room);
	uroce_ring_publish(&qp->page->rq, ++qp->rq_prod);
	if (uroce_qp_wants_doorbell(qp->page))
		qp->rung = true;
	return true;
}

void fake_dev_doorbells(struct fake_dev *d, uint64_t now)
{
	d->now = now;
	for (unsigned i = 0; i < FAKE_MAX_QP; i++) {
		if (!d->qp[i] || !d->qp[i]->rung)
			continue;
		d->qp[i]->rung = false;
		engine_doorbell(d->engine, now, d->qp[i]->qpn);
	}
}

/* "Free-running index of the WQE in its queue: frees it and all before." */
static void reclaim(struct fake_dev *d, const struct uroce_cqe *c)
{
	struct fake_qp *qp = c->qp_slot < FAKE_MAX_QP ? d->qp[c->qp_slot] : NULL;

	if (!qp || qp->qpn != c->qpn)
		return;
	if (c->queue == UROCE_CQE_SQ)
		qp->sq_done = c->wqe_index + 1;
	else if (c->queue == UROCE_CQE_RQ)
		qp->rq_done = c->wqe_index + 1;
}

int fake_poll(struct fake_cq *cq, struct uroce_cqe *out, unsigned n)
{
	int64_t pending = uroce_ring_pending(cq->ring, cq->cons, cq->depth);
	unsigned taken = 0;

	if (pending < 0)
		return -1;
	for (; pending > 0 && taken < n; pending--, taken++) {
		out[taken] = cq->cqes[cq->cons++ & (cq->depth - 1)];
		reclaim(cq->dev, &out[taken]);
	}
	uroce_ring_consume(cq->ring, cq->cons);
	return (int)taken;
}

unsigned fake_events(const struct fake_dev *d, uint32_t type, uint32_t number)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < d->n_events && i < FAKE_MAX_EVENTS; i++)
		n += d->event[i].type == type && d->event[i].qpn == number;
	return n;
}

uint64_t fake_counter(const struct fake_dev *d, const char *name)
{
	for (unsigned i = 0; i < engine_n_counters(); i++)
		if (!strcmp(engine_counter_name(i), name))
			return engine_counters(d->engine)[i];
	return UINT64_MAX;
}
