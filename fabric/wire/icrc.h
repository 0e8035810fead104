/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariant CRC of RoCEv2 (IBA annex A17): CRC-32 over eight 0xff bytes, then the packet from the
 * IP header on with the fields that routers change (TOS, TTL, checksums, flow label, hop limit, BTH
 * resv8a) read as ones, up to the ICRC itself; carried least significant byte first.
 */
#pragma once

#include <stdint.h>

#include "fabric/wire/frame.h"

/* Least significant byte first. */
static inline void icrc_put(uint8_t *at, uint32_t icrc)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(icrc >> (8 * i));
}

static inline uint32_t icrc_get(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/*
 * The ICRC of a frame in either form whose IP header starts l3_off bytes into head. covered: bytes
 * from the IP header to the end of pad, the ICRC not included.
 */
uint32_t icrc_frame(const struct frame *f, uint32_t l3_off, uint32_t covered);

/* Computes the ICRC that an open frame still lacks; any other frame stays as it is. */
void icrc_seal(struct frame *f);
