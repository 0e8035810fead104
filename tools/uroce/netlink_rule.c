/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/netlink_rule.h"

#include <errno.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <unistd.h>

static int load(bool no_new_privs)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!ctx)
		return -ENOMEM;
	/* A 32-bit program on a 64-bit kernel is none of our business, not a reason to kill it. */
	err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
	if (!err)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, no_new_privs);
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
				       SCMP_A0_32(SCMP_CMP_EQ, AF_NETLINK),
				       SCMP_A2_32(SCMP_CMP_EQ, NETLINK_RDMA));
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}

int netlink_rule_install(void)
{
	/* no_new_privs would break sudo below us, so first without, which CAP_SYS_ADMIN allows. */
	int err = load(false);

	return err ? load(true) : 0;
}

bool netlink_is_refused(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}
