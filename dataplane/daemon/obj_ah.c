/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"

int request_create_ah(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_create_ah *req = body;
	struct uroce_handle *h = reply_body(r, sizeof(*h));
	struct pd *pd = handles_get(&s->pds, req->pd);
	struct ah *ah;
	int err;

	if (!pd)
		return -EINVAL;
	if (s->dev->n_ah == DEVICE_MAX_AH)
		return -ENOMEM;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	err = device_resolve(s->dev, &req->attr, 0, 0, &ah->path);
	if (!err && handles_add(&s->ahs, ah, &h->handle))
		err = -ENOMEM;
	if (err) {
		free(ah);
		return err;
	}
	ah->pd = pd;
	pd->refs++;
	s->dev->n_ah++;
	return 0;
}

int request_destroy_ah(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct ah *ah = handles_del(&s->ahs, h->handle);

	(void)r;
	if (!ah)
		return -EINVAL;
	ah->pd->refs--;
	s->dev->n_ah--;
	free(ah);
	return 0;
}
