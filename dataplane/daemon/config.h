/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line → one struct. */
#pragma once

#include <stdbool.h>

#include "dataplane/daemon/log.h"

#define CONFIG_MAX_DEVICES 16u

struct config {
	const char *run_dir; /* as given; NULL: the default rule */
	unsigned n_devices;
	unsigned n_workers;
	int ready_fd; /* -1: none */
	enum log_level log_level;
	bool check_icrc;
};

/* Exits by itself with 2 (wrong use) or 0 (--help, --version). */
void config_parse(struct config *c, int argc, char **argv);
