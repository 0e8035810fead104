/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/device_net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "dataplane/daemon/log.h"

/* All headers a packet may have, as Linux counts them: IPv6, UDP, BTH, XRCETH, AtomicETH, ICRC. */
#define HEADERS    96u
#define SWITCH_MTU (4096u + 108u)

uint32_t device_path_mtu(uint32_t ip_mtu)
{
	for (uint32_t mtu = 4096; mtu >= 256; mtu /= 2)
		if (ip_mtu >= mtu + HEADERS)
			return mtu;
	return 0;
}

/* 02: locally administered. */
static void mac_from_index(unsigned index, uint8_t mac[6])
{
	static const uint8_t prefix[4] = { 0x02, 0x55, 0x52, 0x4f }; /* "URO" */

	memcpy(mac, prefix, sizeof(prefix));
	mac[4] = (uint8_t)((index + 1) >> 8);
	mac[5] = (uint8_t)(index + 1);
}

/* Another one for each address: several devices, also of several daemons, may share an interface.
 */
static void mac_from_address(const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	mac[0] = 0x02;
	mac[1] = 0x55;
	memcpy(mac + 2, gid + 12, 4);
}

/* GID 0 is made of the MAC; then the addresses of the interface. */
static void fill_gids(struct device_net *n)
{
	uint8_t gid[GID_LEN];

	gid_table_init(&n->gids, n->mac);
	gid_from_mac(gid, n->mac);
	gid_table_add(&n->gids, gid);
	for (unsigned i = 0; i < n->dev.n_addrs; i++) {
		int at;

		gid_table_add(&n->gids, n->dev.addr[i]);
		at = gid_table_find(&n->gids, n->dev.addr[i]);
		if (at >= 0)
			n->kernel_gids |= 1u << at;
	}
}

static void make_switch(struct device_net *n, unsigned index)
{
	/* From the block for benchmarks (RFC 2544): collides with no network. */
	const uint8_t ipv4[4] = { 198, 18, 0, (uint8_t)(index + 1) };
	uint8_t gid[GID_LEN];

	mac_from_index(index, n->mac);
	fill_gids(n);
	gid_from_ipv4(gid, ipv4);
	gid_table_add(&n->gids, gid);
	n->ip_mtu = SWITCH_MTU;
	n->is_up = true;
}

static int read_interface(struct device_net *n, const struct config_device *c)
{
	uint8_t gid[GID_LEN];
	int err;

	if (*c->addr)
		err = gid_parse(c->addr, gid) ? -EINVAL : netdev_read_addr(&n->dev, gid);
	else
		err = netdev_read(&n->dev, c->interface);
	if (err) {
		log_error("device %s: %s: %s", c->name, *c->addr ? c->addr : c->interface,
			  strerror(-err));
		return err;
	}
	n->ip_mtu = n->dev.mtu;
	n->is_up = n->dev.is_up;
	return 0;
}

/* Of a link that uses an interface of the kernel. */
static int make_kernel(struct device_net *n, const struct config_device *c)
{
	static const uint8_t none[6];
	int err = read_interface(n, c);

	if (err)
		return err;
	if (!n->dev.n_addrs) {
		log_error("device %s: interface %s has no address", c->name, c->interface);
		return -EADDRNOTAVAIL;
	}
	memcpy(n->mac, n->dev.mac, sizeof(n->mac));
	if (c->link != LINK_UDP && !memcmp(n->mac, none, sizeof(none))) {
		log_error("device %s: interface %s is no Ethernet: it has no MAC address. A udp "
			  "link needs none",
			  c->name, c->interface);
		return -EOPNOTSUPP;
	}
	if (*c->addr || !memcmp(n->mac, none, sizeof(none)))
		mac_from_address(n->dev.addr[0], n->mac);
	fill_gids(n);
	return 0;
}

/* Where nobody else has the address: an Ethernet of our own, as large as a path MTU wants it. */
static int make_own(struct device_net *n, const struct config_device *c)
{
	uint8_t gid[GID_LEN];

	n->is_up = true;
	/* The tap driver takes nothing longer. */
	n->ip_mtu = strncmp(c->devargs, "net_tap", 7) != 0 ? SWITCH_MTU : 1500;
	if (!*c->addr) {
		if (getrandom(n->mac, sizeof(n->mac), 0) != sizeof(n->mac))
			return -EIO;
		n->mac[0] = 0x02;
		fill_gids(n);
		return 0;
	}
	if (gid_parse(c->addr, gid))
		return -EINVAL;
	mac_from_address(gid, n->mac);
	fill_gids(n);
	gid_table_add(&n->gids, gid);
	return 0;
}

/*
 * Packets get one buffer each (see ethdev.c). Zero-copy has the peer write into our packets while
 * we read them. Of an abstract socket the driver closes nothing when the device goes: who connects
 * to it then meets freed memory.
 */
static int add_memif_args(struct device_net *n, const struct config_device *c)
{
	const char *args = c->devargs;
	const char *more = strstr(args, ",bsize=") ? "" : ",bsize=4608";
	int len = snprintf(n->devargs, sizeof(n->devargs), "%s%s", args, more);

	if (strstr(args, ",zero-copy=yes")) {
		log_error("device %s: with zero-copy=yes the other end could change packets while "
			  "they are read; leave it out",
			  c->name);
		return -EOPNOTSUPP;
	}
	if (strstr(args, ",role=server") && !strstr(args, ",socket-abstract=no")) {
		log_error("device %s: DPDK does not close an abstract memif socket when its device "
			  "is removed; say socket-abstract=no at both ends",
			  c->name);
		return -EOPNOTSUPP;
	}
	return (size_t)len < sizeof(n->devargs) ? 0 : -ENAMETOOLONG;
}

static int add_devargs(struct device_net *n, const struct config_device *c)
{
	if (!strncmp(c->devargs, "net_memif", 9))
		return add_memif_args(n, c);
	strcpy(n->devargs, c->devargs);
	return 0;
}

static int make_dpdk(struct device_net *n, const struct config_device *c)
{
	int err = add_devargs(n, c);

	if (err)
		return err;
	n->vlan = c->vlan;
	if (!*c->interface)
		return make_own(n, c);
	/* The program in an AF_XDP interface gives us all packets, the kernel's ARP too. */
	n->asks_kernel = strncmp(c->devargs, "net_af_xdp", 10) != 0;
	return make_kernel(n, c);
}

static int take_mtu(struct device_net *n, uint32_t ip_mtu)
{
	n->ip_mtu = ip_mtu;
	n->path_mtu = device_path_mtu(ip_mtu);
	if (n->path_mtu)
		return 0;
	log_error("device %s: MTU %u is too small", n->name, ip_mtu);
	return -EMSGSIZE;
}

int device_net_make(struct device_net *n, const struct config_device *c, unsigned index)
{
	int err = 0;

	memset(n, 0, sizeof(*n));
	memcpy(n->name, c->name, sizeof(n->name));
	n->link = c->link;
	n->congestion = c->congestion;
	n->is_switched = c->is_switched;
	switch (c->link) {
	case LINK_SWITCH:
		make_switch(n, index);
		break;
	case LINK_UDP:
	case LINK_PACKET:
		n->asks_kernel = c->link == LINK_PACKET;
		err = make_kernel(n, c);
		break;
	case LINK_DPDK:
		err = make_dpdk(n, c);
		break;
	case N_DEVICE_LINKS:
		return -EINVAL;
	}
	if (err)
		return err;
	return take_mtu(n, c->mtu && c->mtu < n->ip_mtu ? c->mtu : n->ip_mtu);
}

int device_net_limit(struct device_net *n, uint32_t link_mtu)
{
	n->link_mtu = link_mtu;
	if (link_mtu >= n->ip_mtu)
		return 0;
	log_warning("device %s: its driver's buffers hold IP packets of at most %u bytes, where "
		    "the MTU is %u; larger ones may be an argument of the driver",
		    n->name, link_mtu, n->ip_mtu);
	return take_mtu(n, link_mtu);
}
