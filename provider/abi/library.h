/* SPDX-License-Identifier: BSD-3-Clause */
/* Which libibverbs this process has loaded, and whether it is what we think it is. */
#pragma once

#include "provider/abi/layout.h"
#include "provider/abi/ops.h"

struct verbs_library {
	unsigned release;
	const struct verbs_layout *layout; /* NULL: refused */
	char why[256];                     /* the reason, when refused */
};

/* libibverbs.so.1.<minor>.<release>.<patch> -> release; 0 when the name has another form. */
unsigned uroce_verbs_release_of(const char *file_name);

/* Identify the loaded library and check it; fills `why` and returns false when it is to be refused.
 */
bool uroce_verbs_library_find(struct verbs_library *lib);

/*
 * Hand the library sentinel pointers through verbs_set_ops on a scratch context and look where they
 * land in the public structs. Guards against vendor builds whose table has another order.
 */
bool uroce_verbs_library_check(struct verbs_library *lib);
