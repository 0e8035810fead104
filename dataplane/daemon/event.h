/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's event ports: completion and asynchronous events out to the clients. Any worker. */
#pragma once

#include "dataplane/ports.h"

/* ctx: struct daemon. channel: the struct channel that CREATE_CQ named. */
void event_completion(void *ctx, uint32_t owner, uint32_t cqn, uint64_t channel, uint64_t token);
void event_async(void *ctx, const struct engine_event *ev);
