/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/share.h"
#include "dataplane/host/appmem.h"

/* Our pid as the client sees it. In another pid namespace it can see us by no number we know. */
static uint32_t own_pid_for(const struct session *s)
{
	char path[64];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)s->pid);
	if (s->pid <= 0 || stat("/proc/self/ns/pid", &ours) || stat(path, &theirs) ||
	    ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev)
		return 0;
	return (uint32_t)getpid();
}

static void fill(const struct session *s, struct uroce_hello_rep *rep)
{
	rep->magic = UROCE_ABI_MAGIC;
	rep->version = UROCE_ABI_VERSION;
	rep->n_workers = s->daemon->n_workers;
	rep->uar_size = UROCE_UAR_PAGE * (1 + s->daemon->n_workers);
	rep->daemon_pid = own_pid_for(s);
	rep->boot_id = s->daemon->boot_id;
	strncpy(rep->daemon_version, UROCE_VERSION, sizeof(rep->daemon_version) - 1);
}

static int check_version(const struct uroce_hello *h)
{
	if (h->magic != UROCE_ABI_MAGIC)
		return -EINVAL;
	return h->version == UROCE_ABI_VERSION ? 0 : -EPROTO;
}

/* By name, or that of the context whose command descriptor came along. */
static int find_device(struct session *s, const struct uroce_hello *h, struct device **dev)
{
	char name[UROCE_DEV_NAME_MAX + 1] = { 0 };
	int err;

	if (h->flags & ~UROCE_HELLO_IMPORT)
		return -EINVAL;
	if (h->flags & UROCE_HELLO_IMPORT) {
		err = share_find(s->daemon, s->fd_in, &s->origin);
		*dev = s->origin ? s->origin->dev : NULL;
		return !err && (*dev)->is_gone ? -ENODEV : err;
	}
	memcpy(name, h->device, UROCE_DEV_NAME_MAX);
	*dev = daemon_device(s->daemon, name);
	return *dev ? 0 : -ENODEV;
}

int request_hello(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_hello *h = body;
	struct uroce_hello_rep *rep = reply_body(r, sizeof(*rep));
	int err = check_version(h), async_fd;
	struct device *dev;

	fill(s, rep);
	if (err)
		return err;
	err = find_device(s, h, &dev);
	if (err)
		return err;
	err = session_open(s, dev, h->probe_addr, &async_fd);
	if (err)
		return err;
	s->cmd_fd = s->fd_in;
	s->fd_in = -1;
	snprintf(rep->device, sizeof(rep->device), "%s", dev->name);
	rep->memory_err = (uint32_t)-s->memory_err;
	reply_give(r, s->uar.fd);
	s->uar.fd = -1;
	reply_give(r, async_fd);
	for (unsigned w = 0; w < s->daemon->n_workers; w++)
		reply_lend(r, s->event_fd[w]);
	log_debug("client %u: pid %d uid %u %s opened %s", s->id, (int)s->pid, (unsigned)s->uid,
		  s->comm, dev->name);
	return 0;
}

int request_admin_hello(struct session *s, const void *body, struct reply *r)
{
	struct uroce_hello_rep *rep = reply_body(r, sizeof(*rep));
	int err = check_version(body);

	fill(s, rep);
	if (!err)
		s->role = SESSION_ADMIN;
	return err;
}

int request_query_device(struct session *s, const void *body, struct reply *r)
{
	(void)body;
	device_attr(s->dev, reply_body(r, sizeof(struct uroce_device_attr)));
	return 0;
}

int request_query_port(struct session *s, const void *body, struct reply *r)
{
	(void)body;
	device_port_attr(s->dev, reply_body(r, sizeof(struct uroce_port_attr)));
	return 0;
}

int request_probe_memory(struct session *s, const void *body, struct reply *r)
{
	(void)body;
	(void)r;
	if (!s->mem)
		session_open_memory(s);
	return s->mem ? appmem_probe(s->mem, s->probe_addr) : s->memory_err;
}
