/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams (IBA vol. 1, 9.8.3): one packet a message, addressed by WQE, Q_Key checked.
 */
#include <string.h>

#include "dataplane/transport/core.h"

#define UD_SERVICE_OP(op) ((uint8_t)(BTH_UD | (op)))
#define QKEY_CONTROLLED                                                           \
	0x80000000u /* the high bit: take the QP's own Q_Key (IBA vol. 1, 10.2.5) \
		     */

/* As Linux does for UD: one source port a QP. */
static void ud_set_sport(struct net_template *t, uint32_t qpn)
{
	uint16_t port = (uint16_t)(0xc000u + ((qpn * 0x61c88647u) >> 18));

	t->bytes[t->len - 8] = (uint8_t)(port >> 8);
	t->bytes[t->len - 7] = (uint8_t)port;
}

static bool ud_gather(struct engine *e, struct qp *qp, struct send_rec *rec, struct frame *f)
{
	const uint8_t *slot = qp->sq + (size_t)(qp->req.cur & (qp->sq_depth - 1)) * qp->sq_stride +
			      sizeof(struct uroce_wqe);
	struct buf_vec buf = { f->buf, rec->len };
	struct uroce_sge sge[UROCE_MAX_SGE];
	struct mem_vec vec[UROCE_MAX_SGE];
	int n;

	if (!rec->len)
		return true;
	if (rec->flags & UROCE_WQE_INLINE) {
		memcpy(f->buf, slot, rec->len);
		return true;
	}
	memcpy(sge, slot, rec->num_sge * sizeof(sge[0]));
	n = sge_map(e, qp->pd, sge, rec->num_sge, 0, 0, rec->len, vec);
	rec->verr = n < 0 ? (uint32_t)-n : UROCE_VERR_APP_MEMORY;
	return n >= 0 && !e->ports.mem_read(e->ports.ctx, vec, (unsigned)n, &buf, 1);
}

static void ud_build(struct engine *e, struct qp *qp, const struct send_rec *rec,
		     const struct ah *ah, struct frame *f)
{
	uint32_t qkey = rec->rkey & QKEY_CONTROLLED ? qp->attr.qkey : rec->rkey;
	struct net_template tmpl = ah->tmpl;
	struct packet pk = {
		.opcode = UD_SERVICE_OP(rec->op == UROCE_WR_SEND_IMM ? BTH_SEND_ONLY_IMM
								     : BTH_SEND_ONLY),
		.solicited = rec->flags & UROCE_WQE_SOLICITED,
		.pkey = 0xffff,
		.dest_qpn = (uint32_t)rec->va & BTH_QPN_MASK,
		.psn = rec->psn.v,
		.qkey = qkey,
		.src_qpn = qp->qpn,
		.imm = rec->imm,
		.payload_len = rec->len,
	};

	ud_set_sport(&tmpl, qp->qpn);
	f->n_segs = rec->len != 0;
	f->seg[0] = (struct frame_seg) { f->buf, rec->len };
	packet_build(&pk, &tmpl, f);
	engine_trace(e, TRACE_TX, qp, pk.opcode, pk.psn, pk.payload_len);
	engine_count(e, CNT_TX_PACKETS, 1);
	engine_count(e, CNT_TX_BYTES, frame_len(f));
}

/* Sends WQE cur; its completion follows at once. False: it failed, the SQ is in error. */
static bool ud_send(struct engine *e, struct qp *qp, struct frame *f)
{
	struct qp_req *r = &qp->req;
	struct send_rec *rec = qp_rec(qp, r->cur);
	const struct ah *ah = ah_find(e, (uint32_t)(rec->va >> 32));

	if (!ah || ah->pd != qp->pd) {
		requester_fail(e, qp, UROCE_WC_LOC_QP_OP_ERR, UROCE_VERR_WQE);
		return false;
	}
	if (!ud_gather(e, qp, rec, f)) {
		requester_fail(e, qp, UROCE_WC_LOC_PROT_ERR, rec->verr);
		return false;
	}
	ud_build(e, qp, rec, ah, f);
	r->cur++;
	r->una_psn = r->nxt_psn = r->sent_psn = r->asg_psn;
	qp_complete_send(e, qp, r->una++, UROCE_WC_SUCCESS, UROCE_VERR_NONE);
	return true;
}

unsigned ud_emit(struct engine *e, struct qp *qp, struct frame *const *out, unsigned n)
{
	struct qp_req *r = &qp->req;
	unsigned done = 0;

	while (done < n && qp->state == UROCE_QPS_RTS) {
		int got = wqe_take(e, qp);

		if (got < 0) {
			engine_count(e, CNT_BAD_RING, 1);
			qp_doom(e, qp);
		}
		if (got <= 0)
			break;
		requester_check_failing(e, qp);
		if (qp->state != UROCE_QPS_RTS || r->cur == r->tail)
			break;
		done += ud_send(e, qp, out[done]);
	}
	return done;
}

/* The 40 bytes before the payload: the GRH, or an IPv4 header in the last 20 of them (IBA
 * A17.4.5.1). */
static void ud_grh(const struct packet *pk, uint8_t grh[UD_GRH_LEN])
{
	uint32_t l3 = pk->net.vlan == NET_NO_VLAN ? 14 : 18;

	memset(grh, 0, UD_GRH_LEN);
	if (pk->net.is_ipv4)
		memcpy(grh + 20, pk->frame->head + l3, 20);
	else
		memcpy(grh, pk->frame->head + l3, 40);
}

static bool ud_place(struct engine *e, struct qp *qp, const struct packet *pk)
{
	struct recv_wqe *rqe = &qp->resp.rqe;
	struct buf_vec buf[1 + FRAME_SEGS];
	struct mem_vec vec[UROCE_MAX_SGE];
	uint8_t grh[UD_GRH_LEN];
	int n;

	ud_grh(pk, grh);
	buf[0] = (struct buf_vec) { grh, sizeof(grh) };
	for (uint32_t i = 0; i < pk->n_segs; i++)
		buf[1 + i] = (struct buf_vec) { pk->seg[i].base, pk->seg[i].len };
	n = sge_map(e, srq_pd(qp), rqe->sge, rqe->num_sge, UROCE_ACCESS_LOCAL_WRITE, 0,
		    UD_GRH_LEN + pk->payload_len, vec);
	return n >= 0 && !e->ports.mem_write(e->ports.ctx, vec, (unsigned)n, buf, 1 + pk->n_segs);
}

void ud_rx(struct engine *e, struct qp *qp, const struct packet *pk)
{
	bool has_imm = opcode_get(pk->opcode)->flags & OPC_IMM;
	struct recv_wqe *rqe = &qp->resp.rqe;
	struct uroce_cqe cqe = {
		.opcode = UROCE_WC_RECV,
		.byte_len = UD_GRH_LEN + pk->payload_len,
		.src_qp = pk->src_qpn,
		.imm = has_imm ? pk->imm : 0,
		.flags = (uint8_t)(UROCE_WC_GRH | (has_imm ? UROCE_WC_WITH_IMM : 0)),
		/* mlx5's packet type in the service level: UCX tells IPv4 from IPv6 by it. */
		.sl = pk->net.is_ipv4 ? 0x8 | 2 : 0x8 | 1,
	};
	int got;

	if (pk->qkey != qp->attr.qkey) {
		engine_count(e, CNT_DROP_QKEY, 1);
		return;
	}
	got = rqe_take(e, qp);
	if (!got) {
		engine_count(e, CNT_OUT_OF_BUFFER, 1);
		return;
	}
	cqe.wr_id = rqe->wr_id;
	cqe.wqe_index = rqe->index;
	if (got < 0)
		cqe.status = UROCE_WC_LOC_QP_OP_ERR;
	else if (rqe->room < UD_GRH_LEN + pk->payload_len)
		cqe.status = UROCE_WC_LOC_LEN_ERR;
	else if (!ud_place(e, qp, pk))
		cqe.status = UROCE_WC_LOC_PROT_ERR;
	engine_count(e, CNT_RX_SEND_REQUESTS, 1);
	qp_complete_recv(e, qp, &cqe, pk->solicited);
	if (cqe.status != UROCE_WC_SUCCESS)
		qp_to_error(e, qp);
}

void ud_rx_multicast(struct engine *e, const struct packet *pk)
{
	bool is_member = false;

	for (uint32_t i = 0; i < e->conf.max_mcast; i++) {
		const struct mcast *m = &e->mcast[i];
		struct qp *qp;

		if (!m->qpn || memcmp(m->mgid, pk->net.dgid, sizeof(m->mgid)))
			continue;
		qp = qp_find(e, m->qpn);
		is_member = true;
		if (qp && qp_can_receive(qp))
			ud_rx(e, qp, pk);
	}
	if (!is_member)
		engine_count(e, CNT_DROP_NO_GROUP, 1);
}
