/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <stdlib.h>

/* IBV_ACCESS_FLUSH_GLOBAL of newer headers; FLUSH_PERSISTENT, the next bit, we cannot promise. */
#define UROCE_ACCESS_FLUSH 0x100
#define ACCESS_KNOWN                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 UROCE_ACCESS_FLUSH | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define ACCESS_REMOTE_STORE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/* What the daemon does not need to know: a range of hints, and where addresses begin. */
#define ACCESS_OURS (IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_ZERO_BASED)

/* Optional bits ask for nothing we owe; remote stores need local ones (IBA 10.6.3.1). */
static int check_access(int access)
{
	if (access & ~ACCESS_KNOWN)
		return EINVAL;
	if ((access & ACCESS_REMOTE_STORE) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* op: REG_MR or ALLOC_NULL_MR; body is its request. */
static int request(struct ibv_pd *pd, uint32_t op, const void *body, uint32_t len,
		   struct ibv_mr *mr)
{
	struct uroce_reg_mr_rep rep;
	int err = uroce_context_call(to_context(pd->context), op, body, len, &rep, sizeof(rep));

	if (err)
		return err;
	mr->handle = rep.handle;
	mr->lkey = rep.lkey;
	mr->rkey = rep.rkey;
	return 0;
}

static struct uroce_mr *add(struct ibv_pd *pd, uint32_t op, const void *body, uint32_t len)
{
	struct uroce_context *ctx = to_context(pd->context);
	struct uroce_mr *mr = calloc(1, sizeof(*mr));
	int err = mr ? request(pd, op, body, len, &mr->v.ibv_mr) : ENOMEM;

	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	mr->v.ibv_mr.context = pd->context;
	mr->v.ibv_mr.pd = pd;
	pthread_mutex_lock(&ctx->objects);
	mr->next = ctx->mrs;
	ctx->mrs = mr;
	pthread_mutex_unlock(&ctx->objects);
	return mr;
}

static void delist(struct uroce_context *ctx, struct uroce_mr *mr)
{
	pthread_mutex_lock(&ctx->objects);
	for (struct uroce_mr **p = &ctx->mrs; *p; p = &(*p)->next) {
		if (*p == mr) {
			*p = mr->next;
			break;
		}
	}
	pthread_mutex_unlock(&ctx->objects);
}

struct ibv_mr *uroce_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access)
{
	struct uroce_reg_mr req = { .pd = pd->handle,
				    .access = (uint32_t)(access & ~ACCESS_OURS),
				    .addr = (uintptr_t)addr,
				    .length = length,
				    .iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova };
	struct uroce_mr *mr;
	int err = check_access(access);

	if (!err && (req.addr + length < req.addr || req.iova + length < req.iova))
		err = EINVAL;
	if (err) {
		errno = err;
		return NULL;
	}
	mr = add(pd, UROCE_OP_REG_MR, &req, sizeof(req));
	if (!mr)
		return NULL;
	mr->v.mr_type = VERBS_MR_TYPE_MR;
	mr->v.access = access;
	mr->iova = req.iova;
	return &mr->v.ibv_mr;
}

/* Nothing is nothing to register (as the kernel's drivers have it). */
struct ibv_mr *uroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	if (length)
		return uroce_mr_register(pd, addr, length, iova, access);
	errno = EINVAL;
	return NULL;
}

struct ibv_mr *uroce_alloc_null_mr(struct ibv_pd *pd)
{
	struct uroce_handle req = { .handle = pd->handle };
	struct uroce_mr *mr = add(pd, UROCE_OP_ALLOC_NULL_MR, &req, sizeof(req));

	if (!mr)
		return NULL;
	mr->v.mr_type = VERBS_MR_TYPE_NULL;
	mr->v.access = IBV_ACCESS_LOCAL_WRITE;
	mr->v.ibv_mr.length = SIZE_MAX;
	return &mr->v.ibv_mr;
}

/* The rest of ibv_mr the library brings up to date. */
int uroce_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access)
{
	int to_be = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : vmr->access;
	struct uroce_mr *mr = (struct uroce_mr *)vmr;
	struct uroce_rereg_mr req = {
		.handle = vmr->ibv_mr.handle,
		.flags = (uint32_t)flags,
		.to = { .access = (uint32_t)(to_be & ~ACCESS_OURS),
			.addr = (uintptr_t)addr,
			.length = length,
			.iova = to_be & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr },
	};
	struct uroce_reg_mr_rep rep;
	int err = check_access(to_be);

	/* The null region, what is another's, and device memory are not memory of the program's. */
	if (vmr->mr_type != VERBS_MR_TYPE_MR || mr->dm)
		err = EINVAL;
	if (!err && (flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != vmr->ibv_mr.context))
		err = EINVAL;
	if (!err && pd)
		req.to.pd = pd->handle;
	if (!err)
		err = uroce_context_call(to_context(vmr->ibv_mr.context), UROCE_OP_REREG_MR, &req,
					 sizeof(req), &rep, sizeof(rep));
	if (err) {
		errno = err;
		return err;
	}
	vmr->ibv_mr.handle = rep.handle;
	vmr->ibv_mr.lkey = rep.lkey;
	vmr->ibv_mr.rkey = rep.rkey;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		mr->iova = req.to.iova;
	vmr->access = to_be;
	return 0;
}

int uroce_dereg_mr(struct verbs_mr *vmr)
{
	struct uroce_context *ctx = to_context(vmr->ibv_mr.context);
	struct uroce_mr *mr = (struct uroce_mr *)vmr;
	int err;

	if (vmr->mr_type == VERBS_MR_TYPE_IMPORTED) /* its owner's; ibv_unimport_mr is meant */
		return EOPNOTSUPP;
	err = uroce_context_destroy(ctx, UROCE_OP_DEREG_MR, vmr->ibv_mr.handle, NULL);
	if (err)
		return err;
	delist(ctx, mr);
	uroce_dm_put(mr->dm);
	uroce_unmap(mr->mapped, mr->mapped_size);
	free(mr);
	return 0;
}
