/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/daemon/log.h"

static bool is_own_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static int choose(char *path, size_t size, const char *given)
{
	const char *env = getenv("UROCE_RUN_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	int n;

	if (given)
		n = snprintf(path, size, "%s", given);
	else if (env && *env)
		n = snprintf(path, size, "%s", env);
	else if (!geteuid())
		n = snprintf(path, size, "/run/uroce");
	else if (xdg && *xdg == '/' && is_own_dir(xdg))
		n = snprintf(path, size, "%s/uroce", xdg);
	else
		n = snprintf(path, size, "/tmp/uroce-%u", (unsigned)geteuid());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Whoever may write here could replace the socket under our clients. */
static int check_safe(const struct rundir *d)
{
	struct stat st;

	if (fstat(d->fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	return 0;
}

int rundir_open(struct rundir *d, const char *given)
{
	char path[PATH_MAX];
	int err = choose(path, sizeof(path), given);

	d->fd = -1;
	if (!err && mkdir(path, geteuid() ? 0700 : 0755) && errno != EEXIST)
		err = -errno;
	if (!err) {
		/* A link that somebody laid in /tmp is not followed. */
		d->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = d->fd < 0 ? -errno : check_safe(d);
	}
	if (!err && !realpath(path, d->path))
		err = -errno;
	if (err == -EPERM)
		log_error("%s: belongs to another user, or others may write to it", path);
	else if (err)
		log_error("%s: cannot be used as run directory: %s", path, strerror(-err));
	if (err && d->fd >= 0) {
		close(d->fd);
		d->fd = -1;
	}
	return err;
}

int rundir_lock(struct rundir *d)
{
	return flock(d->fd, LOCK_EX | LOCK_NB) ? -errno : 0;
}

int rundir_write_pid(struct rundir *d)
{
	int fd = openat(d->fd, RUNDIR_PID, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0644);
	int n;

	if (fd < 0)
		return -errno;
	n = dprintf(fd, "%d\n", (int)getpid());
	close(fd);
	return n < 0 ? -EIO : 0;
}

void rundir_close(struct rundir *d)
{
	unlinkat(d->fd, RUNDIR_SOCKET, 0);
	unlinkat(d->fd, RUNDIR_PID, 0);
	close(d->fd);
	d->fd = -1;
}
