/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/view.h"

#include "tools/uroce/netlink_rule.h"
#include "tools/uroce/shadow.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

bool view_has_nodes(const struct tree *t, const char *device, char *missing, unsigned size)
{
	unsigned at = 0;

	missing[0] = '\0';
	for (unsigned i = 0; i < t->n_devs; i++) {
		char path[PATH_MAX];
		struct stat st;

		if (device && strcmp(t->devs[i].name, device))
			continue;
		snprintf(path, sizeof(path), "/dev/infiniband/%s", t->devs[i].uverbs);
		if (stat(path, &st) || !S_ISCHR(st.st_mode) || access(path, R_OK | W_OK))
			at += (unsigned)snprintf(missing + at, at < size ? size - at : 0, "%s%s",
						 at ? ", " : "", path);
		if (at >= size)
			at = size - 1;
	}
	return !at;
}

/* Whether /sys shows this device as this daemon's. */
static bool is_shown(const struct tree_dev *dev, const char *run_dir)
{
	char path[PATH_MAX], socket[PATH_MAX], want[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/uroce_socket", dev->name);
	if (snprintf(want, sizeof(want), "%s/control.sock", run_dir) >= PATH_MAX)
		return false;
	return tree_read_file(socket, sizeof(socket), path) && !strcmp(socket, want);
}

bool view_is_current(const struct view *v)
{
	char root[PATH_MAX], missing[64];
	struct tree here, want;

	if (snprintf(root, sizeof(root), "%s/sys", v->run_dir) >= PATH_MAX ||
	    tree_read(&want, root) || tree_read(&here, "/sys"))
		return false;
	for (unsigned i = 0; i < want.n_devs; i++) {
		const struct tree_dev *dev = &want.devs[i];

		if (v->device && strcmp(dev->name, v->device))
			continue;
		if (!tree_find(&here, dev->name) || !is_shown(dev, v->run_dir))
			return false;
	}
	/* The nodes last: only below a `uroce run` is it harmless to ask netlink, see doctor.c. */
	return (!v->device || here.n_devs == 1) && view_has_nodes(&want, v->device, missing, 64) &&
	       netlink_is_refused();
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -errno : 0;
}

/* A user namespace in which we are who we were, and may mount. */
static int enter_user_ns(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];
	int err;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	err = write_file("/proc/self/uid_map", map);
	if (err)
		return err;
	err = write_file("/proc/self/setgroups", "deny");
	if (err && err != -ENOENT)
		return err;
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return write_file("/proc/self/gid_map", map);
}

/*
 * Mounts the host makes later still arrive; ours do not leave. In a chroot "/" is often no mount of
 * its own; then it must do to treat the two mounts that ours are made on.
 */
static int make_slave(void)
{
	if (!mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return 0;
	if (errno != EINVAL || mount(NULL, "/sys", NULL, MS_REC | MS_SLAVE, NULL) ||
	    mount(NULL, "/dev", NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	return 0;
}

static int enter_namespaces(struct view_error *e)
{
	int err;

	e->step = "a private mount namespace";
	if (unshare(CLONE_NEWNS)) {
		e->step = "a user namespace";
		err = enter_user_ns();
		if (err)
			return err;
	}
	e->step = "keeping our mounts to ourselves";
	return make_slave();
}

int view_enter(const struct view *v, struct view_error *e)
{
	char root[PATH_MAX];
	struct tree t;
	int err;

	e->step = "reading the daemon's class tree";
	err = snprintf(root, sizeof(root), "%s/sys", v->run_dir) >= PATH_MAX ? -ENAMETOOLONG
									     : tree_read(&t, root);
	if (!err)
		err = enter_namespaces(e);
	if (!err) {
		e->step = "showing the devices under /sys/class";
		err = shadow_sys_class(root, &t, v->device);
	}
	if (!err) {
		e->step = "making their nodes under /dev/infiniband";
		err = shadow_dev(v->run_dir, &t, v->device);
	}
	if (!err) {
		e->step = "refusing RDMA netlink (seccomp)";
		err = netlink_rule_install();
	}
	e->err = err;
	return err;
}

int view_try(const struct view *v, struct view_error *e)
{
	/* The child's step is a string constant at the same address here. */
	int pipe_fd[2];
	pid_t pid;

	*e = (struct view_error) { "a trial in a child process", -EAGAIN };
	if (pipe2(pipe_fd, O_CLOEXEC))
		return e->err = -errno;
	pid = fork();
	if (!pid) {
		view_enter(v, e);
		_exit(write(pipe_fd[1], e, sizeof(*e)) != sizeof(*e));
	}
	close(pipe_fd[1]);
	if (pid > 0) {
		if (read(pipe_fd[0], e, sizeof(*e)) != sizeof(*e))
			e->err = -EIO;
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(pipe_fd[0]);
	return e->err;
}
