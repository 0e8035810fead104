/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file: JSON, { "workers": 1, "devices": [ { "name": ..., "link": ... } ] }. */
#pragma once

#include "dataplane/daemon/config.h"

#define CONFIG_FILE UROCE_SYSCONFDIR "/uroce/uroce.conf"

/*
 * Sets what the file says, all of it or an error: 0; -ENOENT; -EINVAL or another negative errno
 * with a sentence that names the file.
 */
int config_file_read(struct config *c, const char *path, struct config_error *e);
