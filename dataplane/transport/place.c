/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/place.h"

#include "dataplane/transport/core.h"

/* Where an item's data goes that is no WRITE's; pieces, or -UROCE_VERR_*. */
static int place_map(struct engine *e, const struct place_item *it, struct mem_vec *vec)
{
	struct qp *qp = it->qp;
	struct uroce_sge sge[UROCE_MAX_SGE];
	const struct send_rec *rec;
	const uint8_t *slot;

	if (it->kind == PLACE_RECV)
		return sge_map(e, srq_pd(qp), qp->resp.rqe.sge, qp->resp.rqe.num_sge,
			       UROCE_ACCESS_LOCAL_WRITE, it->off, it->len, vec);
	rec = qp_rec(qp, it->wqe);
	slot = qp->sq + (size_t)(it->wqe & (qp->sq_depth - 1)) * qp->sq_stride;
	__builtin_memcpy(sge, slot + sizeof(struct uroce_wqe), rec->num_sge * sizeof(sge[0]));
	return sge_map(e, qp->pd, sge, rec->num_sge, UROCE_ACCESS_LOCAL_WRITE, it->off, it->len,
		       vec);
}

static void complete_failed(struct engine *e, struct place_item *it, uint8_t status, uint32_t verr)
{
	it->cqe.opcode = UROCE_WC_RECV;
	it->cqe.status = status;
	it->cqe.vendor_err = verr;
	it->cqe.flags = 0;
	it->cqe.byte_len = 0;
	qp_complete_recv(e, it->qp, &it->cqe, false);
}

/* later: the n items after it; those of the same QP go no further. */
static void place_failed(struct engine *e, struct place_item *it, uint32_t verr,
			 struct place_item *later, unsigned n)
{
	struct qp *qp = it->qp;

	if (it->kind == PLACE_READ && it->wqe != qp->req.una) {
		comp_read_forget(qp); /* comes again, and is judged in its turn */
		return;
	}
	if (it->kind == PLACE_RECV) {
		if (!it->has_cqe)
			qp->resp.has_rqe = false;
		complete_failed(e, it, UROCE_WC_LOC_PROT_ERR, verr);
	} else if (it->has_cqe) {
		complete_failed(e, it, UROCE_WC_WR_FLUSH_ERR, 0);
	}
	for (; n; n--, later++) {
		if (later->qp != qp)
			continue;
		if (later->has_cqe)
			complete_failed(e, later, UROCE_WC_WR_FLUSH_ERR, 0);
		later->qp = NULL;
	}
	if (it->kind == PLACE_READ) {
		requester_fail(e, qp, UROCE_WC_LOC_PROT_ERR, verr);
		return;
	}
	resp_queue_retract(qp, it->psn);
	responder_apply(e, qp, it->kind == PLACE_RECV ? RESP_RECV_BROKEN : RESP_BAD_ACCESS,
			it->psn);
}

static void place_done(struct engine *e, struct place_item *it)
{
	if (it->has_cqe)
		qp_complete_recv(e, it->qp, &it->cqe, it->is_solicited);
}

static void place_clear(struct place *b)
{
	b->n = b->n_vec = b->n_buf = 0;
	b->is_open = false;
}

/* The whole could not be written: item by item, to see whose fault it is. */
static void place_one_by_one(struct engine *e)
{
	struct place b = e->place;
	const struct mem_vec *vec = b.vec;
	const struct buf_vec *buf = b.buf;

	place_clear(&e->place);
	for (unsigned i = 0; i < b.n; i++) {
		struct place_item *it = &b.item[i];

		if (it->qp) {
			if (e->ports.mem_write(e->ports.ctx, vec, it->n_vec, buf, it->n_buf))
				place_failed(e, it, UROCE_VERR_APP_MEMORY, it + 1, b.n - i - 1);
			else
				place_done(e, it);
		}
		vec += it->n_vec;
		buf += it->n_buf;
	}
}

/* What is closed. */
static bool place_write(struct engine *e)
{
	struct place *b = &e->place;

	if (!b->n)
		return true;
	if (e->ports.mem_write(e->ports.ctx, b->vec, b->n_vec, b->buf, b->n_buf)) {
		place_one_by_one(e);
		return false;
	}
	for (unsigned i = 0; i < b->n; i++)
		place_done(e, &b->item[i]);
	place_clear(b);
	return true;
}

static bool close_open(struct engine *e)
{
	struct place *b = &e->place;
	struct place_item *it = &b->item[b->n - 1], failed;
	int n;

	b->is_open = false;
	if (it->kind == PLACE_WRITE)
		return true;
	n = place_map(e, it, b->vec + b->n_vec);
	if (n >= 0) {
		it->n_vec = (unsigned)n;
		b->n_vec += (unsigned)n;
		return true;
	}
	failed = *it;
	b->n--;
	b->n_buf -= it->n_buf;
	place_write(e);
	if (failed.qp->state != UROCE_QPS_ERR)
		place_failed(e, &failed, (uint32_t)-n, NULL, 0);
	return false;
}

bool place_close(struct engine *e, struct qp *qp)
{
	const struct place *b = &e->place;

	return !b->is_open || b->item[b->n - 1].qp != qp || close_open(e);
}

bool place_flush(struct engine *e)
{
	bool is_closed = !e->place.is_open || close_open(e);

	return place_write(e) && is_closed;
}

void place_then_complete(struct engine *e, struct qp *qp, struct uroce_cqe *cqe, bool is_solicited)
{
	struct place *b = &e->place;
	struct place_item *it = b->n ? &b->item[b->n - 1] : NULL;

	/* An XRC receive's SRQ and CQ are those of the present message only. */
	if (!it || it->qp != qp || it->has_cqe || it->kind == PLACE_READ || qp_is_xrc_recv(qp)) {
		place_flush(e);
		qp_complete_recv(e, qp, cqe, is_solicited);
		return;
	}
	it->has_cqe = true;
	it->is_solicited = is_solicited;
	it->cqe = *cqe;
}

/* Where the rest of a WRITE goes. Keys are looked up anew in each batch: one may have gone. */
static bool place_target(struct engine *e, struct qp *qp, uint64_t off, struct mem_vec *vec)
{
	const struct qp_resp *s = &qp->resp;

	return mr_remote_access(&e->mr, qp, qp->pd, s->rkey, UROCE_ACCESS_REMOTE_WRITE, s->va + off,
				s->dma_len - off, vec) == MR_OK;
}

static bool place_open(struct engine *e, struct qp *qp, enum place_kind kind, uint64_t off,
		       const struct packet *pk, const struct mem_vec *dst)
{
	struct place *b = &e->place;
	struct place_item *it = &b->item[b->n];
	struct mem_vec *vec = &b->vec[b->n_vec];
	psn_t psn = psn_make(pk->psn);

	it->qp = qp;
	it->kind = kind;
	it->has_cqe = false;
	it->psn = psn;
	it->off = off;
	it->len = 0;
	it->wqe = qp->req.reads.wqe;
	it->n_buf = it->n_vec = 0;
	if (kind == PLACE_RECV) {
		it->cqe = (struct uroce_cqe) { .wr_id = qp->resp.rqe.wr_id,
					       .wqe_index = qp->resp.rqe.index };
	} else if (kind == PLACE_WRITE) {
		if (dst) {
			*vec = *dst;
		} else if (!place_target(e, qp, off, vec)) {
			place_write(e);
			if (qp->state != UROCE_QPS_ERR)
				responder_apply(e, qp, RESP_BAD_ACCESS, psn);
			return false;
		}
		vec->len = 0;
		it->n_vec = 1;
		b->n_vec++;
	}
	b->n++;
	b->is_open = true;
	return true;
}

static bool is_continued(const struct place *b, const struct qp *qp, enum place_kind kind,
			 uint64_t off)
{
	const struct place_item *it;

	if (!b->is_open)
		return false;
	it = &b->item[b->n - 1];
	return it->qp == qp && it->kind == kind && it->off + it->len == off &&
	       (kind != PLACE_READ || it->wqe == qp->req.reads.wqe);
}

bool place_add(struct engine *e, struct qp *qp, enum place_kind kind, uint64_t off,
	       const struct packet *pk, const struct mem_vec *dst)
{
	struct place *b = &e->place;
	struct place_item *it;

	if (!pk->payload_len)
		return true;
	if (b->is_open && (dst || !is_continued(b, qp, kind, off)) && !close_open(e) &&
	    qp->state == UROCE_QPS_ERR)
		return false;
	if ((b->n_buf + pk->n_segs > PLACE_BUFS || b->n == PLACE_ITEMS ||
	     b->n_vec + UROCE_MAX_SGE > PLACE_VECS) &&
	    !place_flush(e) && qp->state == UROCE_QPS_ERR)
		return false;
	if (!b->is_open && !place_open(e, qp, kind, off, pk, dst))
		return false;
	it = &b->item[b->n - 1];
	for (uint32_t i = 0; i < pk->n_segs; i++)
		b->buf[b->n_buf++] = (struct buf_vec) { pk->seg[i].base, pk->seg[i].len };
	it->n_buf += pk->n_segs;
	it->len += pk->payload_len;
	if (kind == PLACE_WRITE)
		b->vec[b->n_vec - 1].len += pk->payload_len;
	return true;
}
