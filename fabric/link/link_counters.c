/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_counters.h"

const char *const link_drop_name[LINK_N_DROPS] = {
	[LINK_DROP_RUNT] = "runt",
	[LINK_DROP_TOO_LONG] = "too-long",
	[LINK_DROP_UNKNOWN_MAC] = "unknown-mac",
	[LINK_DROP_WRONG_MAC] = "wrong-mac",
	[LINK_DROP_NO_BUFFER] = "no-buffer",
	[LINK_DROP_RING_FULL] = "ring-full",
	[LINK_DROP_NO_ROUTE] = "no-route",
	[LINK_DROP_SEND_FAILED] = "send-failed",
	[LINK_DROP_NO_NEIGHBOUR] = "no-neighbour",
	[LINK_DROP_OVERRUN] = "overrun",
	[LINK_DROP_REFLECTED] = "reflected",
};
