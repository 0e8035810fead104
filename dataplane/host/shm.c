/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHM_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map_and_seal(struct shm *s)
{
	if (ftruncate(s->fd, (off_t)s->size) || fcntl(s->fd, F_ADD_SEALS, SHM_SEALS))
		return -errno;
	s->base = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	return s->base == MAP_FAILED ? -errno : 0;
}

int shm_create(struct shm *s, const char *name, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err;

	s->base = NULL;
	s->size = (size + page - 1) & ~(page - 1);
	s->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0)
		return -errno;
	err = map_and_seal(s);
	if (err) {
		s->base = NULL;
		shm_close_fd(s);
	}
	return err;
}

void shm_close_fd(struct shm *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void shm_destroy(struct shm *s)
{
	shm_close_fd(s);
	if (s->base)
		munmap(s->base, s->size);
	s->base = NULL;
}

void shm_trim(struct shm *s, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t keep = (size + page - 1) & ~(page - 1);

	if (keep >= s->size)
		return;
	/* It may fail only where punching holes is not known, and then costs memory. */
	madvise(s->base + keep, s->size - keep, MADV_REMOVE);
	munmap(s->base + keep, s->size - keep);
	s->size = keep;
}

int shm_text(const char *name, const char *text, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	while (len && !err) {
		ssize_t n = write(fd, text, len);

		if (n < 0)
			err = -errno;
		else
			text += n, len -= (size_t)n;
	}
	if (!err && lseek(fd, 0, SEEK_SET) < 0)
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}
