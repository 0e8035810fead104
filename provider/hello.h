/* SPDX-License-Identifier: BSD-3-Clause */
/* The first exchange with the daemon: versions, doorbell memory, reach into our memory. */
#pragma once

#include "provider/provider.h"

/* On a connected socket. 0, or a positive errno after one line to the user; nothing is left open.
 */
int uroce_hello(struct uroce_context *ctx, const char *device, const char *path);
void uroce_hello_undo(struct uroce_context *ctx);
