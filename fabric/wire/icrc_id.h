/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ICRC covers the identification of an IPv4 packet. A UDP socket neither chooses that field nor
 * shows it, so here is how an ICRC changes with it, without a look at the packet: a CRC is linear.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What has to be xored to the ICRC of an IPv4 packet when `id_change` is xored to its
 * identification. covered: bytes from the IP header to the end of pad, at least a whole IP header.
 */
uint32_t icrc_of_id_change(uint16_t id_change, uint32_t covered);

/*
 * The other way: the one change of the identification that explains why an ICRC differs by this
 * much. false: none does, the packet was damaged. Damage passes for a change of identification one
 * time in 65,536.
 */
bool icrc_explain_by_id(uint32_t difference, uint32_t covered, uint16_t *id_change);
