/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Names a provider that libibverbs would not find by itself in RDMAV_DRIVERS, before all others. */
void driver_name(void);
