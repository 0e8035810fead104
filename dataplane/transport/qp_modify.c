/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp: which transitions there are, which attributes each must and may have (IBA vol. 1,
 * 11.2.5.2 and table "QP State Transition Properties"), which values are legal, and their effect.
 */
#include <errno.h>
#include <string.h>

#include "dataplane/transport/core.h"

/* Bits of enum ibv_qp_attr_mask. */
#define M_STATE      (1u << 0)
#define M_CUR        (1u << 1)
#define M_SQD_NOTIFY (1u << 2)
#define M_ACCESS     (1u << 3)
#define M_PKEY       (1u << 4)
#define M_PORT       (1u << 5)
#define M_QKEY       (1u << 6)
#define M_AV         (1u << 7)
#define M_MTU        (1u << 8)
#define M_TIMEOUT    (1u << 9)
#define M_RETRY      (1u << 10)
#define M_RNR_RETRY  (1u << 11)
#define M_RQ_PSN     (1u << 12)
#define M_RD         (1u << 13)
#define M_ALT        (1u << 14)
#define M_MIN_RNR    (1u << 15)
#define M_SQ_PSN     (1u << 16)
#define M_DEST_RD    (1u << 17)
#define M_MIG        (1u << 18)
#define M_DQPN       (1u << 20)

struct transition {
	uint32_t is_legal, req, opt;
};

enum qp_column { COL_RC, COL_UC, COL_UD, COL_XRC_SEND, COL_XRC_RECV, N_COLS };

static enum qp_column qp_column(uint32_t type)
{
	switch (type) {
	case UROCE_QPT_UC:
		return COL_UC;
	case UROCE_QPT_UD:
		return COL_UD;
	case UROCE_QPT_XRC_SEND:
		return COL_XRC_SEND;
	case UROCE_QPT_XRC_RECV:
		return COL_XRC_RECV;
	default:
		return COL_RC;
	}
}

/*
 * Columns: RC, UC, UD, XRC send, XRC receive. Transitions to RESET and ERR take no attributes and
 * are legal from everywhere, but for RESET to ERR.
 */
#define T(r, o)             \
	{                   \
		1, (r), (o) \
	}
/* clang-format off */
static const struct transition table[UROCE_N_QPS][UROCE_N_QPS][N_COLS] = {
	[UROCE_QPS_RESET][UROCE_QPS_INIT] = {
		T(M_PKEY | M_PORT | M_ACCESS, 0),
		T(M_PKEY | M_PORT | M_ACCESS, 0),
		T(M_PKEY | M_PORT | M_QKEY, 0),
		T(M_PKEY | M_PORT | M_ACCESS, 0),
		T(M_PKEY | M_PORT | M_ACCESS, 0),
	},
	[UROCE_QPS_INIT][UROCE_QPS_INIT] = {
		T(0, M_PKEY | M_PORT | M_ACCESS),
		T(0, M_PKEY | M_PORT | M_ACCESS),
		T(0, M_PKEY | M_PORT | M_QKEY),
		T(0, M_PKEY | M_PORT | M_ACCESS),
		T(0, M_PKEY | M_PORT | M_ACCESS),
	},
	[UROCE_QPS_INIT][UROCE_QPS_RTR] = {
		T(M_AV | M_MTU | M_DQPN | M_RQ_PSN | M_DEST_RD | M_MIN_RNR, M_ALT | M_ACCESS | M_PKEY),
		T(M_AV | M_MTU | M_DQPN | M_RQ_PSN, M_ALT | M_ACCESS | M_PKEY),
		T(0, M_PKEY | M_QKEY),
		T(M_AV | M_MTU | M_DQPN | M_RQ_PSN, M_ALT | M_ACCESS | M_PKEY),
		T(M_AV | M_MTU | M_DQPN | M_RQ_PSN | M_DEST_RD | M_MIN_RNR, M_ALT | M_ACCESS | M_PKEY),
	},
	[UROCE_QPS_RTR][UROCE_QPS_RTS] = {
		T(M_TIMEOUT | M_RETRY | M_RNR_RETRY | M_SQ_PSN | M_RD, M_CUR | M_ALT | M_ACCESS | M_MIN_RNR | M_MIG),
		T(M_SQ_PSN, M_CUR | M_ALT | M_ACCESS | M_MIG),
		T(M_SQ_PSN, M_CUR | M_QKEY),
		T(M_TIMEOUT | M_RETRY | M_RNR_RETRY | M_SQ_PSN | M_RD, M_CUR | M_ALT | M_ACCESS | M_MIG),
		T(M_TIMEOUT | M_SQ_PSN, M_CUR | M_ALT | M_ACCESS | M_MIN_RNR | M_MIG),
	},
	[UROCE_QPS_RTS][UROCE_QPS_RTS] = {
		T(0, M_CUR | M_ACCESS | M_ALT | M_MIG | M_MIN_RNR),
		T(0, M_CUR | M_ACCESS | M_ALT | M_MIG),
		T(0, M_CUR | M_QKEY),
		T(0, M_CUR | M_ACCESS | M_ALT | M_MIG),
		T(0, M_CUR | M_ACCESS | M_ALT | M_MIG | M_MIN_RNR),
	},
	[UROCE_QPS_RTS][UROCE_QPS_SQD] = {
		T(0, M_SQD_NOTIFY), T(0, M_SQD_NOTIFY), T(0, M_SQD_NOTIFY), T(0, M_SQD_NOTIFY), T(0, M_SQD_NOTIFY),
	},
	[UROCE_QPS_SQD][UROCE_QPS_RTS] = {
		T(0, M_CUR | M_ALT | M_ACCESS | M_MIN_RNR | M_MIG),
		T(0, M_CUR | M_ALT | M_ACCESS | M_MIG),
		T(0, M_CUR | M_QKEY),
		T(0, M_CUR | M_ALT | M_ACCESS | M_MIG),
		T(0, M_CUR | M_ALT | M_ACCESS | M_MIN_RNR | M_MIG),
	},
	[UROCE_QPS_SQD][UROCE_QPS_SQD] = {
		T(0, M_PORT | M_AV | M_TIMEOUT | M_RETRY | M_RNR_RETRY | M_RD | M_DEST_RD | M_ALT | M_ACCESS |
		     M_PKEY | M_MIN_RNR | M_MIG),
		T(0, M_AV | M_ALT | M_ACCESS | M_PKEY | M_MIG),
		T(0, M_PKEY | M_QKEY),
		T(0, M_PORT | M_AV | M_TIMEOUT | M_RETRY | M_RNR_RETRY | M_RD | M_ALT | M_ACCESS | M_PKEY | M_MIG),
		T(0, M_PORT | M_AV | M_TIMEOUT | M_DEST_RD | M_ALT | M_ACCESS | M_PKEY | M_MIN_RNR | M_MIG),
	},
	[UROCE_QPS_SQE][UROCE_QPS_RTS] = { { 0 }, T(0, M_CUR | M_ACCESS), T(0, M_CUR | M_QKEY) },
};
/* clang-format on */

int qp_check_transition(uint32_t type, enum uroce_qps cur, enum uroce_qps next, uint32_t mask)
{
	const struct transition *t;

	mask &= ~M_STATE;
	if (next == UROCE_QPS_RESET || next == UROCE_QPS_ERR)
		return mask || (cur == UROCE_QPS_RESET && next == UROCE_QPS_ERR) ? -EINVAL : 0;
	t = &table[cur][next][qp_column(type)];
	if (!t->is_legal || (mask & t->req) != t->req || (mask & ~(t->req | t->opt)))
		return -EINVAL;
	return 0;
}

static int check_values(const struct qp *qp, uint32_t mask, const struct uroce_qp_attr *a)
{
	if ((mask & M_CUR) && a->cur_qp_state != qp->state)
		return -EINVAL;
	if (((mask & M_PORT) && a->port_num != 1) || ((mask & M_PKEY) && a->pkey_index != 0))
		return -EINVAL;
	if ((mask & M_MTU) && (a->path_mtu < 1 || a->path_mtu > 5))
		return -EINVAL;
	if (((mask & M_TIMEOUT) && a->timeout > 31) ||
	    ((mask & M_MIN_RNR) && a->min_rnr_timer > 31))
		return -EINVAL;
	if (((mask & M_RETRY) && a->retry_cnt > 7) || ((mask & M_RNR_RETRY) && a->rnr_retry > 7))
		return -EINVAL;
	if (((mask & M_RD) && a->max_rd_atomic > QP_MAX_RD_ATOMIC) ||
	    ((mask & M_DEST_RD) && a->max_dest_rd_atomic > QP_MAX_RD_ATOMIC))
		return -EINVAL;
	if ((mask & M_DQPN) && a->dest_qp_num > BTH_QPN_MASK)
		return -EINVAL;
	/* Automatic path migration is not offered, so there is no alternate path to set. */
	if ((mask & (M_ALT | M_MIG)) &&
	    !((mask & M_MIG) && !(mask & M_ALT) && a->path_mig_state == 0))
		return -EINVAL;
	return 0;
}

/* clang-format off */
static void copy_attrs(struct qp *qp, uint32_t mask, const struct uroce_qp_attr *a)
{
	struct uroce_qp_attr *to = &qp->attr;

	if (mask & M_SQD_NOTIFY) to->en_sqd_async_notify = a->en_sqd_async_notify;
	if (mask & M_ACCESS)     to->access = a->access;
	if (mask & M_PKEY)       to->pkey_index = a->pkey_index;
	if (mask & M_PORT)       to->port_num = a->port_num;
	if (mask & M_QKEY)       to->qkey = a->qkey;
	if (mask & M_AV)         to->ah = a->ah;
	if (mask & M_MTU)        to->path_mtu = a->path_mtu;
	if (mask & M_TIMEOUT)    to->timeout = a->timeout;
	if (mask & M_RETRY)      to->retry_cnt = a->retry_cnt;
	if (mask & M_RNR_RETRY)  to->rnr_retry = a->rnr_retry;
	if (mask & M_RQ_PSN)     to->rq_psn = a->rq_psn & PSN_MASK;
	if (mask & M_RD)         to->max_rd_atomic = a->max_rd_atomic;
	if (mask & M_MIN_RNR)    to->min_rnr_timer = a->min_rnr_timer;
	if (mask & M_SQ_PSN)     to->sq_psn = a->sq_psn & PSN_MASK;
	if (mask & M_DEST_RD)    to->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & M_DQPN)       to->dest_qp_num = a->dest_qp_num;
}
/* clang-format on */

static void apply_attrs(const struct engine *e, struct qp *qp, const struct cmd_qp_modify *c)
{
	struct qp_req *r = &qp->req;

	copy_attrs(qp, c->mask, &c->attr);
	if (c->mask & M_AV) {
		qp->path = c->path;
		congest_template(e, qp);
	}
	if (c->mask & M_MTU)
		qp->mtu = 128u << qp->attr.path_mtu;
	if (c->mask & M_RQ_PSN)
		qp->resp.epsn = psn_make(qp->attr.rq_psn);
	if (c->mask & M_SQ_PSN) {
		r->una_psn = r->nxt_psn = r->sent_psn = r->asg_psn = psn_make(qp->attr.sq_psn);
		r->reads.heard_psn = r->reads.asked_end = r->reads.last_psn = r->una_psn;
		r->cwnd = e->conf.window;
	}
	if (c->mask & M_RETRY)
		r->retry_left = qp->attr.retry_cnt;
	if (c->mask & M_RNR_RETRY)
		r->rnr_left = qp->attr.rnr_retry;
}

/* Programs treat XRC as RC: what one half of it has no use for is left aside, as Linux does. */
static uint32_t mask_without_other_half(uint32_t type, uint32_t mask)
{
	if (type == UROCE_QPT_XRC_SEND)
		return mask & ~(M_DEST_RD | M_MIN_RNR);
	if (type == UROCE_QPT_XRC_RECV)
		return mask & ~(M_RD | M_RETRY | M_RNR_RETRY);
	return mask;
}

int qp_modify(struct engine *e, const struct cmd_qp_modify *cmd)
{
	struct qp *qp = qp_find(e, cmd->qpn);
	struct cmd_qp_modify filtered = *cmd;
	const struct cmd_qp_modify *c = &filtered;
	enum uroce_qps next;
	int err;

	if (!qp)
		return -ENOENT;
	filtered.mask = mask_without_other_half(qp->type, cmd->mask);
	if ((c->mask & M_STATE) && c->attr.qp_state >= UROCE_N_QPS)
		return -EINVAL;
	next = c->mask & M_STATE ? (enum uroce_qps)c->attr.qp_state : qp->state;
	err = qp_check_transition(qp->type, qp->state, next, c->mask);
	if (!err)
		err = check_values(qp, c->mask, &c->attr);
	if (err)
		return err;
	if (next == UROCE_QPS_RESET) {
		qp_reset(e, qp);
		qp_set_state(e, qp, next);
		return 0;
	}
	if (next == UROCE_QPS_ERR) {
		qp_to_error(e, qp);
		return 0;
	}
	apply_attrs(e, qp, c);
	if (next != qp->state) {
		qp->req.is_drain_told = false;
		qp_set_state(e, qp, next);
	}
	sched_add(e, qp);
	requester_check_drained(e, qp);
	return 0;
}

int qp_query(struct engine *e, uint32_t qpn, struct uroce_qp_attr *attr)
{
	const struct qp *qp = qp_find(e, qpn);

	if (!qp)
		return -ENOENT;
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	if (qp->state >= UROCE_QPS_RTS)
		attr->sq_psn = qp->req.asg_psn.v;
	if (qp->state >= UROCE_QPS_RTR)
		attr->rq_psn = qp->resp.epsn.v;
	attr->sq_draining = qp->state == UROCE_QPS_SQD && qp->req.una != qp->req.tail;
	return 0;
}
