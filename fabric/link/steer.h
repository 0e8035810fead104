/* SPDX-License-Identifier: BSD-3-Clause */
/* Which worker a frame is for: what the receive-side steering of a NIC reads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/frame.h"

/*
 * The destination QPN of a RoCEv2 frame, 0 for any other. false: the frame is shorter than the
 * headers it claims to have, so that nobody may look further. Judges nothing else.
 */
bool steer_qpn(const struct frame *f, uint32_t *qpn);
