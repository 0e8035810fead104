/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DOMAIN_MASK \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

static struct uroce_pd *to_pd(struct ibv_pd *pd)
{
	return (struct uroce_pd *)pd;
}

struct uroce_pd *uroce_domain_of(struct ibv_pd *pd)
{
	return pd && to_pd(pd)->real ? to_pd(pd) : NULL;
}

struct uroce_pd *uroce_domain_get(struct uroce_pd *domain)
{
	if (domain)
		atomic_fetch_add(&domain->refs, 1);
	return domain;
}

void uroce_domain_put(struct uroce_pd *domain)
{
	if (domain)
		atomic_fetch_sub(&domain->refs, 1);
}

bool uroce_domain_is_single_threaded(const struct uroce_pd *domain)
{
	return domain && domain->td;
}

void *uroce_domain_alloc(struct uroce_pd *domain, size_t size, uint64_t resource, bool *is_custom)
{
	void *ptr;

	*is_custom = false;
	if (!domain || !domain->alloc)
		return calloc(1, size);
	ptr = domain->alloc(&domain->v, domain->pd_context, size, UROCE_CACHE_LINE, resource);
	if (ptr == IBV_ALLOCATOR_USE_DEFAULT)
		return calloc(1, size);
	*is_custom = true;
	return ptr ? memset(ptr, 0, size) : NULL;
}

void uroce_domain_free(struct uroce_pd *domain, void *ptr, uint64_t resource, bool is_custom)
{
	if (!is_custom)
		free(ptr);
	else if (ptr)
		domain->free(&domain->v, domain->pd_context, ptr, resource);
}

struct ibv_pd *uroce_alloc_pd(struct ibv_context *ctx)
{
	struct uroce_pd *pd = calloc(1, sizeof(*pd));
	struct uroce_handle rep;
	int err;

	if (!pd)
		return NULL;
	err = uroce_context_call(to_context(ctx), UROCE_OP_ALLOC_PD, NULL, 0, &rep, sizeof(rep));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->v.context = ctx;
	pd->v.handle = rep.handle;
	return &pd->v;
}

int uroce_dealloc_pd(struct ibv_pd *ibpd)
{
	struct uroce_pd *pd = to_pd(ibpd);
	int err = 0;

	if (atomic_load(&pd->refs))
		return EBUSY;
	if (pd->real) {
		if (pd->td)
			atomic_fetch_sub(&pd->td->refs, 1);
		atomic_fetch_sub(&pd->real->refs, 1);
	} else {
		err = uroce_context_destroy(to_context(ibpd->context), UROCE_OP_FREE_PD,
					    ibpd->handle, NULL);
	}
	if (!err)
		free(pd);
	return err;
}

struct ibv_td *uroce_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct uroce_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->v.context = ctx;
	return &td->v;
}

int uroce_dealloc_td(struct ibv_td *ibtd)
{
	struct uroce_td *td = (struct uroce_td *)ibtd;

	if (atomic_load(&td->refs))
		return EBUSY;
	free(td);
	return 0;
}

static bool is_sound(const struct ibv_context *ctx, const struct ibv_parent_domain_init_attr *a)
{
	if (a->comp_mask & ~(uint32_t)DOMAIN_MASK)
		return false;
	if (!a->pd || a->pd->context != ctx || uroce_domain_of(a->pd))
		return false;
	if (a->td && a->td->context != ctx)
		return false;
	return !(a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) || (a->alloc && a->free);
}

struct ibv_pd *uroce_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr)
{
	struct uroce_pd *pd;

	if (!is_sound(ctx, attr)) {
		errno = EINVAL;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->v.context = ctx;
	pd->v.handle = attr->pd->handle; /* so it serves wherever a PD does */
	pd->real = to_pd(attr->pd);
	pd->td = (struct uroce_td *)attr->td;
	atomic_fetch_add(&pd->real->refs, 1);
	if (pd->td)
		atomic_fetch_add(&pd->td->refs, 1);
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->v;
}
