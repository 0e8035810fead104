/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory. The device is software, so its memory is what the daemon reaches and the program
 * does not address: a shared mapping of this process that is only shown by copies and by zero-based
 * regions. It costs no daemon memory and needs no daemon to be had.
 */
#include "provider/provider.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACCESS_ALIGN 4u /* copies go in words, as on other devices */

struct uroce_dm {
	struct ibv_dm v; /* first */
	uint8_t *mem;
	size_t length, mapped;
	atomic_uint n_regions;
};

static int check_range(const struct uroce_dm *dm, uint64_t offset, size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return offset % ACCESS_ALIGN || length % ACCESS_ALIGN ? EINVAL : 0;
}

static int memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *host_addr, size_t length)
{
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;
	int err = check_range(dm, offset, length);

	if (!err)
		memcpy(dm->mem + offset, host_addr, length);
	return err;
}

static int memcpy_from_dm(void *host_addr, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;
	int err = check_range(dm, offset, length);

	if (!err)
		memcpy(host_addr, dm->mem + offset, length);
	return err;
}

static int check_attr(const struct ibv_alloc_dm_attr *attr, size_t page)
{
	if (attr->comp_mask)
		return EOPNOTSUPP;
	if (!attr->length || attr->length > UROCE_MAX_DM)
		return EINVAL;
	return attr->log_align_req < 32 && 1u << attr->log_align_req <= page ? 0 : EINVAL;
}

/* The device has so much of it and no more. */
static int charge(struct uroce_context *ctx, size_t size)
{
	if (atomic_fetch_add(&ctx->dm_used, size) + size <= UROCE_MAX_DM)
		return 0;
	atomic_fetch_sub(&ctx->dm_used, size);
	return ENOMEM;
}

struct ibv_dm *uroce_alloc_dm(struct ibv_context *ibctx, struct ibv_alloc_dm_attr *attr)
{
	struct uroce_context *ctx = to_context(ibctx);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct uroce_dm *dm = NULL;
	size_t mapped = 0;
	int err = check_attr(attr, page);

	if (err)
		goto fail;
	mapped = (attr->length + page - 1) & ~(page - 1);
	err = charge(ctx, mapped);
	if (err)
		goto fail;
	err = ENOMEM;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		goto refund;
	dm->mem = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (dm->mem == MAP_FAILED)
		goto refund;
	dm->length = attr->length;
	dm->mapped = mapped;
	dm->v.context = ibctx;
	dm->v.memcpy_to_dm = memcpy_to_dm;
	dm->v.memcpy_from_dm = memcpy_from_dm;
	return &dm->v;
refund:
	atomic_fetch_sub(&ctx->dm_used, mapped);
fail:
	free(dm);
	errno = err;
	return NULL;
}

int uroce_free_dm(struct ibv_dm *ibdm)
{
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;

	if (atomic_load(&dm->n_regions))
		return EBUSY;
	munmap(dm->mem, dm->mapped);
	atomic_fetch_sub(&to_context(ibdm->context)->dm_used, dm->mapped);
	free(dm);
	return 0;
}

struct ibv_mr *uroce_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset,
			       size_t length, unsigned access)
{
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;
	struct ibv_mr *mr;

	if (pd->context != ibdm->context || !(access & IBV_ACCESS_ZERO_BASED) ||
	    (access & IBV_ACCESS_ON_DEMAND) || offset > dm->length ||
	    length > dm->length - offset) {
		errno = EINVAL;
		return NULL;
	}
	mr = uroce_mr_register(pd, dm->mem + offset, length, 0, (int)access);
	if (!mr)
		return NULL;
	mr->length = length; /* and no address: the program has none for it */
	((struct uroce_mr *)mr)->dm = dm;
	atomic_fetch_add(&dm->n_regions, 1);
	return mr;
}

void uroce_dm_put(struct uroce_dm *dm)
{
	if (dm)
		atomic_fetch_sub(&dm->n_regions, 1);
}
