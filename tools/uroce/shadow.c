/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/shadow.h"

#include "dataplane/abi/ctrl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/*
 * Binds what is at name in the directory `from` to `target`. A directory is bound with everything
 * mounted below it. Works on descriptors, because the way to `from` may be covered by now.
 */
static int bind_at(int from, const char *name, const char *target, bool is_dir)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (is_dir ? AT_RECURSIVE : 0);
	int fd = open_tree(from, name, flags);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH))
		err = -errno;
	close(fd);
	return err;
}

static int make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int copy_link(int from, const char *name, const char *target)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(from, name, to, sizeof(to) - 1);

	if (n < 0)
		return -errno;
	to[n] = '\0';
	return symlink(to, target) ? -errno : 0;
}

static int copy_entry(int from, const char *name, const char *dir)
{
	char target[PATH_MAX];
	struct stat st;
	int err;

	if (snprintf(target, sizeof(target), "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return copy_link(from, name, target);
	if (S_ISDIR(st.st_mode))
		err = mkdir(target, 0755) ? -errno : 0;
	else
		err = make_file(target);
	return err ? err : bind_at(from, name, target, S_ISDIR(st.st_mode));
}

static bool is_skipped(const char *name, const char *const *skip)
{
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return true;
	for (; *skip; skip++)
		if (!strcmp(name, *skip))
			return true;
	return false;
}

/* Rebuilds the directory open as `from` at dir, an empty one, without the entries in skip. */
static int copy_dir(int from, const char *dir, const char *const *skip)
{
	int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *ent;
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (ent = readdir(d)))
		if (!is_skipped(ent->d_name, skip))
			err = copy_entry(from, ent->d_name, dir);
	closedir(d);
	return err;
}

static int cover(const char *dir)
{
	return mount("uroce", dir, "tmpfs", MS_NOSUID, "mode=0755,size=1m") ? -errno : 0;
}

static int open_dir(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int add_nodes(int dev, const struct tree *t, const char *only)
{
	for (unsigned i = 0; i < t->n_devs; i++) {
		char path[PATH_MAX];
		int err;

		if (only && strcmp(t->devs[i].name, only))
			continue;
		snprintf(path, sizeof(path), "/dev/infiniband/%s", t->devs[i].uverbs);
		/* One of a real device, or of an outer view, of the same name gives way. */
		if (unlink(path) && errno != ENOENT && errno != EBUSY)
			return -errno;
		err = make_file(path);
		if (!err)
			err = bind_at(dev, "null", path, false);
		if (err)
			return err;
	}
	return 0;
}

/* Names of devices that may come later: they lead nowhere as long as the daemon has no such node.
 */
static int add_later_nodes(const char *run_dir)
{
	for (unsigned i = 0; i < UROCE_N_NODES; i++) {
		char path[64], to[PATH_MAX];
		unsigned n = UROCE_FIRST_NODE + i;

		snprintf(path, sizeof(path), "/dev/infiniband/uverbs%u", n);
		if (snprintf(to, sizeof(to), "%s/dev/uverbs%u", run_dir, n) >= PATH_MAX)
			return -ENAMETOOLONG;
		if (symlink(to, path) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* The daemon's own directory, in which nodes of later devices appear. */
static int bind_nodes(const char *run_dir)
{
	int dir = open_dir(run_dir), err = dir < 0 ? dir : 0;

	if (!err)
		err = bind_at(dir, "dev", "/dev/infiniband", true);
	if (dir >= 0)
		close(dir);
	return err;
}

int shadow_dev(const char *run_dir, const struct tree *t, const char *only)
{
	static const char *const none[] = { NULL };
	static const char *const infiniband[] = { "infiniband", NULL };
	int dev = open_dir("/dev"), old = open_dir("/dev/infiniband");
	bool is_live = old < 0 && !only;
	int err = dev < 0 ? dev : 0;

	/* An overlay would hide /dev/shm and /dev/pts; so /dev is built anew, out of bind mounts.
	 */
	if (!err && old < 0) {
		err = cover("/dev");
		if (!err)
			err = copy_dir(dev, "/dev", infiniband);
		if (!err && mkdir("/dev/infiniband", 0755))
			err = -errno;
	} else if (!err) {
		err = cover("/dev/infiniband");
		if (!err)
			err = copy_dir(old, "/dev/infiniband", none);
	}
	if (!err)
		err = is_live ? bind_nodes(run_dir) : add_nodes(dev, t, only);
	if (!err && !is_live && !only)
		err = add_later_nodes(run_dir);
	if (old >= 0)
		close(old);
	if (dev >= 0)
		close(dev);
	return err;
}

/* A directory of binds: ours, and the host's unless only one device is to be seen. */
static int bind_class(int from, int ours, const char *name, const struct tree *t, const char *only)
{
	bool is_verbs = !strcmp(name, "infiniband_verbs");
	const char *skip[TREE_DEVS_MAX + 2] = { "abi_version" };
	char dir[PATH_MAX], path[PATH_MAX];
	int old, err = 0;

	snprintf(dir, sizeof(dir), "/sys/class/%s", name);
	if (mkdir(dir, 0755))
		return -errno;
	if (!only && faccessat(from, name, F_OK, 0))
		return bind_at(ours, name, dir, true);
	for (unsigned i = 0; i < t->n_devs; i++)
		skip[i + 1] = is_verbs ? t->devs[i].uverbs : t->devs[i].name;
	old = openat(from, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old >= 0 && !only)
		err = copy_dir(old, dir, skip);
	if (old >= 0)
		close(old);
	for (unsigned i = 0; !err && i < t->n_devs; i++) {
		if (only && strcmp(t->devs[i].name, only))
			continue;
		snprintf(path, sizeof(path), "%s/%s", name, skip[i + 1]);
		snprintf(dir, sizeof(dir), "/sys/class/%s/%s", name, skip[i + 1]);
		err = mkdir(dir, 0755) ? -errno : bind_at(ours, path, dir, true);
	}
	if (!err && is_verbs) {
		err = make_file("/sys/class/infiniband_verbs/abi_version");
		if (!err)
			err = bind_at(ours, "infiniband_verbs/abi_version",
				      "/sys/class/infiniband_verbs/abi_version", false);
	}
	return err;
}

static int shadow_by_binds(const char *root, const struct tree *t, const char *only)
{
	static const char *const skip[] = { "infiniband", "infiniband_verbs", NULL };
	char path[PATH_MAX];
	int host, ours, err;

	snprintf(path, sizeof(path), "%s/class", root);
	host = open_dir("/sys/class");
	ours = open_dir(path);
	err = host < 0 ? host : ours < 0 ? ours : cover("/sys/class");
	if (!err)
		err = copy_dir(host, "/sys/class", skip);
	if (!err)
		err = bind_class(host, ours, "infiniband", t, only);
	if (!err)
		err = bind_class(host, ours, "infiniband_verbs", t, only);
	if (host >= 0)
		close(host);
	if (ours >= 0)
		close(ours);
	return err;
}

static int shadow_by_overlay(const char *root)
{
	char options[2 * PATH_MAX];

	/* These separate lower directories; escaping them is not worth it, binds do as well. */
	if (strpbrk(root, ":,\\"))
		return -EINVAL;
	snprintf(options, sizeof(options), "lowerdir=%s/class:/sys/class", root);
	return mount("uroce", "/sys/class", "overlay", MS_NOSUID | MS_RDONLY, options) ? -errno : 0;
}

/* Where the host has no such class ours is bound whole: an overlay need not show later devices. */
static int bind_live(const char *root, const char *name, bool is_ours_alone)
{
	char path[PATH_MAX], target[64];
	int ours, err;

	if (!is_ours_alone)
		return 0;
	snprintf(path, sizeof(path), "%s/class", root);
	snprintf(target, sizeof(target), "/sys/class/%s", name);
	ours = open_dir(path);
	err = ours < 0 ? ours : bind_at(ours, name, target, true);
	if (ours >= 0)
		close(ours);
	return err;
}

int shadow_sys_class(const char *root, const struct tree *t, const char *only)
{
	bool has_devices = !access("/sys/class/infiniband", F_OK);
	bool has_verbs = !access("/sys/class/infiniband_verbs", F_OK);
	int err;

	/* An overlay can add names but not hide them. */
	if (only || shadow_by_overlay(root))
		return shadow_by_binds(root, t, only);
	err = bind_live(root, "infiniband", !has_devices);
	return err ? err : bind_live(root, "infiniband_verbs", !has_verbs);
}
