/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link moves frames: rx burst, tx burst, MTU, MAC. One port belongs to one worker thread at a
 * time. Frames given by alloc carry FRAME_HEADROOM bytes before buf and FRAME_PAYLOAD at buf.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/link/link_counters.h"
#include "fabric/wire/frame.h"

struct link_port;

struct link_ops {
	/* Empty frames for engine_tx; returns how many there were (fewer when the pool is dry). */
	unsigned (*alloc)(struct link_port *p, struct frame **f, unsigned n);
	void (*free)(struct link_port *p, struct frame *const *f, unsigned n);
	/* How many frames tx would take now: the room to pass to engine_tx. */
	unsigned (*tx_room)(struct link_port *p);
	/* Takes over all n frames (n at most what tx_room said). */
	void (*tx)(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n);
	/* Frames that arrived; the caller frees them with free. */
	unsigned (*rx)(struct link_port *p, uint64_t now, struct frame **f, unsigned n);
	/*
	 * When rx could next deliver something without outside help (delayed frames); UINT64_MAX:
	 * never.
	 */
	uint64_t (*deadline)(const struct link_port *p);
	/* A file descriptor that polls readable when rx has something; -1: this port needs none. */
	int (*wait_fd)(const struct link_port *p);
	/* What this port counted; any thread. */
	void (*counters)(const struct link_port *p, struct link_counters *out);
};

struct link_port {
	const struct link_ops *ops;
	uint8_t mac[6];
	uint16_t mtu; /* largest IP packet */
};
