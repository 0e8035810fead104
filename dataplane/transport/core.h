/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's own structure and the parts of it that more than one file uses. Private. */
#pragma once

#include "dataplane/engine.h"
#include "dataplane/transport/counters.h"
#include "dataplane/transport/cq.h"
#include "dataplane/transport/mr.h"
#include "dataplane/transport/mw.h"
#include "dataplane/transport/place.h"
#include "dataplane/transport/srq.h"
#include "dataplane/transport/ud.h"
#include "dataplane/transport/qp.h"
#include "dataplane/transport/timer.h"

#define ENGINE_WINDOW   512u /* packets in flight per QP, unless configured */
#define ENGINE_BURST    32u  /* packets of one QP in a row; also frames gathered in one call */
#define ENGINE_VISITS   256u /* QPs looked at in one engine_tx, whether they send or not */
#define ENGINE_CWND_MIN 16u  /* packets in flight however much is lost */
#define ACKREQ_EVERY    64u  /* packets inside a long message */

struct engine {
	struct engine_conf conf;
	struct ports ports;
	uint64_t now;
	struct mr_table mr;
	struct mw_epoch *epoch; /* one for each engine of the device */
	struct cq *cq;
	struct qp **qp;
	struct srq *srq;
	struct ah *ah;
	struct mcast *mcast;
	struct timer_heap timers;
	struct timer_heap paces; /* QPs that DCQCN holds back */
	struct cq *dirty;
	struct qp *sched_head, *sched_tail;
	struct qp *doomed; /* to be put into ERR before this entry returns */
	struct place place;
	uint64_t cnt[CNT_N];
};

/* Only the worker writes counters, others read them: a relaxed store is enough, and free. */
static inline void engine_count(struct engine *e, enum counter c, uint64_t n)
{
	__atomic_store_n(&e->cnt[c], e->cnt[c] + n, __ATOMIC_RELAXED);
}

static inline void engine_trace(struct engine *e, enum trace_kind kind, const struct qp *qp,
				uint8_t opcode, uint32_t psn, uint32_t arg)
{
	if (e->ports.trace)
		e->ports.trace(e->ports.ctx, &(struct trace_record) { .now = e->now,
								      .qpn = qp ? qp->qpn : 0,
								      .psn = psn,
								      .arg = arg,
								      .kind = (uint8_t)kind,
								      .opcode = opcode });
}

/* sched.c: QPs that may have something to send, served round robin. */
void sched_add(struct engine *e, struct qp *qp);
void sched_remove(struct engine *e, struct qp *qp);
struct qp *sched_pop(struct engine *e);

/* req_opcode.c: the BTH operation of one packet of a work request. */
enum pkt_pos { PKT_FIRST, PKT_MIDDLE, PKT_LAST, PKT_ONLY };
uint8_t req_opcode(uint8_t wr_op, enum pkt_pos pos);
uint8_t req_wc_opcode(uint8_t wr_op);

/* wqe.c: take the next WQE of the SQ into a send_rec. 1 taken, 0 none, -1 the ring is broken. */
int wqe_take(struct engine *e, struct qp *qp);
/* The wr_id of a posted WQE that was never taken. */
uint64_t wqe_peek_wr_id(const struct qp *qp, uint32_t index);

/* rqe.c: take the next receive. 1 taken into resp.rqe, 0 none, -1 malformed (rqe has the wr_id). */
int rqe_take(struct engine *e, struct qp *qp);

/* requester.c */
unsigned requester_emit(struct engine *e, struct qp *qp, struct frame *const *out, unsigned n);
void requester_rewind(struct engine *e, struct qp *qp);
void requester_step_back(struct qp *qp);
void requester_check_failing(struct engine *e, struct qp *qp);
void requester_pass_local(struct engine *e, struct qp *qp);
void requester_check_drained(struct engine *e, struct qp *qp);
void requester_fail(struct engine *e, struct qp *qp, uint8_t status, uint32_t verr);

/* completer.c */
void completer_finish(struct engine *e, struct qp *qp); /* WQE una is done */
void completer_rx(struct engine *e, struct qp *qp, const struct packet *pk);
bool completer_advance(struct engine *e, struct qp *qp, psn_t to);
void completer_fix_position(struct qp *qp, psn_t old_una);
void completer_go_back(struct engine *e, struct qp *qp, enum counter why, bool is_news);

/* comp_read.c: answers to READs, in order or beyond a gap */
void comp_read(struct engine *e, struct qp *qp, const struct packet *pk);
void comp_read_early(struct engine *e, struct qp *qp, const struct packet *pk, uint8_t op);
void comp_read_seen(struct qp *qp, psn_t psn, uint8_t op);
void comp_read_skipped(struct engine *e, struct qp *qp, psn_t heard);
void comp_read_follow(struct engine *e, struct qp *qp);
void comp_read_forget(struct qp *qp);
void comp_read_asked(const struct engine *e, struct qp *qp, psn_t end);

/* retry.c */
void retry_arm(struct engine *e, struct qp *qp);
void retry_sent(struct engine *e, struct qp *qp, psn_t psn);
void retry_progress(struct engine *e, struct qp *qp, psn_t old_una);
void retry_missed(const struct engine *e, struct qp *qp);
void retry_lost(const struct engine *e, struct qp *qp);
void retry_ghost(struct qp *qp);
bool retry_may_rewind(struct engine *e, struct qp *qp);
uint64_t retry_patience(const struct qp *qp);
void retry_stop(struct engine *e, struct qp *qp);
void retry_rnr(struct engine *e, struct qp *qp, uint8_t code);
void retry_expire(struct engine *e, struct qp *qp);
uint64_t retry_rnr_ns(uint8_t code);

/* responder.c */
enum resp_verdict {
	RESP_OK,
	RESP_DUPLICATE,
	RESP_SEQ_GAP,
	RESP_AFTER_NAK,
	RESP_RNR,
	RESP_BAD_REQUEST,
	RESP_BAD_ACCESS,
	RESP_OP_ERROR,
	RESP_RECV_SHORT,  /* a bad request whose receive has already completed in error */
	RESP_RECV_BROKEN, /* an operational error of the same kind */
	RESP_RECV_INVAL,  /* a SEND came whole, but its key cannot be invalidated */
	RESP_DROP_REPLAY,
	RESP_HANDLED, /* the QP is in ERR already; nothing more to do */
	RESP_N_VERDICTS
};
void responder_rx(struct engine *e, struct qp *qp, const struct packet *pk);
void responder_apply(struct engine *e, struct qp *qp, enum resp_verdict v, psn_t psn);

/*
 * xrc.c: an XRC request names its SRQ, which also gives PD and CQ. NULL, false: no such SRQ in our
 * domain, or not that of the message we are inside of.
 */
struct srq *xrc_find(struct engine *e, const struct qp *qp, const struct packet *pk);
bool xrc_select(struct engine *e, struct qp *qp, const struct packet *pk);
void xrc_forget_srq(struct engine *e, const struct srq *srq);

/* BTH service of what a QP sends. */
static inline uint8_t qp_service(const struct qp *qp)
{
	switch (qp->type) {
	case UROCE_QPT_UC:
		return BTH_UC;
	case UROCE_QPT_UD:
		return BTH_UD;
	case UROCE_QPT_XRC_SEND:
	case UROCE_QPT_XRC_RECV:
		return BTH_XRC;
	default:
		return BTH_RC;
	}
}

/* The checks that UC has in common. */
enum resp_verdict resp_check_request(struct engine *e, struct qp *qp, const struct packet *pk);
void resp_comm_est(struct engine *e, struct qp *qp);

/* uc.c */
void uc_rx(struct engine *e, struct qp *qp, const struct packet *pk);

/* resp_execute.c: a request that passed PSN, sequence and permission checks. */
enum resp_verdict resp_execute(struct engine *e, struct qp *qp, const struct packet *pk);

/* resp_queue.c: answers waiting to be sent. */
void resp_queue_ack(struct engine *e, struct qp *qp);
void resp_queue_nak(struct engine *e, struct qp *qp, uint8_t syndrome, psn_t psn);
void resp_queue_retract(struct qp *qp, psn_t psn);
bool resp_queue_full(const struct qp *qp);
void resp_queue_append(struct engine *e, struct qp *qp, const struct resp_item *item);
enum resp_verdict resp_replay(struct engine *e, struct qp *qp, const struct packet *pk);
uint32_t resp_outstanding(const struct qp *qp);
void resp_queue_keep_nak(struct qp *qp);

/* The answer to an atomic request. */
static inline uint8_t resp_atomic_answer(uint8_t opcode)
{
	return (opcode & 0x1f) == BTH_ATOMIC_WRITE || (opcode & 0x1f) == BTH_FLUSH
		       ? BTH_READ_RESP_ONLY
		       : BTH_ATOMIC_ACK;
}

/* congest.c */
void congest_template(const struct engine *e, struct qp *qp);
void congest_rx(struct engine *e, struct qp *qp, const struct packet *pk);
void congest_cnp(struct engine *e, const struct packet *pk);
unsigned congest_emit(struct engine *e, struct qp *qp, struct frame *f);
unsigned congest_room(struct engine *e, struct qp *qp, unsigned n);
void congest_sent(struct engine *e, struct qp *qp, uint32_t bytes);
void congest_reset(struct engine *e, struct qp *qp);

/* Between the two addresses of this connection. */
static inline bool qp_is_peer(const struct qp *qp, const struct packet *pk)
{
	return !__builtin_memcmp(pk->net.sgid, qp->path.dgid, 16) &&
	       !__builtin_memcmp(pk->net.dgid, qp->path.sgid, 16);
}

/* resp_emit.c */
unsigned responder_emit(struct engine *e, struct qp *qp, struct frame *const *out, unsigned n);

/* sge.c: [off, off + len) of a scatter/gather list as memory; pieces, or -UROCE_VERR_*. */
int sge_map(struct engine *e, uint32_t pd, const struct uroce_sge *sge, unsigned n, uint32_t access,
	    uint64_t off, uint64_t len, struct mem_vec *out);
uint64_t sge_total(const struct uroce_sge *sge, unsigned n);

/* AETH syndromes (IBA vol. 1, 9.7.5.1 and table "AETH syndrome field"). */
#define AETH_TYPE(s)       ((s) >> 5)
#define AETH_ACK           0u
#define AETH_RNR           1u
#define AETH_NAK           3u
#define AETH_ACK_UNLIMITED 0x1fu /* credit count "invalid": no end-to-end flow control */
#define AETH_RNR_CODE(t)   (0x20u | (t))
#define AETH_NAK_SEQ       0x60u
#define AETH_NAK_INV_REQ   0x61u
#define AETH_NAK_ACCESS    0x62u
#define AETH_NAK_OP        0x63u

static inline uint32_t packets_of(uint64_t len, uint32_t mtu)
{
	return len ? (uint32_t)((len + mtu - 1) / mtu) : 1;
}

static inline bool wr_is_read(uint8_t op)
{
	return op == UROCE_WR_READ;
}

static inline bool wr_is_atomic(uint8_t op)
{
	return op == UROCE_WR_CMP_SWAP || op == UROCE_WR_FETCH_ADD;
}

/* Eight bytes written in one piece (IBA 1.5), answered as a READ without data. */
static inline bool wr_is_atomic_write(uint8_t op)
{
	return op == UROCE_WR_ATOMIC_WRITE;
}

/* What was written before it is in place (IBA 1.5); answered as a READ without data, too. */
static inline bool wr_is_flush(uint8_t op)
{
	return op == UROCE_WR_FLUSH;
}

/* Done here, without a packet, in the order of the queue. */
static inline bool wr_is_local(uint8_t op)
{
	return op == UROCE_WR_LOCAL_INV || op == UROCE_WR_BIND_MW;
}

/* Answered by data, not by an ACK. */
static inline bool wr_is_rd_atomic(uint8_t op)
{
	return wr_is_read(op) || wr_is_atomic(op) || wr_is_atomic_write(op) || wr_is_flush(op);
}
