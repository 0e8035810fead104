/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/driver.h"

#include "tools/uroce/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void driver_name(void)
{
	const char *more = getenv("RDMAV_DRIVERS");
	char driver[PATH_MAX], list[2 * PATH_MAX];
	size_t n;

	if (!place_find_driver(driver))
		return;
	/* Once RDMAV_DRIVERS is set, libibverbs reads IBV_DRIVERS no more. */
	if (!more)
		more = getenv("IBV_DRIVERS");
	n = strlen(driver);
	if (more && !strncmp(more, driver, n) && (!more[n] || more[n] == ':'))
		return;
	snprintf(list, sizeof(list), "%s%s%s", driver, more ? ":" : "", more ? more : "");
	setenv("RDMAV_DRIVERS", list, 1);
}
