/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon reads what enemies write, perhaps as root: whoever takes it over shall not get to run
 * programs, make processes or load code into the kernel. What a link or a later feature may need
 * (sockets, files, memory) is left alone.
 */
#pragma once

#include <stdbool.h>

/*
 * Once, when all is set up: holds for every thread. 0 or a negative errno; -EOPNOTSUPP in
 * a build with sanitizers.
 */
int sandbox_enter(void);

/* Have we given up those calls? */
bool sandbox_is_entered(void);
