/* SPDX-License-Identifier: BSD-3-Clause */
/* A device: its identity, its numbers, and one engine and link port for each worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/abi/abi.h"
#include "dataplane/abi/ctrl.h"
#include "dataplane/daemon/control.h"
#include "dataplane/daemon/device_net.h"
#include "dataplane/daemon/handles.h"
#include "dataplane/engine.h"
#include "dataplane/ports.h"
#include "fabric/addr/gid.h"
#include "fabric/wire/packet.h"

struct daemon;
struct link_port;
struct neighbours;

#define DEVICE_MAX_QP  65536u
#define DEVICE_MAX_CQ  16384u
#define DEVICE_MAX_MR  65536u
#define DEVICE_MAX_PD  65536u
#define DEVICE_MAX_AH  65536u
#define DEVICE_MAX_SRQ 16384u
/* Attachments of QPs to groups in one engine; and as programs are told. */
#define DEVICE_MAX_MCAST        1024u
#define DEVICE_MAX_MCAST_GROUP  64u
#define DEVICE_MAX_MCAST_MEMBER (DEVICE_MAX_MCAST / DEVICE_MAX_MCAST_GROUP)
#define DEVICE_RD_ATOMIC        16u


struct device {
	struct daemon *daemon;
	unsigned index;  /* below CONFIG_MAX_DEVICES; another device may have it later */
	unsigned uverbs; /* its node is number UROCE_FIRST_NODE + uverbs */
	char name[UROCE_DEV_NAME_MAX];
	uint8_t mac[6];
	uint8_t guid[8]; /* network order */
	struct gid_table gids;
	struct config_device asked; /* by the user */
	struct device_net net;
	struct neighbours *neighbours; /* NULL: the link knows the way; its links_device owns it */
	struct watch neighbours_watch;
	bool is_admin_down; /* `uroce device set NAME down` */
	bool is_gone;       /* removed: it stays for the clients that have it open */
	uint32_t n_sessions;
	/* Finds gid before it is needed, where the link does that; may be NULL. */
	void (*ask)(void *ctx, unsigned index, const uint8_t gid[GID_LEN]);
	void *ask_ctx;
	/* Its QPs' groups: the link takes part in one, or does not any more. May be NULL. */
	int (*group)(void *ctx, unsigned index, const uint8_t gid[GID_LEN], bool joins);
	struct device_group *groups;
	struct ports ports;
	struct engine_conf conf;
	struct engine *engine[UROCE_MAX_WORKERS];
	struct link_port *port[UROCE_MAX_WORKERS];
	void *arena[UROCE_MAX_WORKERS];
	size_t arena_size;
	void *shared; /* by its engines */
	size_t shared_size;
	struct numbers qpns; /* index part: from 2 on, below 0xffff */
	struct numbers cqns;
	struct numbers keys; /* index part */
	struct numbers ahs;  /* index part */
	struct numbers srqns;
	uint32_t last_pd;
	struct xrc_domain *xrc_domains;
	uint32_t last_xrcd;
	uint32_t n_qp, n_cq, n_mr, n_pd, n_ah, n_srq, n_mw;
};

/* ports: one for each worker. 0 or a negative errno. */
int device_create(struct device **out, struct daemon *d, unsigned index,
		  const struct device_net *net, struct link_port *const *ports);
void device_destroy(struct device *dev);

/* Its interface was made anew, and with it all memberships are gone. */
void device_rejoin_groups(struct device *dev);

/* A session opens it, and lets go of it: the last one of a removed device destroys it. */
void device_hold(struct device *dev);
void device_release(struct device *dev);

/* Is its port active? */
bool device_is_up(const struct device *dev);

void device_attr(const struct device *dev, struct uroce_device_attr *attr);
void device_port_attr(const struct device *dev, struct uroce_port_attr *attr);
uint32_t device_mtu_enum(uint32_t path_mtu); /* as enum ibv_mtu */

/* Keeps the ways to peers true from now on; when control runs. 0 or a negative errno. */
int device_watch_neighbours(struct device *dev);

/*
 * How to reach ah from this device. -EINVAL: an address vector no RoCE port can use; -ENETUNREACH:
 * nobody has that GID.
 */
int device_resolve(const struct device *dev, const struct uroce_ah_attr *ah, uint32_t local_qpn,
		   uint32_t remote_qpn, struct net_path *path);

/* Runs cmd in the engine of one worker, or of all (the first error; events_sent is summed up). */
int device_command(struct device *dev, unsigned worker, const struct cmd *cmd,
		   struct cmd_reply *reply);
/* Runs n commands in each engine without a packet between them, up to the first that fails. */
int device_turn_all(struct device *dev, const struct cmd *cmd, unsigned n);
int device_command_all(struct device *dev, const struct cmd *cmd, struct cmd_reply *reply);
