/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The class tree: what /sys/class would show of our devices, as plain files under RUNDIR/sys.
 * libibverbs reads it through SYSFS_PATH or an overlay, other programs through the overlay only.
 */
#pragma once

struct daemon;
struct device;

/* Builds the tree aside and puts it in place at once, instead of one left by a killed daemon. */
int classtree_create(const struct daemon *d);

/* A device that came later, all at once, and one that goes. */
int classtree_add(const struct daemon *d, const struct device *dev);
void classtree_del(const struct daemon *d, const struct device *dev);

/* The port's state and GIDs changed. */
void classtree_update(const struct daemon *d, const struct device *dev);

void classtree_remove(const struct daemon *d);
