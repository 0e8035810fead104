/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kernel whose ib_core answers RDMA netlink hides every device that it does not own: libibverbs
 * asks it first and, given any answer, looks no further. So the program is told that there is no
 * such protocol, which is what a kernel without RDMA says.
 */
#pragma once

#include <stdbool.h>

/*
 * Installs the rule for this process and what it becomes. no_new_privs is set only if the kernel
 * asks for it. 0, or a negative errno.
 */
int netlink_rule_install(void);

/* Whether socket(AF_NETLINK, *, NETLINK_RDMA) is refused here already. Opens a socket to know. */
bool netlink_is_refused(void);
