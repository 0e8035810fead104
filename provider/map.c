/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint8_t *uroce_map(int fd, uint64_t size)
{
	struct stat st;
	void *mem = MAP_FAILED;

	/* A mapping that reaches behind the file's end would be a SIGBUS in the program. */
	if (fstat(fd, &st) == 0 && size && (uint64_t)st.st_size >= size)
		mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	else
		errno = EPROTO;
	int err = errno;

	close(fd);
	errno = err;
	return mem == MAP_FAILED ? NULL : mem;
}

void uroce_unmap(uint8_t *mem, uint64_t size)
{
	if (mem)
		munmap(mem, size);
}
