/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's environment: without hugepages, PCI, root, or a place that a second daemon would share. */
#pragma once

/* run_dir: where DPDK's telemetry socket goes. 0 or a negative errno, logged. */
int eal_start(const char *run_dir);

/* Also removes what DPDK put into the run directory. */
void eal_stop(int run_dir_fd);

/* For worker threads, first thing: makes mempool caches work there. 0 or a negative errno. */
int eal_enter_thread(void);
