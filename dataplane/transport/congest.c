/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion of connected QPs (IBA annex A17, section 9): packets leave marked as ECN-capable; one
 * that arrives marked by a switch is answered with a CNP, and a CNP slows the QP it names down.
 */
#include "dataplane/transport/core.h"

#define ECN_MASK 0x03u
#define ECN_ECT0 0x02u
#define ECN_CE   0x03u

/* How packets of a QP leave: ECN-capable where we react to marks. */
void congest_template(const struct engine *e, struct qp *qp)
{
	struct net_path path = qp->path;

	if (e->conf.congestion)
		path.tclass = (uint8_t)((path.tclass & ~ECN_MASK) | ECN_ECT0);
	net_template_build(&qp->tmpl, &path);
}

/* A request or answer has arrived for qp (a connected one when a CNP can go back). */
void congest_rx(struct engine *e, struct qp *qp, const struct packet *pk)
{
	if ((pk->net.tclass & ECN_MASK) != ECN_CE)
		return;
	engine_count(e, CNT_NP_ECN_MARKED, 1);
	if (!e->conf.congestion || qp->type == UROCE_QPT_UD || e->now < qp->cnp_at)
		return;
	qp->cnp_at = e->now + DCQCN_N_NS;
	qp->is_cnp_due = true;
	sched_add(e, qp);
}

void congest_cnp(struct engine *e, const struct packet *pk)
{
	struct qp *qp = qp_find(e, pk->dest_qpn);

	if (!e->conf.congestion || !qp || qp->type == UROCE_QPT_UD || !qp_can_receive(qp) ||
	    !qp_is_peer(qp, pk)) {
		engine_count(e, CNT_RP_CNP_IGNORED, 1);
		return;
	}
	engine_count(e, CNT_RP_CNP_HANDLED, 1);
	dcqcn_cnp(&qp->dcqcn, e->now, qp->mtu);
}

/* At most every DCQCN_N_NS, so the template may be made anew. Not ECN-capable itself. */
unsigned congest_emit(struct engine *e, struct qp *qp, struct frame *f)
{
	struct net_path path = qp->path;
	struct net_template tmpl;
	struct packet pk;

	if (!qp->is_cnp_due)
		return 0;
	qp->is_cnp_due = false;
	if (!qp_can_receive(qp))
		return 0;
	path.tclass &= (uint8_t)~ECN_MASK;
	net_template_build(&tmpl, &path);
	packet_clear(&pk);
	pk.opcode = BTH_CNP | 1;
	pk.becn = true;
	pk.pkey = 0xffff;
	pk.dest_qpn = qp->attr.dest_qp_num;
	f->n_segs = 0;
	packet_build(&pk, &tmpl, f);
	engine_trace(e, TRACE_TX, qp, pk.opcode, 0, 0);
	engine_count(e, CNT_TX_PACKETS, 1);
	engine_count(e, CNT_TX_BYTES, frame_len(f));
	engine_count(e, CNT_NP_CNP_SENT, 1);
	return 1;
}

/* How many packets of data may leave now, at most n; when there are none the timer is set. */
unsigned congest_room(struct engine *e, struct qp *qp, unsigned n)
{
	struct dcqcn *d = &qp->dcqcn;

	if (!d->is_limiting)
		return n;
	dcqcn_run(d, e->now, qp->mtu);
	if (!d->is_limiting)
		return n;
	if (d->next_at > e->now) {
		timer_set(&e->paces, &qp->pace, d->next_at);
		return 0;
	}
	return n < d->burst ? n : d->burst;
}

void congest_sent(struct engine *e, struct qp *qp, uint32_t bytes)
{
	dcqcn_sent(&qp->dcqcn, e->now, bytes, qp->mtu);
}

void congest_reset(struct engine *e, struct qp *qp)
{
	timer_remove(&e->paces, &qp->pace);
	__builtin_memset(&qp->dcqcn, 0, sizeof(qp->dcqcn));
	qp->cnp_at = 0;
	qp->is_cnp_due = false;
}
