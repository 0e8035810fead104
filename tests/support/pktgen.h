/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets by hand: a raw peer. Well-formed ones from a struct packet, hostile ones from a seed.
 * A hostile packet has right headers and ICRC (so that it reaches the transport) and wrong
 * contents.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/packet.h"

struct pktgen {
	struct net_template tmpl;
	struct frame split, flat;
	uint8_t mem[FRAME_HEADROOM + FRAME_PAYLOAD + 64] __attribute__((aligned(64)));
	uint8_t wire[FRAME_HEADROOM + FRAME_PAYLOAD + 64];
};

void pktgen_init(struct pktgen *g, const struct net_path *path);

/*
 * A flat frame with pk's headers and pk->payload_len bytes (payload, or a pattern when NULL).
 * Valid until the next call.
 */
const struct frame *pktgen_frame(struct pktgen *g, const struct packet *pk, const void *payload);

/* What a hostile packet is made around: values a real one would have now. */
struct pktgen_aim {
	uint32_t dest_qpn, psn, rkey, mtu;
	uint8_t service; /* enum bth_service */
	uint64_t va;
};

/* A random packet near the aim: any opcode, PSN, length, key and flags. */
const struct frame *pktgen_hostile(struct pktgen *g, uint64_t *rng, const struct pktgen_aim *aim);
