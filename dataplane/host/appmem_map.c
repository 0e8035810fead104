/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a process shares anyhow (memfd, POSIX and System V shared memory, anonymous shared
 * mappings) is mapped into the daemon when it is registered, and copied by memcpy. All of it is
 * found from here, by what the kernel says of the process's mapping: a client is asked nothing.
 */
#include "dataplane/host/appmem_map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dataplane/host/appmem_proc.h"

/* A process has room for 65,530 mappings in all; one client must not use them up. */
#define MAX_VIEWS        8192u
#define MAX_VIEWS_CLIENT 512u
#define MAX_FDS_LOOKED   1024u

struct appmem_view {
	struct appmem *m;
	uint8_t *base; /* of addr */
	uint64_t addr, len;
	void *map;
	size_t map_len;
	bool is_writable;
};

static unsigned n_views;

static __thread sigjmp_buf guard_buf;
static __thread volatile sig_atomic_t is_guarded;

static void on_bus_error(int sig)
{
	if (is_guarded)
		siglongjmp(guard_buf, 1);
	/* Not ours: as if there were no handler. */
	signal(sig, SIG_DFL);
}

static void install_guard(void)
{
	/* NODEFER: leaving by siglongjmp must not leave the signal blocked. */
	struct sigaction sa = { .sa_handler = on_bus_error, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &sa, NULL);
}

sigjmp_buf *appmem_guard_begin(void)
{
	is_guarded = 1;
	return &guard_buf;
}

void appmem_guard_leave(void)
{
	is_guarded = 0;
}

uint8_t *appmem_view_at(const struct appmem_view *v, uint64_t addr, uint64_t len, bool is_write)
{
	uint64_t off = addr - v->addr;

	if (off > v->len || len > v->len - off || (is_write && !v->is_writable) ||
	    __atomic_load_n(&v->m->retired, __ATOMIC_RELAXED))
		return NULL;
	return v->base + off;
}

/* Is fd the very file of that mapping, and memory? A file on a disk may take for ever to answer. */
static bool is_file_of(int fd, const struct appmem_vma *vma)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return false;
	return S_ISREG(st.st_mode) && st.st_ino == vma->inode &&
	       major(st.st_dev) == vma->dev_major && minor(st.st_dev) == vma->dev_minor &&
	       fs.f_type == TMPFS_MAGIC;
}

static int check_fd(int fd, const struct appmem_vma *vma)
{
	if (fd < 0 || is_file_of(fd, vma))
		return fd;
	close(fd);
	return -1;
}

/* Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN, and then works for every shared mapping. */
static int open_map_file(const struct appmem *m, const struct appmem_vma *vma, int flags)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)m->pid,
		 vma->start, vma->end);
	return check_fd(open(path, flags | O_CLOEXEC), vma);
}

/* Needs no more than access to the process: it may still have a descriptor of the file. */
static int open_descriptor(const struct appmem *m, const struct appmem_vma *vma, int flags)
{
	const struct dirent *d;
	unsigned looked = 0;
	char path[64];
	int fd = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)m->pid);
	dir = opendir(path);
	while (dir && fd < 0 && looked++ < MAX_FDS_LOOKED && (d = readdir(dir))) {
		struct stat st;

		/* Opening something else could have an effect, so look first. */
		if (d->d_name[0] == '.' || fstatat(dirfd(dir), d->d_name, &st, 0) ||
		    st.st_ino != vma->inode || !S_ISREG(st.st_mode))
			continue;
		fd = check_fd(openat(dirfd(dir), d->d_name, flags | O_CLOEXEC | O_NONBLOCK), vma);
	}
	if (dir)
		closedir(dir);
	return fd;
}

/* The same, where the file has a name still. What stands there now is looked at before it opens. */
static int open_path(const struct appmem *m, const struct appmem_vma *vma, int flags)
{
	char path[64 + PATH_MAX];
	int at = snprintf(path, sizeof(path), "/proc/%d/root", (int)m->pid), look, fd = -1;

	if (appmem_vma_path(m, vma->start, path + at, PATH_MAX))
		return -1;
	look = check_fd(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), vma);
	if (look < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", look);
	fd = check_fd(open(path, flags | O_CLOEXEC), vma);
	close(look);
	return fd;
}

static int open_file(const struct appmem *m, const struct appmem_vma *vma, bool is_writable)
{
	int flags = is_writable ? O_RDWR : O_RDONLY;
	int fd = open_map_file(m, vma, flags);

	if (fd < 0)
		fd = open_descriptor(m, vma, flags);
	return fd < 0 ? open_path(m, vma, flags) : fd;
}

/*
 * A privileged daemon could open more than the process may: the mapping says what that is, and it
 * is this one that the file is compared with.
 */
static bool is_wanted(const struct appmem_vma *vma, bool is_writable)
{
	return vma->is_shared && vma->inode && vma->is_readable &&
	       (vma->is_writable || !is_writable);
}

/* All up to end must be one file, in order; first: the mapping where the range begins. */
static bool is_one_file(const struct appmem *m, const struct appmem_vma *first, uint64_t end,
			bool is_writable)
{
	struct appmem_vma vma = *first;

	while (vma.end < end) {
		uint64_t at = vma.end;

		if (appmem_vma_find(m, at, &vma) || !is_wanted(&vma, is_writable) ||
		    vma.start != at || vma.inode != first->inode ||
		    vma.dev_major != first->dev_major || vma.dev_minor != first->dev_minor ||
		    vma.offset - first->offset != at - first->start)
			return false;
	}
	return true;
}

static struct appmem_view *make_view(struct appmem *m, int fd, const struct appmem_vma *vma,
				     uint64_t addr, uint64_t len, bool is_writable)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), slack = addr & (page - 1);
	struct appmem_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	*v = (struct appmem_view) { .m = m,
				    .addr = addr,
				    .len = len,
				    .map_len = slack + len,
				    .is_writable = is_writable };
	v->map = mmap(NULL, v->map_len, is_writable ? PROT_READ | PROT_WRITE : PROT_READ,
		      MAP_SHARED, fd, (off_t)(vma->offset + (addr - slack - vma->start)));
	if (v->map == MAP_FAILED) {
		free(v);
		return NULL;
	}
	v->base = (uint8_t *)v->map + slack;
	return v;
}

static bool may_have_another(struct appmem *m)
{
	if (m->n_views >= MAX_VIEWS_CLIENT)
		return false;
	if (__atomic_add_fetch(&n_views, 1, __ATOMIC_RELAXED) <= MAX_VIEWS)
		return true;
	__atomic_sub_fetch(&n_views, 1, __ATOMIC_RELAXED);
	return false;
}

struct appmem_view *appmem_map(struct appmem *m, uint64_t addr, uint64_t len, bool is_writable)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct appmem_view *v = NULL;
	struct appmem_vma vma;
	int fd;

	if (!len || addr + len < addr || appmem_vma_find(m, addr, &vma) || vma.start > addr ||
	    !is_wanted(&vma, is_writable) || !is_one_file(m, &vma, addr + len, is_writable) ||
	    !may_have_another(m))
		return NULL;
	pthread_once(&once, install_guard);
	fd = open_file(m, &vma, is_writable);
	if (fd >= 0) {
		v = make_view(m, fd, &vma, addr, len, is_writable);
		close(fd);
	}
	if (v)
		m->n_views++;
	else
		__atomic_sub_fetch(&n_views, 1, __ATOMIC_RELAXED);
	return v;
}

uint64_t appmem_view_region(const struct appmem_view *v)
{
	return (uint64_t)(uintptr_t)v | APPMEM_VIEW_TAG;
}

void appmem_unmap(struct appmem_view *v)
{
	if (!v)
		return;
	munmap(v->map, v->map_len);
	v->m->n_views--;
	__atomic_sub_fetch(&n_views, 1, __ATOMIC_RELAXED);
	free(v);
}
