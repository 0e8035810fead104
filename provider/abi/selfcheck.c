/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/abi/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The scratch context: room for a library that has grown, then the struct as verbs.h declares it.
 */
struct scratch {
	uint8_t room[VERBS_CONTEXT_ROOM];
	struct verbs_context vctx;
	uint8_t tail[VERBS_CONTEXT_ROOM];
};

/* Ops that the library copies to a public place, and the place. */
#define PUBLIC_OPS(CTX, COMPAT, EXT) \
	CTX(alloc_mw) CTX(bind_mw) CTX(dealloc_mw) CTX(poll_cq) CTX(req_notify_cq) \
	CTX(post_srq_recv) CTX(post_send) CTX(post_recv) \
	COMPAT(alloc_pd) COMPAT(dealloc_pd) COMPAT(reg_mr) COMPAT(dereg_mr) COMPAT(create_cq) \
	COMPAT(destroy_cq) COMPAT(cq_event) COMPAT(create_qp) COMPAT(query_qp) COMPAT(modify_qp) \
	COMPAT(destroy_qp) COMPAT(create_ah) COMPAT(destroy_ah) COMPAT(async_event) \
	EXT(advise_mr) EXT(alloc_dm) EXT(alloc_null_mr) EXT(create_qp_ex) EXT(query_device_ex) \
	EXT(open_xrcd) EXT(close_xrcd) EXT(post_srq_ops) EXT(read_counters) EXT(reg_dm_mr)

static verbs_fn sentinel(enum verbs_op op)
{
	return (verbs_fn)(uintptr_t)(0x10000 + 64 * (unsigned)op);
}

/* The first public op that is not where it should be, or NULL. */
static const char *misplaced(const struct verbs_context *vctx)
{
	const struct ibv_context_ops *ctx = &vctx->context.ops;

#define CHECK(field, name) \
	if ((verbs_fn)(uintptr_t)(field) != sentinel(VERBS_OP_##name)) \
		return #name;
#define CHECK_CTX(name) CHECK(ctx->name, name)
#define CHECK_COMPAT(name) CHECK(ctx->_compat_##name, name)
#define CHECK_EXT(name) CHECK(vctx->name, name)
	PUBLIC_OPS(CHECK_CTX, CHECK_COMPAT, CHECK_EXT)
	return NULL;
}

static const char *probe(const struct verbs_library *lib, struct verbs_device *dev)
{
	size_t below = offsetof(struct scratch, vctx.context) + sizeof(struct ibv_context) -
		       lib->layout->context_size;
	verbs_fn slots[VERBS_N_OPS] = { 0 };
	struct verbs_context *theirs;
	const char *bad;
	struct scratch *s;

	s = _verbs_init_and_alloc_context(&dev->device, -1, sizeof(*s),
					  (struct verbs_context *)below, 0);
	if (!s)
		return "_verbs_init_and_alloc_context";
	theirs = (struct verbs_context *)((uint8_t *)s + below);
	for (unsigned op = 0; op < VERBS_N_OPS; op++) {
		int index = uroce_verbs_op_index((enum verbs_op)op, lib->release);

		if (index >= 0)
			slots[index] = sentinel((enum verbs_op)op);
	}
	if (s->vctx.sz != lib->layout->context_size) {
		bad = "struct verbs_context";
	} else {
		verbs_set_ops(theirs, slots);
		bad = misplaced(&s->vctx);
	}
	verbs_uninit_context(theirs);
	free(s);
	return bad;
}

bool uroce_verbs_library_check(struct verbs_library *lib)
{
	struct verbs_device *dev;
	const char *bad = "memory";

	if (!lib->layout)
		return false;
	dev = calloc(1, sizeof(*dev));
	if (dev) {
		dev->refcount = 2; /* ours, so that the library never takes it for the last */
		bad = probe(lib, dev);
		free(dev);
	}
	if (!bad)
		return true;
	lib->layout = NULL;
	snprintf(lib->why, sizeof(lib->why),
		 "this libibverbs calls itself release %u but has another layout (%s)",
		 lib->release, bad);
	return false;
}
