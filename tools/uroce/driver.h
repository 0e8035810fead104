/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Names a provider that libibverbs would not find by itself in RDMAV_DRIVERS, before all others. To
 * be called before a view is entered: from another mount namespace than the one it was started in,
 * a process in a chroot cannot tell where its own executable lies.
 */
void driver_name(void);
