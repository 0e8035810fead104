/* SPDX-License-Identifier: BSD-3-Clause */
/* An opened device on a fake daemon, with the objects most tests want. */
#pragma once

#include <infiniband/verbs.h>

#include "tests/unit/provider/fake_daemon.h"

#define RIG_CQE    8
#define RIG_SQ     4
#define RIG_RQ     4
#define RIG_SGE    2
#define RIG_INLINE 64

struct rig {
	struct fake fake;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct uroce_qp_page *page; /* of qp, as the daemon sees it */
};

/* Open the one device of the tree; NULL if it is not listed or does not open. */
struct ibv_context *rig_open(void);

void rig_up(struct rig *r);            /* all of it, qp in RTS */
struct ibv_qp *rig_qp(struct rig *r, enum ibv_qp_type type);
int rig_state(struct ibv_qp *qp, enum ibv_qp_state state);
void rig_down(struct rig *r);          /* destroy everything, stop the daemon */

void rig_down_but_daemon(struct rig *r);

struct uroce_wqe *rig_wqe(struct rig *r, uint32_t index);
/* A completion of this QP's queue. */
struct uroce_cqe rig_cqe(const struct ibv_qp *qp, uint8_t queue, uint32_t wqe_index);
