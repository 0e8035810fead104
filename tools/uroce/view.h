/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a daemon's devices visible to this process and what it executes, and to nobody else: a
 * private mount namespace (inside a user namespace where we may not mount) in which /sys/class
 * shows the daemon's class tree beside the host's and /dev/infiniband holds their nodes.
 */
#pragma once

#include "tools/uroce/tree.h"

#include <stdbool.h>

struct view {
	const char *run_dir;
	const char *device; /* show this one only; NULL: all, and the host's real ones */
};

/* What could not be done, for a sentence. */
struct view_error {
	const char *step;
	int err; /* negative errno */
};

/* Whether this process sees exactly that already, being below another `uroce run`. */
bool view_is_current(const struct view *v);

/* Changes this process. On failure the process must not go on: it may be half-way. */
int view_enter(const struct view *v, struct view_error *e);

/* Tries view_enter in a child process, so that a failure costs nothing. */
int view_try(const struct view *v, struct view_error *e);

/*
 * Without namespaces: true if /dev/infiniband holds the nodes already, as bind mounts into a
 * container would; else missing lists those that lack.
 */
bool view_has_nodes(const struct tree *t, const char *device, char *missing, unsigned size);
