/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests as WQEs: one way of writing them for both ways of posting, ibv_post_send and
 * ibv_wr_*. All of it with the SQ's lock held; nothing is seen by the daemon before
 * uroce_sq_publish.
 */
#pragma once

#include "provider/provider.h"

/* What a window may allow, and that its addresses may begin at 0. */
#define UROCE_MW_ACCESS                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

/* What every work request has. flags: enum ibv_send_flags. */
struct uroce_sq_op {
	uint64_t wr_id;
	uint32_t opcode;
	unsigned flags;
};

/* Does the service type have this operation (enum ibv_wr_opcode)? */
bool uroce_sq_may_post(enum ibv_qp_type type, uint32_t opcode);
bool uroce_sq_may_inline(uint32_t opcode);

/* EINVAL: not in this state; EIO: the daemon is gone. */
int uroce_sq_check_state(const struct uroce_qp *qp);

/*
 * Begin the request of index `index`: the slot has its header, no operands and no data. EINVAL, or
 * ENOMEM when the queue is full.
 */
int uroce_sq_begin(struct uroce_qp *qp, uint32_t index, const struct uroce_sq_op *op,
		   struct uroce_draft *draft);

/* Data: inline (EINVAL: more than the QP's max_inline) or by entries, at most max_sge of them. */
int uroce_wqe_add_inline(const struct uroce_qp *qp, struct uroce_draft *d, const void *data,
			 size_t length);
/* Empty entries are left out: they name no memory, so their keys mean nothing. */
void uroce_wqe_add_sge(struct uroce_draft *d, uint64_t addr, uint32_t length, uint32_t lkey);
/* What was added is gone; what comes next is (not) inline. */
void uroce_wqe_clear_data(struct uroce_draft *d, bool is_inline);

int uroce_wqe_set_bind(const struct uroce_qp *qp, struct uroce_wqe *wqe, const struct ibv_mw *mw,
		       uint32_t rkey, const struct ibv_mw_bind_info *info);
void uroce_wqe_set_ud(struct uroce_wqe *wqe, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);

/* All requests before `head` are the daemon's. */
void uroce_sq_publish(struct uroce_qp *qp, uint32_t head);
