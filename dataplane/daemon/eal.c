/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/eal.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/daemon/log.h"

#define FILE_PREFIX "uroced"
#define MEMORY_MB   "64" /* touched lazily: what is not used costs nothing */

/* One lcore that may float over all CPUs we are allowed: "0@(0,1,4)". */
static int lcores_text(const cpu_set_t *set, char *text, size_t size)
{
	size_t off = (size_t)snprintf(text, size, "0@(");

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, set))
			continue;
		off += (size_t)snprintf(text + off, size - off, "%s%d",
					text[off - 1] == '(' ? "" : ",", cpu);
		if (off + 8 >= size)
			return -ENAMETOOLONG;
	}
	snprintf(text + off, size - off, ")");
	return 0;
}

static const char *eal_level(void)
{
	switch (log_get_level()) {
	case LOG_LEVEL_ERROR:
		return "--log-level=*:error";
	case LOG_LEVEL_WARNING:
	case LOG_LEVEL_INFO:
		return "--log-level=*:warning";
	case LOG_LEVEL_DEBUG:
		return "--log-level=*:info";
	}
	return "--log-level=*:warning";
}

int eal_start(const char *run_dir)
{
	char lcores[4096];
	char *argv[] = { "uroced", "--no-huge", "-m", MEMORY_MB, "--no-shconf", "--no-pci",
			 "--file-prefix", FILE_PREFIX, "--lcores", lcores,
			 /* It calls the absence of another library's callbacks an error. */
			 "--log-level=lib.telemetry:emergency", (char *)eal_level(), NULL };
	cpu_set_t allowed;
	int err;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	err = lcores_text(&allowed, lcores, sizeof(lcores));
	if (err)
		return err;
	/* The EAL makes its run-time directory below this one, where it harms nobody. */
	setenv("RUNTIME_DIRECTORY", run_dir, 1);
	if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) < 0) {
		log_error("DPDK does not start: %s", rte_strerror(rte_errno));
		return -EIO;
	}
	/* The EAL pins; on few cores threads must be free to move. */
	sched_setaffinity(0, sizeof(allowed), &allowed);
	return 0;
}

/*
 * Not by rte_eal_cleanup(): it unmaps DPDK's memory while its interrupt thread may still look for
 * the handles of drivers there (memif leaves its listener registered). The process ends here.
 */
void eal_stop(int run_dir_fd)
{
	unlinkat(run_dir_fd, "dpdk/" FILE_PREFIX "/dpdk_telemetry.v2", 0);
	unlinkat(run_dir_fd, "dpdk/" FILE_PREFIX, AT_REMOVEDIR);
	unlinkat(run_dir_fd, "dpdk", AT_REMOVEDIR);
}

int eal_enter_thread(void)
{
	return rte_thread_register() ? -rte_errno : 0;
}
