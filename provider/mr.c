/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <stdlib.h>

#define ACCESS_KNOWN \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define ACCESS_REMOTE_STORE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* Optional bits ask for nothing we owe; remote stores need local ones (IBA 10.6.3.1). */
static int check_access(int access)
{
	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~ACCESS_KNOWN)
		return EINVAL;
	if ((access & ACCESS_REMOTE_STORE) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static int register_range(struct ibv_pd *pd, struct ibv_mr *mr, const struct uroce_reg_mr *req)
{
	struct uroce_reg_mr_rep rep;
	int err = uroce_context_call(to_context(pd->context), UROCE_OP_REG_MR, req, sizeof(*req),
				     &rep, sizeof(rep));

	if (err)
		return err;
	mr->handle = rep.handle;
	mr->lkey = rep.lkey;
	mr->rkey = rep.rkey;
	return 0;
}

struct ibv_mr *uroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct uroce_reg_mr req = { .pd = pd->handle,
				    .access = (uint32_t)(access & ~IBV_ACCESS_OPTIONAL_RANGE),
				    .addr = (uintptr_t)addr,
				    .length = length,
				    .iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova };
	struct verbs_mr *mr;
	int err = check_access(access);

	if (!err && (!length || req.addr + length < req.addr || req.iova + length < req.iova))
		err = EINVAL;
	mr = err ? NULL : calloc(1, sizeof(*mr));
	if (!err)
		err = mr ? register_range(pd, &mr->ibv_mr, &req) : ENOMEM;
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	mr->mr_type = VERBS_MR_TYPE_MR;
	mr->access = access;
	return &mr->ibv_mr;
}

int uroce_dereg_mr(struct verbs_mr *mr)
{
	int err = uroce_context_destroy(to_context(mr->ibv_mr.context), UROCE_OP_DEREG_MR,
					mr->ibv_mr.handle, NULL);

	if (err)
		return err;
	free(mr);
	return 0;
}
