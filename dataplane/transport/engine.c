/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine: arena, demultiplexing of what arrives, pull of what leaves, commands. No protocol. */
#include "dataplane/engine.h"

#include <errno.h>
#include <string.h>

#include "dataplane/transport/core.h"

#define ALIGN64(n) (((n) + 63) & ~(size_t)63)

size_t engine_size(const struct engine_conf *c)
{
	return ALIGN64(sizeof(struct engine)) + ALIGN64(c->max_mr * sizeof(struct mr)) +
	       ALIGN64(c->max_cq * sizeof(struct cq)) + ALIGN64(c->max_qp * sizeof(struct qp *)) +
	       2 * ALIGN64(c->max_qp * sizeof(struct timer *)) +
	       ALIGN64(c->max_srq * sizeof(struct srq)) + ALIGN64(c->max_ah * sizeof(struct ah)) +
	       ALIGN64(c->max_mcast * sizeof(struct mcast)) +
	       (c->shared ? 0 : engine_shared_size(c));
}

size_t engine_shared_size(const struct engine_conf *c)
{
	return ALIGN64(mw_shared_size(c->max_mr));
}

/* The arena is zeroed memory (its untouched pages cost nothing). */
struct engine *engine_create(const struct engine_conf *conf, const struct ports *ports, void *arena)
{
	struct engine *e = arena;
	uint8_t *at = (uint8_t *)arena + ALIGN64(sizeof(*e));

	e->conf = *conf;
	e->ports = *ports;
	if (!e->conf.window)
		e->conf.window = ENGINE_WINDOW;
	if (!e->conf.ud_mtu)
		e->conf.ud_mtu = FRAME_PAYLOAD;
	e->mr.slot = (struct mr *)at;
	e->mr.n = conf->max_mr;
	at += ALIGN64(conf->max_mr * sizeof(struct mr));
	e->cq = (struct cq *)at;
	at += ALIGN64(conf->max_cq * sizeof(struct cq));
	e->qp = (struct qp **)at;
	at += ALIGN64(conf->max_qp * sizeof(struct qp *));
	timer_heap_init(&e->timers, (struct timer **)at, conf->max_qp);
	at += ALIGN64(conf->max_qp * sizeof(struct timer *));
	timer_heap_init(&e->paces, (struct timer **)at, conf->max_qp);
	at += ALIGN64(conf->max_qp * sizeof(struct timer *));
	e->srq = (struct srq *)at;
	at += ALIGN64(conf->max_srq * sizeof(struct srq));
	e->ah = (struct ah *)at;
	at += ALIGN64(conf->max_ah * sizeof(struct ah));
	e->mcast = (struct mcast *)at;
	at += ALIGN64(conf->max_mcast * sizeof(struct mcast));
	mw_shared_init(e, conf->shared ? conf->shared : at);
	return e;
}

static void engine_enter(struct engine *e, uint64_t now)
{
	e->now = now;
	mw_enter(e);
}

/* What every entry owes before it returns: data in place, doomed QPs in ERR, events judged. */
static void engine_leave(struct engine *e)
{
	place_flush(e);
	qp_run_doomed(e);
	cq_notify_dirty(e);
	mw_leave(e);
}

/* clang-format off */
static const enum counter drop_counter[PACKET_N_VERDICTS] = {
	[PACKET_NOT_ROCE]        = CNT_DROP_NOT_ROCE,
	[PACKET_SHORT]           = CNT_DROP_SHORT,
	[PACKET_BAD_IP]          = CNT_DROP_BAD_IP,
	[PACKET_BAD_UDP_LEN]     = CNT_DROP_BAD_UDP_LEN,
	[PACKET_BAD_BTH_VERSION] = CNT_DROP_BTH_VERSION,
	[PACKET_UNKNOWN_OPCODE]  = CNT_DROP_UNKNOWN_OPCODE,
	[PACKET_BAD_PAD]         = CNT_DROP_BAD_PAD,
	[PACKET_BAD_ICRC]        = CNT_DROP_BAD_ICRC,
};
/* clang-format on */

static void engine_drop(struct engine *e, const struct packet *pk, const struct qp *qp,
			enum counter c)
{
	engine_count(e, c, 1);
	engine_trace(e, TRACE_DROP, qp, pk->opcode, pk->psn, c);
}

/* C9-42..44: the low 15 bits must match 0xffff, and one side be a full member. We are. */
static bool is_pkey_ours(uint16_t pkey)
{
	return (pkey & 0x7fff) == 0x7fff;
}

static void engine_rx_qp(struct engine *e, struct qp *qp, const struct packet *pk)
{
	engine_trace(e, TRACE_RX, qp, pk->opcode, pk->psn, pk->payload_len);
	congest_rx(e, qp, pk);
	if (qp->type == UROCE_QPT_UD)
		ud_rx(e, qp, pk);
	else if (qp->type == UROCE_QPT_UC)
		uc_rx(e, qp, pk);
	else if (!(opcode_get(pk->opcode)->flags & OPC_REQUEST))
		completer_rx(e, qp, pk);
	else if (qp->type == UROCE_QPT_XRC_SEND)
		engine_drop(e, pk, qp, CNT_DROP_SERVICE);
	else
		responder_rx(e, qp, pk);
}

static void engine_rx_one(struct engine *e, const struct frame *f)
{
	struct packet pk;
	enum packet_verdict v = packet_parse(&pk, f, e->conf.check_icrc);
	struct qp *qp;

	engine_count(e, CNT_RX_PACKETS, 1);
	engine_count(e, CNT_RX_BYTES, frame_len(f));
	if (v != PACKET_OK) {
		engine_count(e, drop_counter[v], 1);
		return;
	}
	if (pk.opcode == (BTH_CNP | 1)) {
		congest_cnp(e, &pk);
		return;
	}
	if (pk.dest_qpn == MCAST_QPN && (pk.opcode & 0xe0) == BTH_UD) {
		ud_rx_multicast(e, &pk);
		return;
	}
	qp = qp_find(e, pk.dest_qpn);
	if (!qp)
		engine_drop(e, &pk, NULL, CNT_DROP_NO_QP);
	else if ((pk.opcode & 0xe0) != qp_service(qp))
		engine_drop(e, &pk, qp, CNT_DROP_SERVICE);
	else if (!is_pkey_ours(pk.pkey))
		engine_drop(e, &pk, qp, CNT_DROP_PKEY);
	else if (!qp_can_receive(qp))
		engine_drop(e, &pk, qp, CNT_DROP_QP_STATE);
	else if (qp->type != UROCE_QPT_UD && !qp_is_peer(qp, &pk))
		engine_drop(e, &pk, qp, CNT_DROP_ADDRESS);
	else
		engine_rx_qp(e, qp, &pk);
}

void engine_rx(struct engine *e, uint64_t now, const struct frame *const *in, unsigned n)
{
	engine_enter(e, now);
	for (unsigned i = 0; i < n; i++)
		engine_rx_one(e, in[i]);
	engine_leave(e);
}

void engine_doorbell(struct engine *e, uint64_t now, uint32_t qpn)
{
	struct qp *qp = qp_find(e, qpn);

	if (!qp)
		return;
	engine_enter(e, now);
	if (qp->state == UROCE_QPS_ERR || qp->state == UROCE_QPS_SQE)
		qp_flush(e, qp);
	else if (qp_can_send(qp))
		sched_add(e, qp);
	engine_leave(e);
}

bool engine_tx_pending(const struct engine *e)
{
	return e->sched_head != NULL;
}

/*
 * Answers go first, as they are what a peer waits for; but who filled the room alone comes second
 * the next time, or a stream of READs would keep the QP's own work waiting as long as it lasts.
 */
static unsigned engine_tx_qp(struct engine *e, struct qp *qp, struct frame *const *out, unsigned n)
{
	unsigned cnp = qp->is_cnp_due ? congest_emit(e, qp, out[0]) : 0;
	unsigned room = n - cnp < ENGINE_BURST ? n - cnp : ENGINE_BURST;
	bool is_own = qp->is_own_turn;
	unsigned k;

	out += cnp;
	k = is_own ? requester_emit(e, qp, out, room) : responder_emit(e, qp, out, room);

	qp->is_own_turn = k == room && !is_own;
	if (k < room)
		k += is_own ? responder_emit(e, qp, out + k, room - k)
			    : requester_emit(e, qp, out + k, room - k);
	if (k == room || (k && qp->dcqcn.is_limiting)) /* then a timer follows */
		sched_add(e, qp);
	return k + cnp;
}

unsigned engine_tx(struct engine *e, uint64_t now, struct frame *const *out, unsigned n)
{
	unsigned done = 0;
	struct qp *qp;

	engine_enter(e, now);
	for (unsigned i = 0; i < ENGINE_VISITS && done < n && (qp = sched_pop(e)); i++)
		done += engine_tx_qp(e, qp, out + done, n - done);
	engine_leave(e);
	return done;
}

uint64_t engine_deadline(const struct engine *e)
{
	uint64_t a = timer_next(&e->timers), b = timer_next(&e->paces);

	return a < b ? a : b;
}

void engine_expire(struct engine *e, uint64_t now)
{
	struct timer *t;

	engine_enter(e, now);
	while ((t = timer_pop(&e->timers, now)))
		retry_expire(e, (struct qp *)((char *)t - offsetof(struct qp, timer)));
	while ((t = timer_pop(&e->paces, now)))
		sched_add(e, (struct qp *)((char *)t - offsetof(struct qp, pace)));
	engine_leave(e);
}

int engine_command(struct engine *e, uint64_t now, const struct cmd *cmd, struct cmd_reply *reply)
{
	int err = -EINVAL;

	engine_enter(e, now);
	switch (cmd->op) {
	case ENGINE_MR_ADD:
		err = mr_add(&e->mr, &cmd->mr_add);
		break;
	case ENGINE_MR_DEL:
		err = mr_del(&e->mr, cmd->key, false);
		break;
	case ENGINE_MR_OPEN:
		mw_region_open(&e->mr, cmd->key, false);
		err = 0;
		break;
	case ENGINE_MR_KILL:
		err = mr_del(&e->mr, cmd->key, true);
		break;
	case ENGINE_MW_ADD:
		err = mw_add(&e->mr, &cmd->mw_add);
		break;
	case ENGINE_MW_DEL:
		err = mw_del(&e->mr, cmd->key);
		break;
	case ENGINE_CQ_ADD:
		err = cq_add(e, &cmd->cq_add);
		break;
	case ENGINE_CQ_DEL:
		err = cq_del(e, cmd->key, &reply->events_sent);
		break;
	case ENGINE_QP_ADD:
		err = qp_add(e, &cmd->qp_add);
		break;
	case ENGINE_QP_MODIFY:
		err = qp_modify(e, &cmd->qp_modify);
		break;
	case ENGINE_QP_QUERY:
		err = qp_query(e, cmd->key, &reply->attr);
		break;
	case ENGINE_QP_DEL:
		err = qp_del(e, cmd->key, &reply->events_sent);
		break;
	case ENGINE_SRQ_ADD:
		err = srq_add(e, &cmd->srq_add);
		break;
	case ENGINE_SRQ_LIMIT:
		err = srq_limit(e, &cmd->srq_limit);
		break;
	case ENGINE_SRQ_DEL:
		err = srq_del(e, cmd->key, &reply->events_sent);
		break;
	case ENGINE_AH_ADD:
		err = ah_add(e, &cmd->ah_add);
		break;
	case ENGINE_AH_DEL:
		err = ah_del(e, cmd->key);
		break;
	case ENGINE_MCAST_ADD:
		err = mcast_add(e, &cmd->mcast);
		break;
	case ENGINE_MCAST_DEL:
		err = mcast_del(e, &cmd->mcast);
		break;
	case ENGINE_CQ_RESIZE:
		err = cq_resize(e, &cmd->cq_resize);
		break;
	case ENGINE_CQ_FIRE:
		err = cq_fire(e, cmd->key);
		break;
	case ENGINE_SRQ_QUERY:
		err = srq_query(e, cmd->key, reply);
		break;
	case ENGINE_SRQ_RESIZE:
		err = srq_resize(e, &cmd->srq_resize);
		break;
	}
	engine_leave(e);
	return err;
}

int engine_qp_info(const struct engine *e, uint32_t qpn, struct engine_qp_info *info)
{
	const struct qp *qp = qp_find(e, qpn);

	if (!qp)
		return -ENOENT;
	*info = (struct engine_qp_info) {
		.state = qp->state,
		.type = qp->type,
		.dest_qpn = qp->attr.dest_qp_num,
		.mtu = qp->mtu,
		.nxt_psn = qp->req.nxt_psn.v,
		.una_psn = qp->req.una_psn.v,
		.epsn = qp->resp.epsn.v,
		.msn = qp->resp.msn,
		.sq_pending = qp->req.tail - qp->req.una,
		.retries = (uint32_t)(qp->attr.retry_cnt - qp->req.retry_left),
		.rnr_retries = (uint32_t)(qp->attr.rnr_retry - qp->req.rnr_left),
	};
	return 0;
}

const uint64_t *engine_counters(const struct engine *e)
{
	return e->cnt;
}

unsigned engine_n_counters(void)
{
	return CNT_N;
}

const char *engine_counter_name(unsigned i)
{
	static const char *const name[CNT_N] = {
#define X(id, text) [CNT_##id] = (text),
		COUNTERS(X)
#undef X
	};

	return i < CNT_N ? name[i] : NULL;
}
