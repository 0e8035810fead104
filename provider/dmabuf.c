/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory named by a descriptor: a dma-buf whose exporter lets a CPU map it (udmabuf, system heaps),
 * or any other file of memory. It is mapped where the program does not look, and registered as
 * memory of the program is. What cannot be mapped, as a graphics device's own memory, is not
 * reached by a CPU either.
 */
#include "provider/provider.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* As the kernel has it: the memory is another's, so there is nothing on demand about it. */
#define ACCESS_DMABUF                                                                \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

/* NULL with errno: EBADF, EACCES (not open for this), ENOMEM; else there is no such memory. */
static uint8_t *map(int fd, uint64_t offset, size_t length, int access)
{
	int prot = PROT_READ | (access & IBV_ACCESS_LOCAL_WRITE ? PROT_WRITE : 0);
	void *mem = mmap(NULL, length, prot, MAP_SHARED, fd, (off_t)offset);

	if (mem != MAP_FAILED)
		return mem;
	if (errno != EBADF && errno != EACCES && errno != ENOMEM)
		errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_mr *uroce_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				   int fd, int access)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), lead = offset & (page - 1);
	struct ibv_mr *mr;
	uint8_t *mem;

	if (!length || (access & ~ACCESS_DMABUF) || offset + length < offset ||
	    lead + length < length) {
		errno = EINVAL;
		return NULL;
	}
	mem = map(fd, offset - lead, lead + length, access);
	if (!mem)
		return NULL;
	mr = uroce_mr_register(pd, mem + lead, length, iova, access);
	if (!mr) {
		int err = errno;

		munmap(mem, lead + length);
		errno = err;
		return NULL;
	}
	((struct uroce_mr *)mr)->v.mr_type = VERBS_MR_TYPE_DMABUF;
	((struct uroce_mr *)mr)->mapped = mem;
	((struct uroce_mr *)mr)->mapped_size = lead + length;
	return mr;
}
