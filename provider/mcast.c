/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <string.h>

static int ask(struct ibv_qp *qp, uint32_t op, const union ibv_gid *gid, uint16_t lid)
{
	struct uroce_mcast req = { .handle = qp->handle, .lid = lid };

	memcpy(req.mgid, gid->raw, sizeof(req.mgid));
	return uroce_context_call(to_context(qp->context), op, &req, sizeof(req), NULL, 0);
}

int uroce_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ask(qp, UROCE_OP_ATTACH_MCAST, gid, lid);
}

int uroce_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ask(qp, UROCE_OP_DETACH_MCAST, gid, lid);
}
