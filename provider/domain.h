/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains, and what a program may hang on one: a thread domain (its objects come with
 * one thread at a time, so their locks are left out) and allocators for the provider's host memory.
 * The rings are not host memory: they are shared with the daemon, which makes them.
 */
#pragma once

#include "provider/provider.h"

struct uroce_td {
	struct ibv_td v; /* first */
	atomic_uint refs;
};

struct uroce_pd {
	struct ibv_pd v;       /* first */
	atomic_uint refs;      /* parent domains of it; or objects in this parent domain */
	struct uroce_pd *real; /* parent domain: of which PD; else NULL */
	struct uroce_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/* What an allocator is told its memory is for, in the way of other drivers: vendor, then number. */
#define UROCE_RES_QP  (0x025552ull << 32 | 1)

/* The parent domain that `pd` is, or NULL when it is a plain PD. */
struct uroce_pd *uroce_domain_of(struct ibv_pd *pd);

/* Objects hold the parent domain they were made in. All of these take NULL for none. */
struct uroce_pd *uroce_domain_get(struct uroce_pd *domain);
void uroce_domain_put(struct uroce_pd *domain);
bool uroce_domain_is_single_threaded(const struct uroce_pd *domain);

/* Zeroed host memory, by the domain's allocator unless it declines; NULL: there is none. */
void *uroce_domain_alloc(struct uroce_pd *domain, size_t size, uint64_t resource, bool *is_custom);
void uroce_domain_free(struct uroce_pd *domain, void *ptr, uint64_t resource, bool is_custom);

struct ibv_pd *uroce_alloc_pd(struct ibv_context *ctx);
int uroce_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *uroce_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int uroce_dealloc_td(struct ibv_td *td);
struct ibv_pd *uroce_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr);
