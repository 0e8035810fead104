/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/netdev.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool address_of(const struct sockaddr *sa, uint8_t gid[GID_LEN])
{
	if (!sa)
		return false;
	if (sa->sa_family == AF_INET) {
		gid_from_ipv4(gid, (const uint8_t *)&((const struct sockaddr_in *)sa)->sin_addr);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)sa)->sin6_addr, GID_LEN);
		return true;
	}
	return false;
}

/* IPv4, then IPv6, link-local ones last: the order of the GID table behind its first entry. */
static unsigned rank(const uint8_t gid[GID_LEN])
{
	return gid_is_ipv4(gid) ? 0 : gid_is_link_local(gid) ? 2 : 1;
}

/*
 * Nobody may use an IPv6 address before the kernel knows that it is the only one (RFC 4862). The
 * line of an address: its 32 digits, interface, prefix length, scope, flags, name.
 */
#define IF_INET6  "/proc/net/if_inet6"
#define TENTATIVE 0x40u /* IFA_F_TENTATIVE */

static bool is_tentative(const uint8_t gid[GID_LEN], const char *name)
{
	char hex[2 * GID_LEN + 1], line[128];
	FILE *f = gid_is_ipv4(gid) ? NULL : fopen(IF_INET6, "re");
	bool yes = false;

	if (!f)
		return false;
	for (unsigned i = 0; i < GID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", gid[i]);
	while (fgets(line, sizeof(line), f)) {
		char addr[33], dev[IF_NAMESIZE];
		unsigned index, prefix, scope, flags;

		if (sscanf(line, "%32s %x %x %x %x %15s", addr, &index, &prefix, &scope, &flags,
			   dev) == 6 &&
		    !strcmp(addr, hex) && !strcmp(dev, name))
			yes = flags & TENTATIVE;
	}
	fclose(f);
	return yes;
}

static void add_addresses(struct netdev *n, const struct ifaddrs *list)
{
	for (unsigned r = 0; r < 3; r++) {
		for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
			uint8_t gid[GID_LEN];

			if (n->n_addrs == NETDEV_MAX_ADDRS)
				return;
			if (!strcmp(i->ifa_name, n->name) && address_of(i->ifa_addr, gid) &&
			    rank(gid) == r && !is_tentative(gid, n->name))
				memcpy(n->addr[n->n_addrs++], gid, GID_LEN);
		}
	}
}

/* IFF_RUNNING may lag behind, so the carrier itself is asked for; not every driver tells it. */
static bool has_carrier(int fd, const struct ifreq *named)
{
	struct ethtool_value v = { .cmd = ETHTOOL_GLINK };
	struct ifreq r = *named;

	r.ifr_data = (char *)&v;
	return ioctl(fd, SIOCETHTOOL, &r) == 0 ? v.data != 0 : named->ifr_flags & IFF_RUNNING;
}

static int read_link(struct netdev *n)
{
	struct ifreq r = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	memcpy(r.ifr_name, n->name, IF_NAMESIZE);
	if (ioctl(fd, SIOCGIFFLAGS, &r) == 0)
		n->is_up = (r.ifr_flags & IFF_UP) && has_carrier(fd, &r);
	else
		err = -errno;
	if (!err && ioctl(fd, SIOCGIFMTU, &r) == 0)
		n->mtu = (uint32_t)r.ifr_mtu;
	if (!err && ioctl(fd, SIOCGIFHWADDR, &r) == 0)
		memcpy(n->mac, r.ifr_hwaddr.sa_data, sizeof(n->mac));
	close(fd);
	return err;
}

static int read_named(struct netdev *n, const char *name, const struct ifaddrs *list)
{
	memset(n, 0, sizeof(*n));
	if (strlen(name) >= sizeof(n->name))
		return -ENODEV;
	strcpy(n->name, name);
	n->index = if_nametoindex(name);
	if (!n->index)
		return errno ? -errno : -ENODEV;
	add_addresses(n, list);
	return read_link(n);
}

int netdev_read(struct netdev *n, const char *name)
{
	struct ifaddrs *list;
	int err;

	if (getifaddrs(&list))
		return -errno;
	err = read_named(n, name, list);
	freeifaddrs(list);
	return err;
}

/* Is the address in the subnet of this one? All of 127/8 is local to lo. */
static bool is_in_subnet(const struct ifaddrs *i, const uint8_t gid[GID_LEN])
{
	const struct sockaddr_in *addr = (const struct sockaddr_in *)i->ifa_addr;
	const struct sockaddr_in *mask = (const struct sockaddr_in *)i->ifa_netmask;
	uint32_t ip;

	if (!addr || !mask || addr->sin_family != AF_INET || !gid_is_ipv4(gid) ||
	    !(i->ifa_flags & IFF_LOOPBACK))
		return false;
	memcpy(&ip, gid + 12, sizeof(ip));
	return !((ip ^ addr->sin_addr.s_addr) & mask->sin_addr.s_addr);
}

static const char *owner_of(const struct ifaddrs *list, const uint8_t gid[GID_LEN])
{
	uint8_t own[GID_LEN];

	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (address_of(i->ifa_addr, own) && !memcmp(own, gid, GID_LEN))
			return i->ifa_name;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (is_in_subnet(i, gid))
			return i->ifa_name;
	return NULL;
}

int netdev_read_addr(struct netdev *n, const uint8_t gid[GID_LEN])
{
	struct ifaddrs *list;
	const char *name;
	int err;

	if (getifaddrs(&list))
		return -errno;
	name = owner_of(list, gid);
	err = name ? read_named(n, name, list) : -EADDRNOTAVAIL;
	if (!err) {
		memcpy(n->addr[0], gid, GID_LEN);
		n->n_addrs = 1;
	}
	freeifaddrs(list);
	return err;
}

static bool has_addr(const struct netdev *n, const uint8_t gid[GID_LEN])
{
	for (unsigned i = 0; i < n->n_addrs; i++)
		if (!memcmp(n->addr[i], gid, GID_LEN))
			return true;
	return false;
}

void netdev_compare(struct netdev_diff *diff, const struct netdev *before, const struct netdev *now)
{
	diff->n_gone = diff->n_new = 0;
	for (unsigned i = 0; i < before->n_addrs; i++)
		if (before->index != now->index || !has_addr(now, before->addr[i]))
			memcpy(diff->gone[diff->n_gone++], before->addr[i], GID_LEN);
	for (unsigned i = 0; i < now->n_addrs; i++)
		if (before->index != now->index || !has_addr(before, now->addr[i]))
			memcpy(diff->added[diff->n_new++], now->addr[i], GID_LEN);
}

void netdev_drop_addr(struct netdev *n, const uint8_t gid[GID_LEN])
{
	for (unsigned i = 0; i < n->n_addrs; i++) {
		if (memcmp(n->addr[i], gid, GID_LEN))
			continue;
		n->n_addrs--;
		memmove(n->addr[i], n->addr[i + 1], (n->n_addrs - i) * sizeof(n->addr[0]));
		return;
	}
}
