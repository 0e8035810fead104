/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's one clock: nanoseconds of CLOCK_MONOTONIC (the vDSO reads it in about 25 ns). */
#pragma once

#include <stdint.h>

uint64_t clock_now(void);
