/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/appmem_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/host/appmem.h"

/* PROCMAP_QUERY, Linux 6.11; older kernels' headers do not have it. */
struct procmap_query_v1 {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY_V1     _IOWR('f', 17, struct procmap_query_v1)
#define PROCMAP_VMA_READABLE 0x01u
#define PROCMAP_VMA_WRITABLE 0x02u
#define PROCMAP_VMA_SHARED   0x08u

static int open_proc(pid_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* May we reach every process? Then the kernel's own check at each call protects nobody from us. */
static bool is_privileged(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct cap[2] = { 0 };

	if (syscall(SYS_capget, &head, cap))
		return geteuid() == 0;
	return cap[CAP_SYS_PTRACE / 32].effective >> (CAP_SYS_PTRACE % 32) & 1;
}

/* Is the process still wholly its user's: all four uids, and dumpable (no privileged program)? */
static int check_owner(pid_t pid, uid_t uid)
{
	char path[64], line[256];
	unsigned id[4] = { 0 };
	bool is_same = false;
	struct stat st;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) != 4)
			continue;
		is_same = id[0] == uid && id[1] == uid && id[2] == uid && id[3] == uid;
		break;
	}
	if (is_same && (fstat(fileno(f), &st) || st.st_uid != uid))
		is_same = false;
	fclose(f);
	return is_same ? 0 : -EPERM;
}

static int open_files(struct appmem *m, uid_t uid)
{
	m->maps_fd = open_proc(m->pid, "maps", O_RDONLY);
	if (m->maps_fd < 0)
		return m->maps_fd == -ENOENT ? -ESRCH : m->maps_fd;
	if (uid == 0 || !is_privileged())
		return 0;
	m->mem_fd = open_proc(m->pid, "mem", O_RDWR);
	if (m->mem_fd < 0)
		return m->mem_fd;
	/* After the open: what it is bound to now is what we judge. */
	return check_owner(m->pid, uid);
}

int appmem_open(struct appmem **out, pid_t pid, uid_t uid)
{
	struct appmem *m = calloc(1, sizeof(*m));
	int err;

	*out = NULL;
	if (!m)
		return -ENOMEM;
	m->pid = pid;
	m->mem_fd = m->maps_fd = -1;
	err = pid > 0 ? open_files(m, uid) : -ESRCH;
	if (err)
		appmem_close(m);
	else
		*out = m;
	return err;
}

void appmem_retire(struct appmem *m)
{
	if (m)
		__atomic_store_n(&m->retired, true, __ATOMIC_RELAXED);
}

void appmem_close(struct appmem *m)
{
	if (!m)
		return;
	if (m->mem_fd >= 0)
		close(m->mem_fd);
	if (m->maps_fd >= 0)
		close(m->maps_fd);
	free(m);
}

int appmem_probe(struct appmem *m, uint64_t addr)
{
	struct mem_vec v = { .addr = addr, .region = appmem_region(m), .len = 8 };
	uint64_t word;
	struct buf_vec b = { (uint8_t *)&word, sizeof(word) };
	int err = appmem_read(NULL, &v, 1, &b, 1);

	return err ? err : appmem_write(NULL, &v, 1, &b, 1);
}

/* -ENOTTY: this kernel does not know the query. */
static int find_by_query(const struct appmem *m, uint64_t addr, struct appmem_vma *out)
{
	struct procmap_query_v1 q = { .size = sizeof(q), .query_addr = addr };

	if (ioctl(m->maps_fd, PROCMAP_QUERY_V1, &q))
		return errno == ENOENT ? -EFAULT : errno == EINVAL ? -ENOTTY : -errno;
	*out = (struct appmem_vma) { .start = q.vma_start,
				     .end = q.vma_end,
				     .offset = q.vma_offset,
				     .inode = q.inode,
				     .dev_major = q.dev_major,
				     .dev_minor = q.dev_minor,
				     .is_readable = q.vma_flags & PROCMAP_VMA_READABLE,
				     .is_writable = q.vma_flags & PROCMAP_VMA_WRITABLE,
				     .is_shared = q.vma_flags & PROCMAP_VMA_SHARED };
	return 0;
}

static int find_by_text(const struct appmem *m, uint64_t addr, struct appmem_vma *out)
{
	int fd = open_proc(m->pid, "maps", O_RDONLY), err = -EFAULT;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[512], perm[5];

	if (!f)
		return fd < 0 ? fd : (close(fd), -ENOMEM);
	while (err && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64,
			   &out->start, &out->end, perm, &out->offset, &out->dev_major,
			   &out->dev_minor, &out->inode) != 7 ||
		    out->end <= addr)
			continue;
		if (out->start > addr)
			break;
		out->is_readable = perm[0] == 'r';
		out->is_writable = perm[1] == 'w';
		out->is_shared = perm[3] == 's';
		err = 0;
	}
	fclose(f);
	return err;
}

int appmem_vma_find(const struct appmem *m, uint64_t addr, struct appmem_vma *out)
{
	int err = find_by_query(m, addr, out);

	return err == -ENOTTY ? find_by_text(m, addr, out) : err;
}

int appmem_vma_path(const struct appmem *m, uint64_t addr, char *path, uint32_t size)
{
	struct procmap_query_v1 q = { .size = sizeof(q),
				      .query_addr = addr,
				      .vma_name_size = size,
				      .vma_name_addr = (uint64_t)(uintptr_t)path };

	if (ioctl(m->maps_fd, PROCMAP_QUERY_V1, &q))
		return -errno;
	return q.vma_name_size && path[0] == '/' ? 0 : -ENOENT;
}

static int check_mappings(const struct appmem *m, uint64_t addr, uint64_t end, bool writable)
{
	struct appmem_vma vma;

	for (; addr < end; addr = vma.end) {
		int err = appmem_vma_find(m, addr, &vma);

		if (err)
			return err;
		if (!vma.is_readable || (writable && !vma.is_writable))
			return -EFAULT;
	}
	return 0;
}

/* Some mappings (device memory) look usable and are not: read one byte. */
static int read_byte(struct appmem *m, uint64_t addr)
{
	struct mem_vec v = { .addr = addr, .region = appmem_region(m), .len = 1 };
	uint8_t byte;
	struct buf_vec b = { &byte, 1 };

	return appmem_read(NULL, &v, 1, &b, 1);
}

int appmem_check(struct appmem *m, uint64_t addr, uint64_t len, bool writable)
{
	int err;

	if (!len)
		return 0;
	if (addr + len < addr)
		return -EINVAL;
	err = check_mappings(m, addr, addr + len, writable);
	if (!err)
		err = read_byte(m, addr);
	return err ? err : read_byte(m, addr + len - 1);
}
