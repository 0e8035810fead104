/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand paging. The daemon reaches a program's memory through the kernel, page by page at the
 * time of access, so nothing is ever pinned and every region is on demand by nature; what is left
 * to do is advice: bringing pages in before they are wanted.
 */
#include "provider/provider.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static struct uroce_mr *find(struct uroce_context *ctx, uint32_t lkey)
{
	struct uroce_mr *mr = ctx->mrs;

	while (mr && mr->v.ibv_mr.lkey != lkey)
		mr = mr->next;
	return mr;
}

/* `objects` held. *addr: where the range is in the process. */
static int check(struct uroce_context *ctx, const struct ibv_pd *pd, bool is_write,
		 const struct ibv_sge *sge, uintptr_t *addr)
{
	const struct uroce_mr *mr = find(ctx, sge->lkey);
	uint64_t off;

	if (!mr)
		return ENOENT;
	if (mr->v.ibv_mr.pd->handle != pd->handle)
		return EPERM;
	if (is_write && !(mr->v.access & IBV_ACCESS_LOCAL_WRITE))
		return EPERM;
	if (!(mr->v.access & IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	off = sge->addr - mr->iova;
	if (sge->addr < mr->iova || off > mr->v.ibv_mr.length ||
	    sge->length > mr->v.ibv_mr.length - off)
		return EFAULT;
	*addr = (uintptr_t)mr->v.ibv_mr.addr + off;
	return 0;
}

static int bring_in(uintptr_t addr, size_t length, bool is_write, bool must_be_there)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = addr & ~(page - 1), end = (addr + length + page - 1) & ~(page - 1);
	void *at = (void *)start;

	if (!length)
		return 0;
	if (!must_be_there) { /* as soon as the kernel finds the time; nobody is told of failures */
		madvise(at, end - start, MADV_WILLNEED);
		return 0;
	}
	if (!madvise(at, end - start, is_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	if (errno != EINVAL)
		return errno == ENOMEM || errno == EFAULT ? EFAULT : errno;
	/* A kernel before 5.14, or a mapping that cannot be populated: the access itself will. */
	return madvise(at, end - start, MADV_WILLNEED) && errno == ENOMEM ? EFAULT : 0;
}

int uroce_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *list, uint32_t n)
{
	struct uroce_context *ctx = to_context(pd->context);
	bool is_write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int err = 0;

	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && !is_write &&
	    advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !n)
		return EINVAL;
	for (uint32_t i = 0; i < n && !err; i++) {
		uintptr_t addr;

		pthread_mutex_lock(&ctx->objects);
		err = check(ctx, pd, is_write, &list[i], &addr);
		pthread_mutex_unlock(&ctx->objects);
		/* Without faults: what is not there stays away, and there is no translation to
		 * fetch. */
		if (!err && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			err = bring_in(addr, list[i].length, is_write,
				       flags & IBV_ADVISE_MR_FLAG_FLUSH);
	}
	return err;
}
