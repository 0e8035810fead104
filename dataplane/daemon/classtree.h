/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The class tree: what /sys/class would show of our devices, as plain files under RUNDIR/sys.
 * libibverbs reads it through SYSFS_PATH or an overlay, other programs through the overlay only.
 */
#pragma once

struct daemon;

/* Builds the tree aside and puts it in place at once, instead of one left by a killed daemon. */
int classtree_create(const struct daemon *d);
void classtree_remove(const struct daemon *d);
