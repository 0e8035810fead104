/* SPDX-License-Identifier: BSD-3-Clause */
/* Building the responder's packets: ACKs and NAKs, READ responses, atomic results. */
#include <string.h>

#include "dataplane/transport/core.h"

static void emit_build(struct engine *e, struct qp *qp, struct packet *pk, struct frame *f)
{
	pk->pkey = 0xffff;
	pk->dest_qpn = qp->attr.dest_qp_num;
	if (pk->payload_len) {
		f->seg[0] = (struct frame_seg) { f->buf, pk->payload_len };
		f->n_segs = 1;
	} else {
		f->n_segs = 0;
	}
	packet_build(pk, &qp->tmpl, f);
	engine_trace(e, TRACE_TX, qp, pk->opcode, pk->psn, pk->syndrome);
	engine_count(e, CNT_TX_PACKETS, 1);
	engine_count(e, CNT_TX_BYTES, frame_len(f));
}

static void queue_pop(struct qp *qp)
{
	struct qp_resp *s = &qp->resp;

	s->n_queue--;
	memmove(&s->queue[0], &s->queue[1], s->n_queue * sizeof(s->queue[0]));
}

/* ACK, NAK and atomic answer: one packet without payload. */
static unsigned emit_single(struct engine *e, struct qp *qp, const struct resp_item *it,
			    struct frame *f)
{
	struct packet pk;

	packet_clear(&pk);
	pk.opcode = qp_service(qp) | (it->kind == RESP_ATOMIC ? it->opcode : BTH_ACKNOWLEDGE);
	pk.psn = it->psn.v;
	pk.syndrome = it->syndrome;
	pk.msn = it->msn;
	pk.atomic_orig = it->va;
	queue_pop(qp);
	emit_build(e, qp, &pk, f);
	return 1;
}

static uint8_t read_op(const struct resp_item *it)
{
	if (!it->is_started)
		return it->left == 1 ? BTH_READ_RESP_ONLY : BTH_READ_RESP_FIRST;
	return it->left == 1 ? BTH_READ_RESP_LAST : BTH_READ_RESP_MIDDLE;
}

static bool read_gather(struct engine *e, struct qp *qp, const struct resp_item *it,
			struct frame *const *out, uint32_t k, uint32_t len)
{
	struct buf_vec buf[ENGINE_BURST];
	struct mem_vec vec;
	uint32_t rest = len;

	if (!len)
		return true;
	if (mr_remote_access(&e->mr, qp, it->pd, it->rkey, UROCE_ACCESS_REMOTE_READ, it->va, len,
			     &vec) != MR_OK)
		return false;
	for (uint32_t i = 0; i < k; i++) {
		buf[i] = (struct buf_vec) { out[i]->buf, rest < qp->mtu ? rest : qp->mtu };
		rest -= (uint32_t)buf[i].len;
	}
	return e->ports.mem_read(e->ports.ctx, &vec, 1, buf, k) == 0;
}

static void emit_read_packet(struct engine *e, struct qp *qp, struct resp_item *it, struct frame *f)
{
	struct packet pk;

	packet_clear(&pk);
	pk.opcode = qp_service(qp) | read_op(it);
	pk.psn = it->psn.v;
	pk.syndrome = it->syndrome;
	pk.msn = it->msn;
	pk.payload_len = it->len < qp->mtu ? it->len : qp->mtu;
	emit_build(e, qp, &pk, f);
	congest_sent(e, qp, frame_len(f));
	it->is_started = true;
	it->psn = psn_add(it->psn, 1);
	it->left--;
	it->va += pk.payload_len;
	it->len -= pk.payload_len;
}

static unsigned emit_read(struct engine *e, struct qp *qp, struct resp_item *it,
			  struct frame *const *out, unsigned n)
{
	uint32_t k = it->left < n ? it->left : n;
	uint64_t span = (uint64_t)k * qp->mtu;
	uint32_t len = it->len < span ? it->len : (uint32_t)span;

	if (!read_gather(e, qp, it, out, k, len)) {
		psn_t psn = it->psn;

		/* Perhaps nobody waits for it any more: as with one that is refused on arrival. */
		if (it->is_replay) {
			engine_count(e, CNT_DROP_REPLAY, 1);
			queue_pop(qp);
			return 0;
		}

		/* The region went away under a READ that had been accepted: the NAK is in its
		 * place. */
		qp->resp.n_queue = 0;
		responder_apply(e, qp, RESP_BAD_ACCESS, psn);
		return 0;
	}
	for (uint32_t i = 0; i < k; i++)
		emit_read_packet(e, qp, it, out[i]);
	if (!it->left)
		queue_pop(qp);
	return k;
}

unsigned responder_emit(struct engine *e, struct qp *qp, struct frame *const *out, unsigned n)
{
	unsigned done = 0;

	if (n > ENGINE_BURST)
		n = ENGINE_BURST;
	while (done < n && qp->resp.n_queue) {
		struct resp_item it = qp->resp.queue[0];

		if (it.kind == RESP_READ) {
			unsigned room = congest_room(e, qp, n - done);

			if (!room)
				break;
			done += emit_read(e, qp, &qp->resp.queue[0], out + done, room);
		} else {
			done += emit_single(e, qp, &it, out[done]);
		}
	}
	return done;
}
