/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/classtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/metrics.h"

#define SYS_NEW   RUNDIR_SYS ".new"
#define PATH_ROOM 400
#define NULL_RDEV "1:3" /* /dev/null: what stands at /dev/infiniband */

/* Where a tree is being written: the first error stops everything after it. */
struct tree {
	const struct daemon *d;
	int root; /* of SYS_NEW; of RUNDIR_SYS when values change */
	bool is_update;
	int err;
};

static void make_parents(struct tree *t, char *path)
{
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdirat(t->root, path, 0755) && errno != EEXIST)
			t->err = -errno;
		*p = '/';
	}
}

/* Writes value and a newline into the file `path` under class/. */
__attribute__((format(printf, 3, 4))) static void put(struct tree *t, const char *path,
						      const char *fmt, ...)
{
	char full[512], text[512];
	va_list ap;
	int fd, n;

	if (t->err)
		return;
	snprintf(full, sizeof(full), "class/%s", path);
	if (!t->is_update)
		make_parents(t, full);
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n)
		text[n++] = '\n';
	fd = openat(t->root, full, O_WRONLY | O_CLOEXEC | (t->is_update ? 0 : O_CREAT | O_EXCL),
		    0644);
	/* In place, for the reason that metrics.c gives; what is shorter now loses its end. */
	if (fd < 0 || write(fd, text, (size_t)n) != n || ftruncate(fd, n))
		t->err = -errno;
	if (fd >= 0)
		close(fd);
}

#define PUT(t, pathfmt, name, ...)                             \
	do {                                                   \
		char path_[400];                               \
		snprintf(path_, sizeof(path_), pathfmt, name); \
		put(t, path_, __VA_ARGS__);                    \
	} while (0)

static void guid_text(const uint8_t g[8], char text[20])
{
	snprintf(text, 20, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4],
		 g[5], g[6], g[7]);
}

static void put_verbs(struct tree *t, const struct device *dev)
{
	char name[32];

	snprintf(name, sizeof(name), "uverbs%u", UROCE_FIRST_NODE + dev->uverbs);
	PUT(t, "infiniband_verbs/%s/ibdev", name, "%s", dev->name);
	PUT(t, "infiniband_verbs/%s/dev", name, NULL_RDEV);
	PUT(t, "infiniband_verbs/%s/abi_version", name, "%u", UROCE_ABI_VERSION);
}

/* The CPUs of this machine, for programs that look for the nearest. */
static void local_cpulist(char *text, size_t size)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	snprintf(text, size, n > 1 ? "0-%ld" : "0", n - 1);
}

static void local_cpus(char *text, size_t size)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	size_t off = 0;

	for (long word = (n + 31) / 32 - 1; word >= 0 && off < size; word--) {
		long bits = n - word * 32 < 32 ? n - word * 32 : 32;

		off += (size_t)snprintf(text + off, size - off, "%08x%s",
					(unsigned)(bits == 32 ? UINT32_MAX : (1u << bits) - 1),
					word ? "," : "");
	}
}

static void put_device(struct tree *t, const struct device *dev)
{
	const char *n = dev->name;
	char guid[20], cpus[300];
	struct uroce_device_attr a;

	device_attr(dev, &a);
	guid_text(dev->guid, guid);
	PUT(t, "infiniband/%s/node_type", n, "1: CA");
	PUT(t, "infiniband/%s/node_guid", n, "%s", guid);
	PUT(t, "infiniband/%s/sys_image_guid", n, "%s", guid);
	PUT(t, "infiniband/%s/node_desc", n, "%s", n);
	PUT(t, "infiniband/%s/fw_ver", n, "%s", a.fw_ver);
	PUT(t, "infiniband/%s/hw_rev", n, "%u", a.hw_ver);
	PUT(t, "infiniband/%s/hca_type", n, "uroce");
	PUT(t, "infiniband/%s/board_id", n, "uroce");
	PUT(t, "infiniband/%s/device/modalias", n, "uroce:v%u", UROCE_ABI_VERSION);
	PUT(t, "infiniband/%s/device/uroce_socket", n, "%s/" RUNDIR_SOCKET, t->d->dir.path);
	PUT(t, "infiniband/%s/device/vendor", n, "0x%06x", a.vendor_id);
	PUT(t, "infiniband/%s/device/device", n, "0x%04x", a.vendor_part_id);
	PUT(t, "infiniband/%s/device/numa_node", n, "-1");
	local_cpus(cpus, sizeof(cpus));
	PUT(t, "infiniband/%s/device/local_cpus", n, "%s", cpus);
	local_cpulist(cpus, sizeof(cpus));
	PUT(t, "infiniband/%s/device/local_cpulist", n, "%s", cpus);
}

static void put_port(struct tree *t, const struct device *dev)
{
	const char *n = dev->name;
	struct uroce_port_attr a;

	device_port_attr(dev, &a);
	PUT(t, "infiniband/%s/ports/1/state", n, "%s", device_is_up(dev) ? "4: ACTIVE" : "1: DOWN");
	PUT(t, "infiniband/%s/ports/1/phys_state", n, "%s",
	    device_is_up(dev) ? "5: LinkUp" : "3: Disabled");
	PUT(t, "infiniband/%s/ports/1/link_layer", n, "Ethernet");
	PUT(t, "infiniband/%s/ports/1/rate", n, "100 Gb/sec (4X EDR)");
	PUT(t, "infiniband/%s/ports/1/lid", n, "0x0");
	PUT(t, "infiniband/%s/ports/1/lid_mask_count", n, "0");
	PUT(t, "infiniband/%s/ports/1/sm_lid", n, "0x0");
	PUT(t, "infiniband/%s/ports/1/sm_sl", n, "0");
	PUT(t, "infiniband/%s/ports/1/cap_mask", n, "0x%08x", a.port_cap_flags);
	PUT(t, "infiniband/%s/ports/1/pkeys/0", n, "0xffff");
}

static void put_gids(struct tree *t, const struct device *dev)
{
	char path[400], gid[GID_TEXT_LEN];

	for (unsigned i = 0; i < GID_TABLE_LEN; i++) {
		gid_format(dev->gids.gid[i], gid);
		snprintf(path, sizeof(path), "infiniband/%s/ports/1/gids/%u", dev->name, i);
		put(t, path, "%s", gid);
		/* Also for empty entries: readers take a missing type for RoCE v1. */
		snprintf(path, sizeof(path), "infiniband/%s/ports/1/gid_attrs/types/%u", dev->name,
			 i);
		put(t, path, "RoCE v2");
		/* Where no network interface stands behind the device: there, and empty. */
		snprintf(path, sizeof(path), "infiniband/%s/ports/1/gid_attrs/ndevs/%u", dev->name,
			 i);
		put(t, path, "%s", gid_table_get(&dev->gids, i) ? dev->net.dev.name : "");
	}
}

static void put_counters(struct tree *t, const struct device *dev)
{
	static const struct metrics_port none;
	char path[400];
	uint64_t zero;

	for (unsigned i = 0; i < metrics_n_port_files(); i++) {
		snprintf(path, sizeof(path), "infiniband/%s/ports/1/counters/%s", dev->name,
			 metrics_port_file(i, &none, &zero));
		put(t, path, "0");
	}
	for (unsigned i = 0; i < engine_n_counters(); i++) {
		snprintf(path, sizeof(path), "infiniband/%s/ports/1/hw_counters/%s", dev->name,
			 engine_counter_name(i));
		put(t, path, "0");
	}
	PUT(t, "infiniband/%s/ports/1/hw_counters/lifespan", dev->name, "1000");
}

/* All of a device but its name under infiniband_verbs, by which programs find the rest. */
static void put_contents(struct tree *t, const struct device *dev)
{
	put_device(t, dev);
	put_port(t, dev);
	put_gids(t, dev);
	put_counters(t, dev);
}

static void put_all(struct tree *t)
{
	char folder[] = "class/infiniband/"; /* is there even without a device */

	make_parents(t, folder);
	put(t, "infiniband_verbs/abi_version", "6");
	put(t, "misc/rdma_cm/abi_version", "4");
	put(t, "misc/rdma_cm/dev", NULL_RDEV);
	/* Last one first: tmpfs lists what is newest first, and programs take the first they find.
	 */
	for (unsigned i = t->d->n_devices; i-- > 0;) {
		put_verbs(t, t->d->device[i]);
		put_contents(t, t->d->device[i]);
	}
}

/* Removes dirfd/name and all below it; follows no link. */
static void remove_tree(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(fd, e->d_name, 0) && (errno == EISDIR || errno == EPERM))
			remove_tree(fd, e->d_name);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	unlinkat(dirfd, name, AT_REMOVEDIR);
}

static int open_root(struct tree *t, const char *name)
{
	t->root = openat(t->d->dir.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return t->root < 0 ? -errno : 0;
}

static int begin(struct tree *t)
{
	remove_tree(t->d->dir.fd, SYS_NEW);
	if (mkdirat(t->d->dir.fd, SYS_NEW, 0755))
		return -errno;
	return open_root(t, SYS_NEW);
}

static int complain(const struct tree *t, int err)
{
	if (err)
		log_error("%s/" RUNDIR_SYS ": %s", t->d->dir.path, strerror(-err));
	return err;
}

/* /dev/null under the names of the devices: what `uroce run` shows at /dev/infiniband. */
static int add_node(const struct daemon *d, const struct device *dev)
{
	char path[64];

	snprintf(path, sizeof(path), RUNDIR_DEV "/uverbs%u", UROCE_FIRST_NODE + dev->uverbs);
	unlinkat(d->dir.fd, path, 0);
	return symlinkat("/dev/null", d->dir.fd, path) ? -errno : 0;
}

static int make_nodes(const struct daemon *d)
{
	int err = 0;

	remove_tree(d->dir.fd, RUNDIR_DEV);
	if (mkdirat(d->dir.fd, RUNDIR_DEV, 0755))
		return -errno;
	for (unsigned i = 0; !err && i < d->n_devices; i++)
		err = add_node(d, d->device[i]);
	return err;
}

int classtree_create(const struct daemon *d)
{
	struct tree t = { .d = d };
	int dir = d->dir.fd, err = begin(&t);

	if (err)
		return complain(&t, err);
	put_all(&t);
	close(t.root);
	if (!t.err)
		t.err = make_nodes(d);
	if (!t.err) {
		remove_tree(dir, RUNDIR_SYS);
		if (renameat(dir, SYS_NEW, dir, RUNDIR_SYS))
			t.err = -errno;
	}
	if (t.err)
		remove_tree(dir, SYS_NEW);
	return complain(&t, t.err);
}

/* A folder of the new tree to its place in the one that programs see. */
static void publish(struct tree *t, const char *folder, const char *name)
{
	char from[PATH_ROOM], to[PATH_ROOM];

	snprintf(from, sizeof(from), SYS_NEW "/class/%s/%s", folder, name);
	snprintf(to, sizeof(to), RUNDIR_SYS "/class/%s/%s", folder, name);
	if (!t->err && renameat(t->d->dir.fd, from, t->d->dir.fd, to))
		t->err = -errno;
}

int classtree_add(const struct daemon *d, const struct device *dev)
{
	struct tree t = { .d = d };
	char uverbs[32];
	int err = begin(&t);

	if (err)
		return complain(&t, err);
	put_contents(&t, dev);
	put_verbs(&t, dev);
	close(t.root);
	publish(&t, "infiniband", dev->name);
	if (!t.err)
		t.err = add_node(d, dev);
	snprintf(uverbs, sizeof(uverbs), "uverbs%u", UROCE_FIRST_NODE + dev->uverbs);
	publish(&t, "infiniband_verbs", uverbs);
	remove_tree(d->dir.fd, SYS_NEW);
	if (t.err)
		classtree_del(d, dev);
	return complain(&t, t.err);
}

void classtree_del(const struct daemon *d, const struct device *dev)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), RUNDIR_SYS "/class/infiniband_verbs/uverbs%u",
		 UROCE_FIRST_NODE + dev->uverbs);
	remove_tree(d->dir.fd, path);
	snprintf(path, sizeof(path), RUNDIR_DEV "/uverbs%u", UROCE_FIRST_NODE + dev->uverbs);
	unlinkat(d->dir.fd, path, 0);
	snprintf(path, sizeof(path), RUNDIR_SYS "/class/infiniband/%s", dev->name);
	remove_tree(d->dir.fd, path);
}

void classtree_update(const struct daemon *d, const struct device *dev)
{
	struct tree t = { .d = d, .is_update = true };
	int err = open_root(&t, RUNDIR_SYS);

	if (!err) {
		put_port(&t, dev);
		put_gids(&t, dev);
		close(t.root);
		err = t.err;
	}
	complain(&t, err);
}

void classtree_remove(const struct daemon *d)
{
	remove_tree(d->dir.fd, RUNDIR_SYS);
	remove_tree(d->dir.fd, RUNDIR_DEV);
}
