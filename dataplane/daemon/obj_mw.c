/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: every engine knows them, whichever it is that a QP binds them in. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"

int request_alloc_mw(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_alloc_mw *req = body;
	struct uroce_alloc_mw_rep *rep = reply_body(r, sizeof(*rep));
	struct pd *pd = handles_get(&s->pds, req->pd);
	struct mw *mw;
	uint8_t generation;
	uint32_t index;
	struct cmd cmd;
	int err = -ENOMEM;

	if (!pd)
		return -EINVAL;
	mw = calloc(1, sizeof(*mw));
	if (!mw || numbers_take(&s->dev->keys, &index, &generation))
		goto free_mw;
	mw->pd = pd;
	mw->key = index << 8 | generation;
	cmd = (struct cmd) { .op = ENGINE_MW_ADD, .mw_add = { mw->key, pd->number, req->type } };
	err = device_command_all(s->dev, &cmd, NULL);
	if (!err && handles_add(&s->mws, mw, &rep->handle))
		err = -ENOMEM;
	if (err) {
		cmd = (struct cmd) { .op = ENGINE_MW_DEL, .key = mw->key };
		device_command_all(s->dev, &cmd, NULL);
		goto give_key;
	}
	pd->refs++;
	s->dev->n_mw++;
	rep->rkey = mw->key;
	return 0;
give_key:
	numbers_give(&s->dev->keys, index);
free_mw:
	free(mw);
	return err;
}

void mw_free(struct session *s, struct mw *mw)
{
	numbers_give(&s->dev->keys, mw->key >> 8);
	mw->pd->refs--;
	s->dev->n_mw--;
	free(mw);
}

int request_free_mw(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct mw *mw = handles_del(&s->mws, h->handle);
	struct cmd cmd = { .op = ENGINE_MW_DEL };

	(void)r;
	if (!mw)
		return -EINVAL;
	cmd.key = mw->key;
	device_command_all(s->dev, &cmd, NULL);
	mw_free(s, mw);
	return 0;
}
