/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the devices are connected to: the embedded switch or a link of their own, and for each
 * device the faults that `uroce fault` may order on its ports. Control thread, and no worker may
 * run during create, add_device and destroy.
 */
#pragma once

#include <stdint.h>

#include "dataplane/daemon/device_net.h"
#include "dataplane/daemon/metrics.h"

struct daemon;
struct links;
struct link_port;
struct neighbours;

/* 0 or a negative errno. The workers must exist. */
int links_create(struct links **out, struct daemon *d);
void links_destroy(struct links *l);

/* Ports for device `index`, one for each worker. 0 or a negative errno, logged. */
int links_add_device(struct links *l, unsigned index, const struct device_net *net,
		     struct link_port **ports);

/* Where the peers of device `index` are; NULL: its link needs nobody to tell. */
struct neighbours *links_neighbours(const struct links *l, unsigned index);

void links_count(const struct links *l, unsigned index, struct metrics_port *out);

/*
 * One command line: "set DEVICE WORDS", "show [DEVICE]" or "clear [DEVICE]". *json: malloc'ed
 * reply; an "error" in it says what was wrong. ctx: struct links. 0 or a negative errno.
 */
int links_fault(void *ctx, const char *line, char **json);
