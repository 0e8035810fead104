/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of one application process, reached through the kernel: the core's memory port.
 *
 * Two ways in. process_vm_readv/writev take a whole scatter list in one call; the kernel checks at
 * every call that we may. But a privileged daemon may do everything, also after the process has
 * executed a set-user-id program or its pid belongs to another: there we use /proc/PID/mem, which
 * stays bound to the address space that was opened (slower, about 450 ns for each piece).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "dataplane/ports.h"

struct appmem;

/*
 * pid, uid: the process and the user it ran as when it connected. A negative errno: why its memory
 * cannot be reached; *out is NULL then.
 */
int appmem_open(struct appmem **out, pid_t pid, uid_t uid);

/* The process is dead: touch nothing any more. Any thread may call it at any time. */
void appmem_retire(struct appmem *m);
void appmem_close(struct appmem *m);

/* Reads the 8 bytes at addr and writes them back: 0, or the negative errno that says why not. */
int appmem_probe(struct appmem *m, uint64_t addr);

/*
 * May [addr, addr + len) be registered: is all of it mapped, readable (writable), and is it memory
 * that the kernel lets us reach? 0 or a negative errno.
 */
int appmem_check(struct appmem *m, uint64_t addr, uint64_t len, bool writable);

/* What goes into cmd_mr_add.region and comes back in mem_vec.region. */
static inline uint64_t appmem_region(const struct appmem *m)
{
	return (uint64_t)(uintptr_t)m;
}

/*
 * Shared memory of the process ([addr, addr + len) that appmem_check has let pass), mapped here, so
 * that it is copied without the kernel. NULL: it is not of that kind, or not ours to open; the
 * process's own region serves then. A view ends before its appmem does, and when no engine has its
 * region any more. Control thread.
 */
struct appmem_view;
struct appmem_view *appmem_map(struct appmem *m, uint64_t addr, uint64_t len, bool is_writable);
void appmem_unmap(struct appmem_view *v);
uint64_t appmem_view_region(const struct appmem_view *v);

/* The region of no memory at all: reads give zeros, writes vanish. */
#define APPMEM_NULL_REGION 1u

/* The ports. ctx is not used. Ranges must have been checked against the MR by the core. */
int appmem_read(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		unsigned n_buf);
int appmem_write(void *ctx, const struct mem_vec *app, unsigned n_app, const struct buf_vec *buf,
		 unsigned n_buf);
int appmem_atomic(void *ctx, const struct mem_vec *app, enum mem_atomic_op op, uint64_t operand,
		  uint64_t compare, uint64_t *old);
