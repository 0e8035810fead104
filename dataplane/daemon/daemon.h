/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's parts, as they know each other. One control thread owns all of this; workers reach
 * only what is said so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/abi/abi.h"
#include "dataplane/daemon/config.h"
#include "dataplane/daemon/rundir.h"

#define DAEMON_MAX_SESSIONS 1024u

struct daemon {
	struct config conf;
	struct rundir dir;
	uint64_t started; /* clock_now() */
	uint64_t boot_id;
	unsigned n_workers, n_devices;
	struct worker *worker[UROCE_MAX_WORKERS];
	/* In the order they came, without gaps; see device_list.h. */
	struct device *device[CONFIG_MAX_DEVICES];
	uint32_t last_uverbs; /* how many device nodes were named so far */
	/*
	 * By owner number, the one that objects carry into the engines. Workers read an entry while
	 * an engine holds an object of that owner; the entry outlives them all.
	 */
	struct session *session[DAEMON_MAX_SESSIONS];
	struct control *control;
	/*
	 * `uroce fault`: runs one command line, *json: malloc'ed reply. 0 or a negative errno.
	 * NULL: the links of this daemon know no faults.
	 */
	int (*fault)(void *ctx, const char *line, char **json);
	void *fault_ctx;
	/* `uroce device`, in the same way. NULL: devices neither come nor go. */
	int (*plug)(void *ctx, const char *line, char **json);
	void *plug_ctx;
	/* The kernel has news of interfaces or addresses. */
	void (*look_at_net)(void *ctx);
	void *look_at_net_ctx;
};

struct device *daemon_device(const struct daemon *d, const char *name);
