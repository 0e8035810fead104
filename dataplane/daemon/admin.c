/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/log.h"

/* Who may change the daemon, not only look at it. */
static bool is_owner(const struct session *s)
{
	return s->uid == 0 || s->uid == geteuid();
}

static int reply_text(struct reply *r, char *text)
{
	int fd = text ? shm_text("uroce-json", text, strlen(text)) : -ENOMEM;

	free(text);
	if (fd < 0)
		return fd;
	reply_give(r, fd);
	return 0;
}

int request_admin_status(struct session *s, const void *body, struct reply *r)
{
	(void)body;
	return reply_text(r, status_json(s->daemon));
}

int request_admin_stop(struct session *s, const void *body, struct reply *r)
{
	(void)body;
	(void)r;
	if (!is_owner(s))
		return -EPERM;
	log_info("stopped by pid %d", (int)s->pid);
	control_stop(s->daemon->control);
	return 0;
}

static int run_line(const struct session *s, int (*fn)(void *, const char *, char **), void *ctx,
		    const char *line, struct reply *r)
{
	char *json = NULL;
	int err;

	if (!is_owner(s))
		return -EPERM;
	if (!fn)
		return -EOPNOTSUPP;
	err = fn(ctx, line, &json);
	return err ? err : reply_text(r, json);
}

int request_admin_fault(struct session *s, const void *body, struct reply *r)
{
	return run_line(s, s->daemon->fault, s->daemon->fault_ctx, body, r);
}

int request_admin_device(struct session *s, const void *body, struct reply *r)
{
	return run_line(s, s->daemon->plug, s->daemon->plug_ctx, body, r);
}
