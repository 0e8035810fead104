/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's first request, and what it asks about the device and the daemon. */
#pragma once

#include "dataplane/daemon/objects.h"

request_fn request_hello, request_admin_hello;
request_fn request_query_device, request_query_port, request_probe_memory;
