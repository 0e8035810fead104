/* SPDX-License-Identifier: BSD-3-Clause */
/* What the `uroce` command asks. */
#pragma once

#include <stdint.h>

#include "dataplane/daemon/objects.h"

request_fn request_admin_status, request_admin_stop, request_admin_fault, request_admin_device;

/* The daemon's state as JSON text (jansson's memory: free it), NULL when out of memory. */
char *status_json(struct daemon *d);
