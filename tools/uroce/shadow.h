/* SPDX-License-Identifier: BSD-3-Clause */
/* The mounts of a view. To be called in a mount namespace of one's own, with the right to mount. */
#pragma once

#include "tools/uroce/tree.h"

/*
 * Shows the class tree at root beside the host's on /sys/class: as an overlay, or where the kernel
 * has none as a directory of bind mounts. only: hide every other device. 0 or a negative errno.
 */
int shadow_sys_class(const char *root, const struct tree *t, const char *only);

/* Adds a node to /dev/infiniband for each device of t. 0 or a negative errno. */
int shadow_dev(const char *run_dir, const struct tree *t, const char *only);
