/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of appmem: shared memory of a process, mapped here too. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/host/appmem.h"

#define APPMEM_VIEW_TAG 2u /* in a region handle: a view, not a process */

static inline bool appmem_is_view(uint64_t region)
{
	return region & APPMEM_VIEW_TAG;
}

static inline const struct appmem_view *appmem_view_of(uint64_t region)
{
	return (const struct appmem_view *)(uintptr_t)(region & ~(uint64_t)APPMEM_VIEW_TAG);
}

/*
 * [addr, addr + len) of the view's process as memory here; NULL: not all of it is in the view, it
 * may not be written, or the process has ended.
 */
uint8_t *appmem_view_at(const struct appmem_view *v, uint64_t addr, uint64_t len, bool is_write);

/*
 * Whoever shares memory with us may cut its file short under us at any time, and then the kernel
 * sends SIGBUS. So memory of a view is only touched inside of
 *     if (appmem_guard_enter()) return -EFAULT; ... appmem_guard_leave();
 * in one function, which enter comes back to when that happens.
 */
#define appmem_guard_enter() (sigsetjmp(*appmem_guard_begin(), 0) ? (appmem_guard_leave(), 1) : 0)
sigjmp_buf *appmem_guard_begin(void);
void appmem_guard_leave(void);
