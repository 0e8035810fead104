/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains: private to a session, or named by a file and shared by all who can open that file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/daemon/xrc_domain.h"

uint32_t xrcd_number(const struct xrcd *xrcd)
{
	return xrcd->domain->number;
}

static struct xrc_domain *find(const struct device *dev, const struct stat *st)
{
	struct xrc_domain *d = dev->xrc_domains;

	while (d && (d->file < 0 || d->st_dev != st->st_dev || d->st_ino != st->st_ino))
		d = d->next;
	return d;
}

/*
 * While the domain lives no other file may get its inode number. A path-only descriptor holds the
 * inode and nothing else: no lock, no end of a pipe.
 */
static int pin(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_PATH | O_CLOEXEC);
}

static int make(struct device *dev, int fd, const struct stat *st, struct xrc_domain **out)
{
	struct xrc_domain *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->file = -1;
	if (fd >= 0) {
		d->file = pin(fd);
		if (d->file < 0) {
			err = -errno;
			free(d);
			return err;
		}
		d->st_dev = st->st_dev;
		d->st_ino = st->st_ino;
	}
	d->number = ++dev->last_xrcd ? dev->last_xrcd : ++dev->last_xrcd;
	d->next = dev->xrc_domains;
	dev->xrc_domains = d;
	*out = d;
	return 0;
}

static void put(struct device *dev, struct xrc_domain *d)
{
	struct xrc_domain **p = &dev->xrc_domains;

	if (d->handles)
		return;
	while (*p != d)
		p = &(*p)->next;
	*p = d->next;
	if (d->file >= 0)
		close(d->file);
	free(d);
}

/* The errors are those of Linux: EAGAIN, there is none; EINVAL, there is one already. */
static int get(struct device *dev, int fd, uint32_t flags, struct xrc_domain **out)
{
	struct stat st;

	if (fd < 0)
		return make(dev, fd, NULL, out);
	if (fstat(fd, &st))
		return -errno;
	*out = find(dev, &st);
	if (*out)
		return flags & O_EXCL ? -EINVAL : 0;
	return flags & O_CREAT ? make(dev, fd, &st, out) : -EAGAIN;
}

int request_create_xrcd(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_create_xrcd *req = body;
	struct uroce_handle *h = reply_body(r, sizeof(*h));
	struct xrcd *xrcd = calloc(1, sizeof(*xrcd));
	int err;

	if (!xrcd)
		return -ENOMEM;
	err = get(s->dev, s->fd_in, req->flags, &xrcd->domain);
	if (err)
		goto free_xrcd;
	if (handles_add(&s->xrcds, xrcd, &h->handle)) {
		err = -ENOMEM;
		goto put_domain;
	}
	xrcd->domain->handles++;
	return 0;
put_domain:
	put(s->dev, xrcd->domain);
free_xrcd:
	free(xrcd);
	return err;
}

void xrcd_free(struct session *s, struct xrcd *xrcd)
{
	xrcd->domain->handles--;
	put(s->dev, xrcd->domain);
	free(xrcd);
}

int request_destroy_xrcd(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct xrcd *xrcd = handles_get(&s->xrcds, h->handle);

	(void)r;
	if (!xrcd)
		return -EINVAL;
	if (xrcd->refs)
		return -EBUSY;
	handles_del(&s->xrcds, h->handle);
	xrcd_free(s, xrcd);
	return 0;
}
