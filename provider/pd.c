/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <stdlib.h>

struct ibv_pd *uroce_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
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
	pd->context = ctx;
	pd->handle = rep.handle;
	return pd;
}

int uroce_dealloc_pd(struct ibv_pd *pd)
{
	int err = uroce_context_destroy(to_context(pd->context), UROCE_OP_FREE_PD, pd->handle, NULL);

	if (err)
		return err;
	free(pd);
	return 0;
}
