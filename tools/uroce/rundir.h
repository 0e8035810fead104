/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a daemon lives: its socket, its class tree, its log. */
#pragma once

#include <limits.h>

/*
 * Writes the absolute run directory to buf: given, else $UROCE_RUN_DIR, else /run/uroce for root,
 * else $XDG_RUNTIME_DIR/uroce, else /tmp/uroce-UID. 0, or a negative errno after a sentence.
 */
int rundir_find(const char *given, char buf[PATH_MAX]);

/*
 * Makes it if it is missing. A directory of another user or a symbolic link in its place is
 * refused: in /tmp anyone could have laid it there. 0, or a negative errno after a sentence.
 */
int rundir_make(const char *run_dir);
