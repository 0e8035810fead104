/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of appmem: how a process is held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct appmem {
	pid_t pid;
	int mem_fd;  /* /proc/PID/mem, or -1: process_vm_* */
	int maps_fd; /* /proc/PID/maps, of the address space as it was when the process connected */
	bool retired;
	unsigned n_views; /* of it; the control thread's */
};

/* One mapping of the process. */
struct appmem_vma {
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
	bool is_readable, is_writable, is_shared;
};

/* The mapping that holds addr: 0, or a negative errno: EFAULT, there is none. */
int appmem_vma_find(const struct appmem *m, uint64_t addr, struct appmem_vma *out);

/* What file it is of, as the process sees its path. 0, or a negative errno: not known. */
int appmem_vma_path(const struct appmem *m, uint64_t addr, char *path, uint32_t size);
