/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC receive QPs ("targets"). One lives in its domain for as long as any session holds it open: by
 * the handle of its creation, or by one of OPEN_QP. It has no queues, so no memory that a program
 * sees and no doorbell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/daemon/xrc_domain.h"

#define PAGE_SIZE ((sizeof(struct uroce_qp_page) + 63) & ~(size_t)63)

static size_t mem_size(void)
{
	return PAGE_SIZE + ((engine_qp_size(0) + 63) & ~(size_t)63);
}

static int give_to_engine(struct session *s, struct xrc_target *t, uint32_t xrcd)
{
	struct cmd cmd = { .op = ENGINE_QP_ADD,
			   .qp_add = { .qpn = t->qpn,
				       .type = UROCE_QPT_XRC_RECV,
				       .xrcd = xrcd,
				       .owner = OWNER_XRC_TARGET,
				       .slot = UROCE_NO_SLOT,
				       .token = (uintptr_t)t,
				       .page = t->mem,
				       .mem = (uint8_t *)t->mem + PAGE_SIZE } };

	return device_command(s->dev, t->worker, &cmd, NULL);
}

static void target_destroy(struct session *s, struct xrc_domain *domain, struct xrc_target *t)
{
	struct cmd cmd = { .op = ENGINE_QP_DEL, .key = t->qpn };
	struct xrc_target **p = &domain->targets;

	device_command(s->dev, t->worker, &cmd, NULL);
	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	numbers_give(&s->dev->qpns, t->qpn & 0xffff);
	s->dev->n_qp--;
	pthread_mutex_destroy(&t->lock);
	free(t->mem);
	free(t);
}

static int target_make(struct session *s, struct xrc_domain *domain, struct xrc_target **out)
{
	struct xrc_target *t = calloc(1, sizeof(*t));
	uint8_t generation;
	uint32_t index;
	int err = -ENOMEM;

	if (!t)
		return -ENOMEM;
	t->mem = aligned_alloc(64, mem_size());
	if (!t->mem)
		goto free_target;
	memset(t->mem, 0, mem_size());
	if (numbers_take(&s->dev->qpns, &index, &generation))
		goto free_mem;
	t->qpn = ((uint32_t)generation << 16 | index) & 0xffffff;
	t->worker = index % s->daemon->n_workers;
	pthread_mutex_init(&t->lock, NULL);
	err = give_to_engine(s, t, domain->number);
	if (err)
		goto give_number;
	t->next = domain->targets;
	domain->targets = t;
	s->dev->n_qp++;
	*out = t;
	return 0;
give_number:
	pthread_mutex_destroy(&t->lock);
	numbers_give(&s->dev->qpns, index);
free_mem:
	free(t->mem);
free_target:
	free(t);
	return err;
}

static void leave(struct session *s, struct qp *qp)
{
	struct xrc_target *t = qp->target;
	struct xrc_opener **p;
	bool is_last;

	pthread_mutex_lock(&t->lock);
	for (p = &t->openers; *p != qp->opener; p = &(*p)->next)
		;
	*p = qp->opener->next;
	is_last = !t->openers;
	pthread_mutex_unlock(&t->lock);
	qp->target = NULL;
	if (is_last)
		target_destroy(s, qp->xrcd->domain, t);
}

/* Whoever keeps a target alive pays for it. */
static int join(struct session *s, struct xrcd *xrcd, struct xrc_target *t, uint64_t token,
		struct uroce_create_qp_rep *rep)
{
	struct qp *qp = calloc(1, sizeof(*qp));
	struct xrc_opener *opener = calloc(1, sizeof(*opener));
	int err = qp && opener ? session_charge(s, mem_size()) : -ENOMEM;

	if (err)
		goto free_both;
	if (handles_add(&s->qps, qp, &rep->handle)) {
		err = -ENOMEM;
		goto refund;
	}
	*opener = (struct xrc_opener) { .session = s, .token = token };
	*qp = (struct qp) { .xrcd = xrcd,
			    .target = t,
			    .opener = opener,
			    .qpn = t->qpn,
			    .worker = t->worker,
			    .slot = UROCE_NO_SLOT,
			    .bytes = mem_size(),
			    .token = token };
	xrcd->refs++;
	pthread_mutex_lock(&t->lock);
	opener->next = t->openers;
	t->openers = opener;
	pthread_mutex_unlock(&t->lock);
	rep->qpn = t->qpn;
	rep->slot = UROCE_NO_SLOT;
	rep->worker = t->worker;
	return 0;
refund:
	session_refund(s, mem_size());
free_both:
	free(opener);
	free(qp);
	return err;
}

int xrc_target_create(struct session *s, const struct uroce_create_qp *req, struct reply *r)
{
	struct uroce_create_qp_rep *rep = reply_body(r, sizeof(*rep));
	struct xrcd *xrcd = handles_get(&s->xrcds, req->xrcd);
	struct xrc_target *t;
	int err = xrcd ? target_make(s, xrcd->domain, &t) : -EINVAL;

	if (err)
		return err;
	err = join(s, xrcd, t, req->token, rep);
	if (err)
		target_destroy(s, xrcd->domain, t);
	return err;
}

int request_open_qp(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_open_qp *req = body;
	struct uroce_create_qp_rep *rep = reply_body(r, sizeof(*rep));
	struct xrcd *xrcd = handles_get(&s->xrcds, req->xrcd);
	struct xrc_target *t = xrcd ? xrcd->domain->targets : NULL;

	while (t && t->qpn != req->qpn)
		t = t->next;
	return t ? join(s, xrcd, t, req->token, rep) : -EINVAL;
}

void xrc_target_free(struct session *s, struct qp *qp)
{
	if (qp->target)
		leave(s, qp);
	qp->xrcd->refs--;
	session_refund(s, qp->bytes);
	free(qp->opener);
	free(qp);
}

int xrc_target_destroy(struct session *s, uint32_t handle, struct uroce_destroy_rep *rep)
{
	struct qp *qp = handles_del(&s->qps, handle);

	leave(s, qp);
	/* Nobody adds to it any more; what still waits for room in the socket is never sent. */
	rep->events_sent = qp->opener->events_sent;
	rep->events_sent -= (uint32_t)notify_forget(&s->async, qp->token);
	xrc_target_free(s, qp);
	return 0;
}

void xrc_targets_leave(struct session *s)
{
	uint32_t pos = 0;
	struct qp *qp;

	while ((qp = handles_next(&s->qps, &pos)))
		if (qp->xrcd)
			leave(s, qp);
}

void xrc_target_event(struct daemon *d, struct xrc_target *t, uint32_t type)
{
	bool is_kept = false;

	pthread_mutex_lock(&t->lock);
	for (struct xrc_opener *o = t->openers; o; o = o->next) {
		struct uroce_async_record rec = { .element = o->token, .type = type };

		o->events_sent++;
		is_kept |= notify_send(&o->session->async, &rec);
	}
	pthread_mutex_unlock(&t->lock);
	if (is_kept)
		control_poke(d->control, CONTROL_POKE_FLUSH);
}
