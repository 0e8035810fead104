/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/share.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/objects.h"

/* Device memory is the client's; we keep the file that others map. */
struct dm {
	int fd;
	uint64_t length;
};

/* 1: one open file, 0: two, negative: this system cannot say. */
static int is_same_file(int a, int b)
{
	long r = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b);

	return r < 0 ? -1 : r == 0;
}

int share_find(const struct daemon *d, int fd, struct session **origin)
{
	*origin = NULL;
	if (fd < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < DAEMON_MAX_SESSIONS; i++) {
		struct session *s = d->session[i];
		int same;

		if (!s || s->role != SESSION_CLIENT || s->cmd_fd < 0)
			continue;
		same = is_same_file(s->cmd_fd, fd);
		if (same < 0)
			return -EOPNOTSUPP;
		/* An importer shows the same file; the one it came from has the objects. */
		if (same && (!*origin || !s->origin))
			*origin = s;
	}
	return *origin ? 0 : -EINVAL;
}

void share_forget(const struct session *s)
{
	for (uint32_t i = 0; i < DAEMON_MAX_SESSIONS; i++) {
		struct session *other = s->daemon->session[i];

		if (other && other->origin == s)
			other->origin = NULL;
	}
}

int request_import_pd(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_handle *rep = reply_body(r, sizeof(*rep));
	struct pd *pd = s->origin ? handles_get(&s->origin->pds, h->handle) : NULL;

	if (!pd)
		return -EINVAL;
	if (handles_add(&s->pds, pd, &rep->handle))
		return -ENOMEM;
	pd->holders++;
	return 0;
}

int request_import_mr(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_import_mr *req = body;
	struct uroce_reg_mr_rep *rep = reply_body(r, sizeof(*rep));
	const struct mr *mr = s->origin ? handles_get(&s->origin->mrs, req->handle) : NULL;

	if (!mr || mr->pd != handles_get(&s->pds, req->pd))
		return -EINVAL;
	rep->handle = req->handle;
	rep->lkey = rep->rkey = mr->key;
	return 0;
}

int request_share_dm(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_share_dm *req = body;
	struct uroce_handle *rep = reply_body(r, sizeof(*rep));
	struct dm *dm;

	if (s->fd_in < 0)
		return -EINVAL;
	dm = malloc(sizeof(*dm));
	if (!dm || handles_add(&s->dms, dm, &rep->handle)) {
		free(dm);
		return -ENOMEM;
	}
	dm->fd = s->fd_in;
	dm->length = req->length;
	s->fd_in = -1;
	return 0;
}

void dm_free(struct dm *dm)
{
	close(dm->fd);
	free(dm);
}

int request_unshare_dm(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct dm *dm = handles_del(&s->dms, h->handle);

	(void)r;
	if (!dm)
		return -EINVAL;
	dm_free(dm);
	return 0;
}

int request_import_dm(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_import_dm_rep *rep = reply_body(r, sizeof(*rep));
	const struct dm *dm = s->origin ? handles_get(&s->origin->dms, h->handle) : NULL;

	if (!dm)
		return -EINVAL;
	rep->length = dm->length;
	reply_lend(r, dm->fd);
	return 0;
}
