/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/objects.h"

int request_create_channel(struct session *s, const void *body, struct reply *r)
{
	struct channel *ch = calloc(1, sizeof(*ch));
	struct uroce_handle *h = reply_body(r, sizeof(*h));
	int err, fd;

	(void)body;
	if (!ch)
		return -ENOMEM;
	err = notify_open(&ch->notify, sizeof(uint64_t), SESSION_MAX_CQ, &fd);
	if (err)
		goto free_channel;
	ch->watch = (struct watch) { WATCH_NOTIFY, &ch->notify };
	err = control_watch(s->daemon->control, ch->notify.fd, 0, &ch->watch);
	if (err)
		goto close_pair;
	if (handles_add(&s->channels, ch, &h->handle)) {
		err = -ENOMEM;
		goto close_pair;
	}
	reply_give(r, fd);
	reply_lend(r, ch->notify.fd);
	return 0;
close_pair:
	close(fd);
	control_unwatch(s->daemon->control, ch->notify.fd);
	notify_close(&ch->notify);
free_channel:
	free(ch);
	return err;
}

void channel_free(struct session *s, struct channel *ch)
{
	control_unwatch(s->daemon->control, ch->notify.fd);
	notify_close(&ch->notify);
	free(ch);
}

int request_destroy_channel(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct channel *ch = handles_get(&s->channels, h->handle);

	(void)r;
	if (!ch)
		return -EINVAL;
	if (ch->refs)
		return -EBUSY;
	handles_del(&s->channels, h->handle);
	channel_free(s, ch);
	return 0;
}
