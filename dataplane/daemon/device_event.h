/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a device as a whole, to all who have it open. Control thread. */
#pragma once

#include <stdint.h>

struct device;

/* UROCE_EVENT_PORT_*, _GID_CHANGE, _DEVICE_FATAL. */
void device_event(const struct device *dev, uint32_t type);

/* The port went up or down: the event, and what the class tree says. */
void device_event_port(const struct device *dev);

/* The GID table changed. */
void device_event_gids(const struct device *dev);

/*
 * The device is removed: QPs go to the error state and give back what was posted to them, and its
 * clients are told. What they still ask for is refused with EIO, but for destroying what they have.
 */
void device_event_removed(struct device *dev);
