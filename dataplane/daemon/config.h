/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line and configuration file → one struct. */
#pragma once

#include <stdbool.h>

#include "dataplane/daemon/config_device.h"
#include "dataplane/daemon/log.h"

#define CONFIG_MAX_DEVICES 16u

struct config {
	const char *run_dir; /* as given; NULL: the default rule */
	unsigned n_devices;
	struct config_device device[CONFIG_MAX_DEVICES];
	unsigned n_workers;
	int ready_fd; /* -1: none */
	enum log_level log_level;
	bool check_icrc;
};

/*
 * Devices: those of the command line (--devices N on the switch, then each --device); without any
 * there, those of the file; without any there, two on the switch. Every other option of the command
 * line goes before the file's too. Exits by itself with 2 (wrong use, wrong file) or 0 (--help,
 * --version).
 */
void config_parse(struct config *c, int argc, char **argv);
