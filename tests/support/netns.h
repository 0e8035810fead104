/* SPDX-License-Identifier: BSD-3-Clause */
/* A network namespace of the test's own, so that no address and no port is anybody else's. */
#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sets an interface of the namespace up, with this MTU if not 0. */
static inline bool netns_up(const char *name, int mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };
	bool ok;

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	ok = ioctl(fd, SIOCGIFFLAGS, &r) == 0;
	r.ifr_flags |= IFF_UP;
	ok = ok && ioctl(fd, SIOCSIFFLAGS, &r) == 0;
	r.ifr_mtu = mtu;
	ok = ok && (!mtu || ioctl(fd, SIOCSIFMTU, &r) == 0);
	close(fd);
	return ok;
}

/* A user namespace of our own, in which we are root: else a program we start has no capability. */
static inline bool netns_enter_as_user(void)
{
	uid_t uid = geteuid();
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "0 %u 1", uid) < 0)
		return false;
	return close(fd) == 0;
}

/* Before the first thread. false: not allowed here, not even through a user namespace. */
static inline bool netns_enter(void)
{
	if (unshare(CLONE_NEWNET) != 0 && !netns_enter_as_user())
		return false;
	return netns_up("lo", 0);
}
