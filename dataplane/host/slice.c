/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/slice.h"

#include <errno.h>
#include <linux/sched/types.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int slice_set(uint64_t ns)
{
	struct sched_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0))
		return -errno;
	attr.sched_runtime = ns;
	return syscall(SYS_sched_setattr, 0, &attr, 0) ? -errno : 0;
}
