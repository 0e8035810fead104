/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sockets, their filter, and what keeps the kernel quiet. Private to fabric/link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/addr/gid.h"

/* A super-frame's header, as struct virtio_net_hdr; little-endian is the CPU's order here. */
struct packet_vnet {
	uint8_t flags;
	uint8_t gso_type;
	uint16_t hdr_len;
	uint16_t gso_size; /* bytes after the UDP header in each but the last packet */
	uint16_t csum_start, csum_offset;
};

#define PACKET_VNET_NEEDS_CSUM 1u
#define PACKET_VNET_GSO_UDP_L4 5u

struct packet_filter {
	uint16_t vlan;              /* 0: frames without a tag */
	unsigned worker, n_workers; /* by the QP's number; groups go to all */
};

/*
 * A socket that gets RoCE packets of that interface as its filter says. Its descriptor or a
 * negative errno.
 */
int packet_socket_open(unsigned interface, const struct packet_filter *filter);

/* An interface of that name was removed and made anew: the same socket, on the new one. */
int packet_socket_move(int fd, unsigned interface);

/* Packets that found the socket's buffer full since this was asked last. */
uint32_t packet_socket_overruns(int fd);

/*
 * The kernel answers packets for a UDP port that nobody has with ICMP "port unreachable", and a
 * peer may believe it. So somebody has it: a socket that discards all it gets. Where the kernel can
 * pass super-frames on, it also makes the kernel coalesce packets to this port. One for each
 * address of the interface; all zero: none.
 */
#define PACKET_GUARDS 16u
struct packet_guards {
	unsigned n;
	struct {
		int fd;
		uint8_t addr[GID_LEN];
	} of[PACKET_GUARDS];
};

/* An address that goes away meanwhile needs none, one whose port is taken is guarded already. */
void packet_guards_add(struct packet_guards *g, const uint8_t addr[GID_LEN], unsigned interface);
void packet_guards_del(struct packet_guards *g, const uint8_t addr[GID_LEN]);
void packet_guards_close(struct packet_guards *g);
