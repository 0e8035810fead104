/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of links: what each device has of its link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/daemon/daemon.h"
#include "fabric/link/link.h"

struct links_device {
	bool is_used;
	bool is_switched; /* its link is the uplink of a port of the switch */
	enum device_link kind;
	uint8_t mac[6];
	unsigned interface; /* the kernel's, its index; 0: none */
	struct link_udp *udp;
	struct link_packet *packet;
	struct link_dpdk *dpdk;
	struct neighbours *neighbours;
	struct link_port *inner[UROCE_MAX_WORKERS]; /* the link's */
	struct link_port *joint[UROCE_MAX_WORKERS]; /* the switch's, where the link is an uplink */
	struct link_port *outer[UROCE_MAX_WORKERS]; /* with faults */
	struct link_fault *fault;
};

struct links {
	struct daemon *d;
	struct link_switch *sw;
	struct frame_pool *pool; /* of links off the switch; made when the first needs it */
	struct links_device dev[CONFIG_MAX_DEVICES];
};

/* What the device sees of its link, but for faults. */
static inline struct link_port *const *links_port(const struct links_device *dev)
{
	return dev->is_switched ? dev->joint : dev->inner;
}
