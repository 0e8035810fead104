/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the peers of a device are whose interface is the kernel's: next hops from its routes, MACs
 * from its neighbours, kept true while workers use them. Control thread.
 */
#pragma once

#include <stdint.h>

#include "fabric/addr/gid.h"

struct netdev;
struct neigh_table;
struct neighbours;

/* changed: called when a peer is found or lost. 0 or a negative errno. */
int neighbours_create(struct neighbours **out, const struct netdev *dev, void (*changed)(void *ctx),
		      void *ctx);
void neighbours_destroy(struct neighbours *n);

/* The interface is another one now, of the same name: all ways are looked up again. mac: ours. */
void neighbours_move(struct neighbours *n, const struct netdev *dev, const uint8_t mac[6]);

/* What links read. */
struct neigh_table *neighbours_table(struct neighbours *n);

/*
 * From now on the table has the way to gid, as soon as the peer answers. 0, or -ENETUNREACH: there
 * is none over this interface.
 */
int neighbours_want(struct neighbours *n, const uint8_t gid[GID_LEN]);

/* A descriptor that polls readable when neighbours_serve has something to do. */
int neighbours_fd(const struct neighbours *n);
void neighbours_serve(struct neighbours *n);
