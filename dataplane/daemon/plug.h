/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices come and go: at start, and by `uroce device` while clients and workers run. */
#pragma once

#include <stdbool.h>

struct config_device;
struct daemon;
struct device;
struct links;

/* Makes the device, checked already, and gives it to the workers. 0 or a negative errno, logged. */
int plug_in(struct daemon *d, struct links *l, const struct config_device *c, struct device **out);

/* Takes it from the workers and ends its link. Clients that have it open keep what is left of it.
 */
void plug_out(struct links *l, struct device *dev);

/* Tells workers and clients: `uroce device set NAME up|down`. 0 or -ENOMEM. */
int plug_set_up(struct links *l, struct device *dev, bool is_up);
