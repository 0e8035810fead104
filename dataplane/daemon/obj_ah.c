/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: resolved once, here, and known to every engine, since any QP of the PD may use
 * them. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"

static void del_from_engines(struct session *s, const struct ah *ah)
{
	struct cmd cmd = { .op = ENGINE_AH_DEL, .key = ah->number };

	device_command_all(s->dev, &cmd, NULL);
}

static int give_to_engines(struct session *s, const struct ah *ah, const struct uroce_ah_attr *attr)
{
	struct cmd cmd = { .op = ENGINE_AH_ADD,
			   .ah_add = { .ah = ah->number, .pd = ah->pd->number } };
	/* The engine sets the source port by the QP that sends. */
	int err = device_resolve(s->dev, attr, 0, 0, &cmd.ah_add.path);

	if (err)
		return err;
	err = device_command_all(s->dev, &cmd, NULL);
	if (err)
		del_from_engines(s, ah);
	return err;
}

int request_create_ah(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_create_ah *req = body;
	struct uroce_create_ah_rep *rep = reply_body(r, sizeof(*rep));
	struct ah *ah = calloc(1, sizeof(*ah));
	uint8_t generation;
	uint32_t index;
	int err;

	if (!ah)
		return -ENOMEM;
	ah->pd = handles_get(&s->pds, req->pd);
	err = ah->pd ? 0 : -EINVAL;
	if (!err && numbers_take(&s->dev->ahs, &index, &generation))
		err = -ENOMEM;
	if (err)
		goto free_ah;
	ah->number = (uint32_t)generation << 16 | index;
	err = give_to_engines(s, ah, &req->attr);
	if (err)
		goto give_number;
	if (handles_add(&s->ahs, ah, &rep->handle)) {
		err = -ENOMEM;
		goto del_ah;
	}
	ah->pd->refs++;
	s->dev->n_ah++;
	rep->ah = ah->number;
	return 0;
del_ah:
	del_from_engines(s, ah);
give_number:
	numbers_give(&s->dev->ahs, index);
free_ah:
	free(ah);
	return err;
}

void ah_free(struct session *s, struct ah *ah)
{
	numbers_give(&s->dev->ahs, ah->number & 0xffff);
	ah->pd->refs--;
	s->dev->n_ah--;
	free(ah);
}

int request_destroy_ah(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct ah *ah = handles_del(&s->ahs, h->handle);

	(void)r;
	if (!ah)
		return -EINVAL;
	del_from_engines(s, ah);
	ah_free(s, ah);
	return 0;
}
