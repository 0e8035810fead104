/* SPDX-License-Identifier: BSD-3-Clause */
/* Which worker a frame is for: what the receive-side steering of a NIC reads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/frame.h"

struct bth;

/*
 * The BTH of a RoCEv2 frame, NULL for any other. is_short (may be NULL): the frame is shorter than
 * the headers it claims to have, so that nobody may look further. Judges nothing else.
 */
const struct bth *steer_bth(const struct frame *f, bool *is_short);

/* The destination QPN, 0 without one; false: the frame is too short for its headers. */
bool steer_qpn(const struct frame *f, uint32_t *qpn);
