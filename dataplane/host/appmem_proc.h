/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of appmem: how a process is held. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct appmem {
	pid_t pid;
	int mem_fd;  /* /proc/PID/mem, or -1: process_vm_* */
	int maps_fd; /* /proc/PID/maps, of the address space as it was when the process connected */
	bool retired;
};
