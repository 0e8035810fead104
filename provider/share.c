/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A context imported by the command descriptor of another is one of its own, which may name the
 * other's PDs, regions and device memory by their handles. What it imports stays its owner's.
 */
#include "provider/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * libibverbs tells devices apart by the number of their device file, of which all of ours have one.
 * So the context may have begun as one of another device; both count their contexts.
 */
int uroce_share_settle(struct uroce_context *ctx, const char *device)
{
	struct ibv_device *from = ctx->vctx.context.device, *to = NULL, **list;

	if (!strncmp(from->name, device, UROCE_DEV_NAME_MAX))
		return 0;
	list = ibv_get_device_list(NULL);
	for (int i = 0; list && list[i]; i++) {
		if (!strncmp(list[i]->name, device, UROCE_DEV_NAME_MAX))
			to = list[i];
	}
	if (to) {
		__atomic_fetch_add(&((struct verbs_device *)to)->refcount, 1, __ATOMIC_ACQ_REL);
		__atomic_fetch_sub(&((struct verbs_device *)from)->refcount, 1, __ATOMIC_ACQ_REL);
		ctx->vctx.context.device = to;
	}
	if (list)
		ibv_free_device_list(list);
	return to ? 0 : ENODEV;
}

struct ibv_pd *uroce_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	struct uroce_handle req = { .handle = handle }, rep;
	struct uroce_pd *pd = calloc(1, sizeof(*pd));
	int err = ENOMEM;

	if (pd)
		err = uroce_context_call(to_context(ctx), UROCE_OP_IMPORT_PD, &req, sizeof(req),
					 &rep, sizeof(rep));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->v.context = ctx;
	pd->v.handle = rep.handle;
	return &pd->v;
}

/* While objects of it are left, our handle of it stays with the context. */
void uroce_unimport_pd(struct ibv_pd *pd)
{
	uroce_context_destroy(to_context(pd->context), UROCE_OP_FREE_PD, pd->handle, NULL);
	free(pd);
}

struct ibv_mr *uroce_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct uroce_import_mr req = { .pd = pd->handle, .handle = handle };
	struct uroce_reg_mr_rep rep;
	struct uroce_mr *mr = calloc(1, sizeof(*mr));
	int err = ENOMEM;

	if (mr)
		err = uroce_context_call(to_context(pd->context), UROCE_OP_IMPORT_MR, &req,
					 sizeof(req), &rep, sizeof(rep));
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	mr->v.mr_type = VERBS_MR_TYPE_IMPORTED;
	mr->v.ibv_mr.context = pd->context;
	mr->v.ibv_mr.pd = pd;
	mr->v.ibv_mr.handle = handle;
	mr->v.ibv_mr.lkey = rep.lkey;
	mr->v.ibv_mr.rkey = rep.rkey;
	return &mr->v.ibv_mr;
}

void uroce_unimport_mr(struct ibv_mr *mr)
{
	free(mr);
}
