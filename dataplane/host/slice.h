/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time slice of the calling thread. Under Linux's fair scheduler (EEVDF, 6.12 and later) a
 * woken thread with a shorter slice than the running one takes the core at once; before, it may
 * wait until that one's slice of milliseconds ends. No privilege is needed, and the thread's share
 * of the CPU stays what it was.
 */
#pragma once

#include <stdint.h>

/* Slice in nanoseconds; the kernel keeps to 0.1 to 100 ms. 0, or a negative errno. */
int slice_set(uint64_t ns);
