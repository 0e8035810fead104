/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the devices are connected to: the embedded switch or a link of their own, and for each
 * device the faults that `uroce fault` may order on its ports. Control thread; workers may run, but
 * not during create and destroy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/daemon/device_net.h"
#include "dataplane/daemon/metrics.h"

struct daemon;
struct device;
struct links;
struct link_port;
struct neighbours;

/* 0 or a negative errno. The workers must exist. */
int links_create(struct links **out, struct daemon *d);
void links_destroy(struct links *l);

/* Ports for device `index`, one for each worker. 0 or a negative errno, logged. */
int links_add_device(struct links *l, unsigned index, const struct device_net *net,
		     struct link_port **ports);

/* The largest IP packet that the link of device `index` carries; 0: any that its interface does. */
uint32_t links_mtu(const struct links *l, unsigned index);

/* Where the peers of device `index` are; NULL: its link needs nobody to tell. */
struct neighbours *links_neighbours(const struct links *l, unsigned index);

/* The last thing a worker does with its port. */
void links_drain(struct link_port *port);

struct daemon *links_daemon(const struct links *l);

/*
 * The interface behind the device got an address, or lost one; if_index: the interface's. 0 or a
 * negative errno, logged.
 */
int links_add_addr(struct links *l, unsigned index, const uint8_t gid[GID_LEN], unsigned if_index);
void links_del_addr(struct links *l, unsigned index, const uint8_t gid[GID_LEN]);

/* The interface behind the device was removed and made anew; mac: the device's from now on. */
void links_move(struct links *l, unsigned index, const struct netdev *now, const uint8_t mac[6]);

/* The largest IP packet from now on. */
void links_set_mtu(struct links *l, unsigned index, uint32_t ip_mtu);

/* Closes the device's link; every worker must have drained its port. */
void links_del_device(struct links *l, unsigned index);

/* Nothing passes the device's port while it is cut, nor is anything kept. 0 or -ENOMEM. */
int links_cut(struct links *l, unsigned index, bool is_cut);

/* Of a dpdk link: finds gid before it is needed. ctx: struct links. */
void links_ask(void *ctx, unsigned index, const uint8_t gid[GID_LEN]);

/*
 * The device takes part in a group, or does not any more. 0 or a negative errno. ctx: struct links.
 */
int links_group(void *ctx, unsigned index, const uint8_t gid[GID_LEN], bool joins);

void links_count(const struct links *l, unsigned index, struct metrics_port *out);

/*
 * One command line: "set DEVICE WORDS", "show [DEVICE]" or "clear [DEVICE]". *json: malloc'ed
 * reply; an "error" in it says what was wrong. ctx: struct links. 0 or a negative errno.
 */
int links_fault(void *ctx, const char *line, char **json);
