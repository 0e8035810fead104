/* SPDX-License-Identifier: BSD-3-Clause */
/* The QP context: a common part and the parts of requester, completer and responder. Private. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/engine.h"
#include "dataplane/transport/cq.h"
#include "dataplane/transport/dcqcn.h"
#include "dataplane/transport/psn.h"
#include "dataplane/transport/timer.h"

#define QP_MAX_RD_ATOMIC 16u   /* ORD and IRD */
#define READ_HOLD        4096u /* PSNs; a power of two */
#define RESP_QUEUE       (3 * QP_MAX_RD_ATOMIC + 8)

/* A WQE that was taken from the SQ: what retransmission needs besides the slot's SGEs. */
struct send_rec {
	uint64_t wr_id;
	uint64_t va; /* UD: remote QPN, and above it the AH */
	uint64_t compare, swap_add;
	uint32_t len;
	psn_t psn;      /* of its first packet */
	uint32_t n_psn; /* PSNs it uses: packets sent, or READ responses expected */
	uint32_t xrc_srqn;
	uint32_t rkey; /* UD: Q_Key */
	uint32_t imm;
	uint8_t op;    /* UROCE_WR_* */
	uint8_t flags; /* UROCE_WQE_* */
	uint8_t num_sge;
	uint8_t status;  /* a local error found before it was sent */
	bool is_done;    /* a local operation that was carried out */
	bool is_revoked; /* it is, but for engines that must hear of it */
	uint32_t verr;
};

/* READ responses beyond a gap: which have come, and what has been asked for again. */
struct qp_reads {
	psn_t heard_psn;   /* the peer has answered all before it; una_psn: nothing is missing */
	psn_t asked_end;   /* what is missing before it has been asked for again, */
	uint64_t asked_at; /* then; una_psn: nothing has */
	psn_t last_psn;    /* of the last response that came */
	uint32_t wqe;      /* whose data is being placed */
	bool is_due;       /* una_psn to asked_end shall be asked for */
	bool is_end;       /* the last response was the last of its READ */
	bool is_new;       /* since then, responses have begun anew */
	bool is_preempted; /* the peer breaks off an answer when it is asked anew */
	uint64_t held[READ_HOLD / 64]; /* by PSN: is in place */
	uint64_t ends[READ_HOLD / 64]; /* by PSN: the last of a part that was asked for */
};

/*
 * Requester and completer. WQE indices run freely, as the ring's. una <= cur <= tail; the packet to
 * send next is packet cur_pkt of WQE cur, or the first of a WQE not yet taken when cur == tail.
 */
struct qp_req {
	uint32_t una; /* oldest WQE not completed */
	uint32_t cur;
	uint32_t cur_pkt;
	uint32_t tail;      /* WQEs taken */
	psn_t una_psn;      /* oldest PSN not acknowledged */
	psn_t nxt_psn;      /* of the packet to send next */
	psn_t sent_psn;     /* one past the highest PSN ever sent */
	psn_t asg_psn;      /* one past the highest PSN given to a WQE */
	uint32_t rd_atomic; /* READ and atomic requests sent and not answered */
	uint32_t rd_psns; /* PSNs of READ responses outstanding; no request packets fly for them */
	uint32_t since_ackreq;
	uint8_t retry_left, rnr_left;
	bool is_rnr_waiting;
	uint32_t n_rewinds; /* since the last progress */
	bool is_rewound;    /* went back to rewound_psn at rewound_at on a NAK; once is enough */
	psn_t rewound_psn;
	uint64_t rewound_at;
	struct qp_reads reads;
	uint32_t cwnd; /* packets that may fly: shrinks with loss, grows with success */
	uint32_t cwnd_acked;
	uint64_t ack_at;   /* the local ACK timeout; TIMER_NEVER: none runs */
	bool is_timing;    /* it has been started for what is unacknowledged now */
	uint32_t n_probes; /* since the last sign of life */
	uint8_t calm;      /* doublings of the probe's patience, learned from needless probes */
	bool is_probe_out; /* a probe was sent; whether it was needed is not known yet */
	uint64_t probed_at;
	bool is_asking;    /* the READ or atomic at una shall be asked for again */
	bool is_rtt_timed; /* a packet that asked for an ACK is being timed */
	psn_t rtt_psn;
	uint64_t rtt_at;
	uint64_t srtt;    /* smoothed round trip, ns; 0: not known */
	uint64_t rtt_min; /* the shortest one */
	uint64_t rtt_var; /* smoothed distance of samples from srtt (as RFC 6298 has it) */
	bool is_failing;  /* WQE fail_at has a local error: complete it when all before are done */
	uint32_t fail_at;
	uint32_t grace; /* bit: an engine that may still use what the BIND_MW at cur revoked */
	uint32_t grace_seq[UROCE_MAX_WORKERS];
	bool is_drain_told;
};

enum resp_kind { RESP_ACK, RESP_NAK, RESP_READ, RESP_ATOMIC };

/* An answer that waits to be sent; READ items shrink packet by packet. */
struct resp_item {
	uint8_t kind;
	uint8_t syndrome;
	uint8_t opcode;  /* ATOMIC: of the answer */
	bool is_started; /* READ: the FIRST is out */
	bool is_replay;  /* of a duplicate request */
	uint32_t msn;
	psn_t psn;     /* of the next packet of this answer */
	uint32_t left; /* PSNs left */
	uint64_t va;   /* READ: of the next byte; ATOMIC: the result */
	uint32_t rkey;
	uint32_t pd;  /* READ: the domain it was judged in */
	uint32_t len; /* bytes left */
};

/* Saved results of atomics, to answer duplicates (IBA vol. 1, 9.4.5: as deep as the IRD). */
struct resp_saved {
	bool is_valid;
	uint8_t opcode;
	psn_t psn;
	uint32_t msn;
	uint64_t orig;
};

/* A receive WQE, copied out of the RQ. */
struct recv_wqe {
	uint64_t wr_id;
	uint64_t room; /* bytes */
	uint32_t index;
	uint32_t num_sge;
	struct uroce_sge sge[UROCE_MAX_SGE];
};

enum resp_msg { MSG_NONE, MSG_SEND, MSG_WRITE };

struct qp_resp {
	psn_t epsn;
	uint32_t msn;
	uint32_t rq_tail;  /* RQEs taken */
	enum resp_msg msg; /* the message we are inside of */
	bool is_nak_sent;  /* a NAK for epsn is out: quiet until epsn arrives, or the peer restarts
			    */
	psn_t early_psn;   /* of the last packet that came too early */
	bool has_rqe;
	bool keeps_answers; /* in ERR: requests before the one at fault are answered */
	bool is_comm_est_told;
	uint32_t msg_len; /* bytes of it so far */
	uint64_t va;      /* WRITE: of its first byte */
	uint32_t rkey;
	uint32_t dma_len;
	struct recv_wqe rqe;
	uint32_t n_queue;
	struct resp_item queue[RESP_QUEUE]; /* in PSN order */
	uint32_t saved_at;
	struct resp_saved saved[QP_MAX_RD_ATOMIC];
};

struct qp {
	uint32_t qpn, type, pd, owner, slot;
	enum uroce_qps state;
	bool is_sig_all;
	bool is_queued;   /* on the scheduler's list */
	bool is_own_turn; /* answers filled the last burst: requests go first in the next */
	bool is_doomed;   /* a completion was lost: goes to ERR at the end of this entry */
	struct qp *next_queued;
	struct qp *next_doomed;
	uint64_t token;
	uint32_t events_sent;
	uint32_t sq_depth, rq_depth, sq_stride, rq_stride;
	struct uroce_qp_page *page;
	uint8_t *sq, *rq;
	struct cq *send_cq, *recv_cq;
	struct srq *srq; /* NULL: its own RQ; XRC receive: that of the present message */
	uint32_t xrcd;
	struct uroce_qp_attr attr;
	struct net_path path;
	struct net_template tmpl;
	uint32_t mtu;       /* bytes */
	struct timer timer; /* ACK timeout, or the RNR wait */
	struct timer pace;  /* when DCQCN lets it send again */
	struct dcqcn dcqcn;
	uint64_t cnp_at; /* when the next CNP may go */
	bool is_cnp_due;
	struct qp_req req;
	struct qp_resp resp;
	struct send_rec rec[]; /* sq_depth of them */
};

static inline struct send_rec *qp_rec(struct qp *qp, uint32_t index)
{
	return &qp->rec[index & (qp->sq_depth - 1)];
}

static inline bool qp_can_receive(const struct qp *qp)
{
	return qp->state >= UROCE_QPS_RTR && qp->state <= UROCE_QPS_SQE;
}

static inline bool qp_is_xrc_recv(const struct qp *qp)
{
	return qp->type == UROCE_QPT_XRC_RECV;
}

/* Acknowledged and repeated: RC and XRC. */
static inline bool qp_is_reliable(const struct qp *qp)
{
	return qp->type != UROCE_QPT_UC && qp->type != UROCE_QPT_UD;
}

static inline bool qp_can_send(const struct qp *qp)
{
	return qp->state == UROCE_QPS_RTS || qp->state == UROCE_QPS_SQD;
}

int qp_add(struct engine *e, const struct cmd_qp_add *cmd);
int qp_del(struct engine *e, uint32_t qpn, uint32_t *events_sent);
struct qp *qp_find(const struct engine *e, uint32_t qpn);

/* The one place that changes a state. */
void qp_set_state(struct engine *e, struct qp *qp, enum uroce_qps next);

/* Flush what is posted and stop. The WQE or RQE at fault was completed before. */
void qp_to_error(struct engine *e, struct qp *qp);
void qp_flush(struct engine *e, struct qp *qp);
void qp_to_sqe(struct engine *e, struct qp *qp);
void qp_reset(struct engine *e, struct qp *qp);

void qp_event(struct engine *e, struct qp *qp, uint32_t type);
void qp_doom(struct engine *e, struct qp *qp);
void qp_run_doomed(struct engine *e);

int qp_modify(struct engine *e, const struct cmd_qp_modify *cmd);
int qp_query(struct engine *e, uint32_t qpn, struct uroce_qp_attr *attr);

/* The table alone: 0 or -EINVAL. */
int qp_check_transition(uint32_t type, enum uroce_qps cur, enum uroce_qps next, uint32_t mask);

/* Completions of both queues; the CQE's common fields are filled here. */
void qp_complete_send(struct engine *e, struct qp *qp, uint32_t index, uint8_t status,
		      uint32_t verr);
void qp_complete_recv(struct engine *e, struct qp *qp, struct uroce_cqe *cqe, bool solicited);
