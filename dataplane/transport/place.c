/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/place.h"

#include "dataplane/transport/core.h"

/* Where the batch goes; pieces, or -UROCE_VERR_*. Keys are looked up now, not when it began. */
static int place_map(struct engine *e, const struct place *b, struct mem_vec *vec)
{
	struct qp *qp = b->qp;
	const struct send_rec *rec;
	struct uroce_sge sge[UROCE_MAX_SGE];

	switch (b->kind) {
	case PLACE_WRITE:
		return mr_remote_access(&e->mr, qp, qp->pd, qp->resp.rkey,
					UROCE_ACCESS_REMOTE_WRITE, qp->resp.va + b->off, b->len,
					vec) == MR_OK
			       ? 1
			       : -(int)UROCE_VERR_LKEY;
	case PLACE_RECV:
		return sge_map(e, srq_pd(qp), qp->resp.rqe.sge, qp->resp.rqe.num_sge,
			       UROCE_ACCESS_LOCAL_WRITE, b->off, b->len, vec);
	case PLACE_READ:
		rec = qp_rec(qp, qp->req.una);
		__builtin_memcpy(
			sge,
			qp->sq + (size_t)(qp->req.una & (qp->sq_depth - 1)) * qp->sq_stride +
				sizeof(struct uroce_wqe),
			rec->num_sge * sizeof(sge[0]));
		return sge_map(e, qp->pd, sge, rec->num_sge, UROCE_ACCESS_LOCAL_WRITE, b->off,
			       b->len, vec);
	}
	return -(int)UROCE_VERR_WQE;
}

static void place_failed(struct engine *e, const struct place *b, uint32_t verr)
{
	struct qp *qp = b->qp;
	struct uroce_cqe cqe = {
		.wr_id = qp->resp.rqe.wr_id,
		.wqe_index = qp->resp.rqe.index,
		.opcode = UROCE_WC_RECV,
		.status = UROCE_WC_LOC_PROT_ERR,
		.vendor_err = verr,
	};

	switch (b->kind) {
	case PLACE_WRITE:
		responder_apply(e, qp, RESP_BAD_ACCESS, b->psn);
		return;
	case PLACE_RECV:
		qp->resp.has_rqe = false;
		qp_complete_recv(e, qp, &cqe, false);
		responder_apply(e, qp, RESP_RECV_BROKEN, b->psn);
		return;
	case PLACE_READ:
		requester_fail(e, qp, UROCE_WC_LOC_PROT_ERR, verr);
		return;
	}
}

bool place_flush(struct engine *e)
{
	struct place *b = &e->place;
	struct mem_vec vec[UROCE_MAX_SGE];
	struct place failed;
	int n;

	if (!b->qp)
		return true;
	n = place_map(e, b, vec);
	if (n >= 0 && e->ports.mem_write(e->ports.ctx, vec, (unsigned)n, b->buf, b->n) == 0) {
		b->qp = NULL;
		return true;
	}
	failed = *b;
	b->qp = NULL;
	place_failed(e, &failed, n < 0 ? (uint32_t)-n : UROCE_VERR_APP_MEMORY);
	return false;
}

bool place_add(struct engine *e, struct qp *qp, enum place_kind kind, uint64_t off,
	       const struct packet *pk)
{
	struct place *b = &e->place;

	if (b->qp && (b->qp != qp || b->kind != kind || b->off + b->len != off ||
		      b->n + pk->n_segs > PLACE_BUFS)) {
		bool is_own = b->qp == qp;

		if (!place_flush(e) && is_own)
			return false;
	}
	if (!pk->payload_len)
		return true;
	if (!b->qp) {
		b->qp = qp;
		b->kind = kind;
		b->psn = psn_make(pk->psn);
		b->off = off;
		b->len = 0;
		b->n = 0;
	}
	for (uint32_t i = 0; i < pk->n_segs; i++)
		b->buf[b->n++] = (struct buf_vec) { pk->seg[i].base, pk->seg[i].len };
	b->len += pk->payload_len;
	return true;
}

void place_drop(struct engine *e, const struct qp *qp)
{
	if (e->place.qp == qp)
		e->place.qp = NULL;
}
