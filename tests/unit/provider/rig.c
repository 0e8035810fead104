/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/provider/rig.h"

#include <stdlib.h>
#include <string.h>

#define MUST(x) ((x) ? (void)0 : abort())

struct ibv_context *rig_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	return ctx;
}

int rig_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

struct ibv_qp *rig_qp(struct rig *r, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = r->cq,
					 .recv_cq = r->cq,
					 .qp_type = type,
					 .cap = { RIG_SQ, RIG_RQ, RIG_SGE, RIG_SGE, RIG_INLINE } };

	return ibv_create_qp(r->pd, &init);
}

void rig_up(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	r->fake.version = UROCE_ABI_VERSION;
	fake_start(&r->fake);
	r->ctx = rig_open();
	MUST(r->ctx);
	r->pd = ibv_alloc_pd(r->ctx);
	MUST(r->pd);
	r->cq = ibv_create_cq(r->ctx, RIG_CQE, NULL, NULL, 0);
	MUST(r->cq);
	r->qp = rig_qp(r, IBV_QPT_RC);
	MUST(r->qp);
	r->page = (struct uroce_qp_page *)r->fake.qp[0].mem;
	MUST(!rig_state(r->qp, IBV_QPS_INIT) && !rig_state(r->qp, IBV_QPS_RTR) &&
	     !rig_state(r->qp, IBV_QPS_RTS));
}

void rig_down_but_daemon(struct rig *r)
{
	if (r->qp)
		MUST(!ibv_destroy_qp(r->qp));
	if (r->cq)
		MUST(!ibv_destroy_cq(r->cq));
	if (r->pd)
		MUST(!ibv_dealloc_pd(r->pd));
	MUST(!ibv_close_device(r->ctx));
}

void rig_down(struct rig *r)
{
	rig_down_but_daemon(r);
	fake_die(&r->fake);
}

struct uroce_wqe *rig_wqe(struct rig *r, uint32_t index)
{
	const struct fake_qp *qp = &r->fake.qp[0];

	return (struct uroce_wqe *)(qp->mem + qp->rep.sq_off +
				    (index & (qp->rep.sq_depth - 1)) * qp->rep.sq_stride);
}

struct uroce_cqe rig_cqe(const struct ibv_qp *qp, uint8_t queue, uint32_t wqe_index)
{
	struct uroce_cqe cqe = { .wr_id = 0xdead, /* the provider knows better */
				 .qpn = qp->qp_num,
				 .qp_slot = 70 + qp->handle,
				 .wqe_index = wqe_index,
				 .queue = queue,
				 .opcode = queue == UROCE_CQE_RQ ? UROCE_WC_RECV : UROCE_WC_SEND };

	return cqe;
}
