/* SPDX-License-Identifier: BSD-3-Clause */
/* What a link port counts. Written by the port's worker, read by anyone. */
#pragma once

#include <stdint.h>

/* Why a link lost a frame. */
enum link_drop {
	LINK_DROP_RUNT,         /* too short for the headers it claims */
	LINK_DROP_TOO_LONG,     /* over the MTU of the port it goes to */
	LINK_DROP_UNKNOWN_MAC,  /* no port has the destination address */
	LINK_DROP_WRONG_MAC,    /* arrived, but for another address: a device that is gone */
	LINK_DROP_NO_BUFFER,    /* pool dry while copying a frame to several ports */
	LINK_DROP_RING_FULL,    /* the caller sent more than tx_room said */
	LINK_DROP_NO_ROUTE,     /* the kernel knows no way there, or refuses it */
	LINK_DROP_SEND_FAILED,  /* the kernel took it not, for another reason */
	LINK_DROP_NO_NEIGHBOUR, /* whoever has the destination's address did not say so */
	LINK_DROP_OVERRUN,      /* arrived, but nobody read it in time */
	LINK_DROP_REFLECTED,    /* what this daemon sent to a group came back from its uplink */
	LINK_N_DROPS
};

struct link_counters {
	uint64_t tx_packets, tx_bytes; /* taken over by tx, whatever became of them */
	uint64_t rx_packets, rx_bytes; /* handed out by rx */
	uint64_t drop[LINK_N_DROPS];
};

/* "runt", "unknown-mac", ... */
extern const char *const link_drop_name[LINK_N_DROPS];
