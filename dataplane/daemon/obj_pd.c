/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"

int request_alloc_pd(struct session *s, const void *body, struct reply *r)
{
	struct pd *pd = calloc(1, sizeof(*pd));
	struct uroce_handle *h = reply_body(r, sizeof(*h));
	int err;

	(void)body;
	if (!pd)
		return -ENOMEM;
	if (s->dev->n_pd == DEVICE_MAX_PD)
		err = -ENOMEM;
	else
		err = handles_add(&s->pds, pd, &h->handle);
	if (err) {
		free(pd);
		return -ENOMEM;
	}
	/* Unique over the device; 2^32 allocations away from a repetition. */
	pd->number = ++s->dev->last_pd ? s->dev->last_pd : ++s->dev->last_pd;
	pd->holders = 1;
	s->dev->n_pd++;
	return 0;
}

/* The session's handle is gone; nothing of the session uses it any more. */
void pd_drop(struct session *s, struct pd *pd)
{
	if (--pd->holders)
		return;
	s->dev->n_pd--;
	free(pd);
}

int request_free_pd(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct pd *pd = handles_get(&s->pds, h->handle);

	(void)r;
	if (!pd)
		return -EINVAL;
	if (pd->refs)
		return -EBUSY;
	handles_del(&s->pds, h->handle);
	pd_drop(s, pd);
	return 0;
}
