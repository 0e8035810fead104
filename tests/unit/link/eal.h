/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL for link tests: small, private, no privileges. As an unchecked fixture: once a
 * program. It is not taken down, see daemon/eal.c. */
#pragma once

#include <check.h>

#include <rte_eal.h>

static void eal_up(void)
{
	char *argv[] = { "test", "--no-huge", "-m", "96", "--no-pci", "--no-shconf",
			 "--no-telemetry", "--log-level=error", "-l", "0", NULL };

	ck_assert_int_ge(rte_eal_init(10, argv), 0);
}
