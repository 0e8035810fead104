/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's telemetry socket, for dpdk-telemetry.py: RUNDIR/dpdk/uroced/dpdk_telemetry.v2. */
#pragma once

struct daemon;

/* /uroce/devices, /uroce/counters,DEVICE. The devices must exist, and stay until the end. */
void telemetry_register(const struct daemon *d);
