/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/config_device.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/addr/gid.h"

#define MTU_MIN  576u /* every IPv4 path has it: path MTU 256 fits */
#define MTU_MAX  65535u
#define VLAN_MAX 4094u

const char *const device_link_name[N_DEVICE_LINKS] = {
	[LINK_SWITCH] = "switch",
	[LINK_UDP] = "udp",
	[LINK_PACKET] = "packet",
	[LINK_DPDK] = "dpdk",
};

int config_fail(struct config_error *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Names stand in paths and in shells. */
static bool is_name(const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char others[] = "0123456789_-";

	if (!*s || !strchr(letters, *s))
		return false;
	for (; *s; s++)
		if (!strchr(letters, *s) && !strchr(others, *s))
			return false;
	return true;
}

/* One of the links from the first on. */
static int set_link(enum device_link *link, enum device_link first, const char *value,
		    struct config_error *e)
{
	for (unsigned i = first; i < N_DEVICE_LINKS; i++) {
		if (strcmp(value, device_link_name[i]))
			continue;
		*link = (enum device_link)i;
		return 0;
	}
	return config_fail(e, "%slink '%s' is not %sudp, packet or dpdk", first ? "up" : "", value,
			   first ? "" : "switch, ");
}

static int set_mtu(struct config_device *c, const char *value, struct config_error *e)
{
	char *end;
	unsigned long v = strtoul(value, &end, 10);

	if (*end || end == value || *value == '-' || v < MTU_MIN || v > MTU_MAX)
		return config_fail(e, "mtu '%s' is not a number from %u to %u", value, MTU_MIN,
				   MTU_MAX);
	c->mtu = (uint32_t)v;
	return 0;
}

static int set_congestion(struct config_device *c, const char *value, struct config_error *e)
{
	c->congestion = !strcmp(value, "dcqcn");
	if (!c->congestion && strcmp(value, "off"))
		return config_fail(e, "congestion '%s' is not off or dcqcn", value);
	return 0;
}

static int set_vlan(struct config_device *c, const char *value, struct config_error *e)
{
	char *end;
	unsigned long v = strtoul(value, &end, 10);

	if (*end || end == value || *value == '-' || v < 1 || v > VLAN_MAX)
		return config_fail(e, "vlan '%s' is not a number from 1 to %u", value, VLAN_MAX);
	c->vlan = (uint16_t)v;
	return 0;
}

static int set_text(char *to, size_t size, const char *key, const char *value,
		    struct config_error *e)
{
	if (!*value || strlen(value) >= size)
		return config_fail(e, "%s '%s' is %s", key, value, *value ? "too long" : "empty");
	strcpy(to, value);
	return 0;
}

int config_device_set(struct config_device *c, const char *key, const char *value,
		      struct config_error *e)
{
	uint8_t gid[GID_LEN];

	if (!strcmp(key, "link"))
		return set_link(&c->link, LINK_SWITCH, value, e);
	if (!strcmp(key, "uplink"))
		return set_link(&c->uplink, LINK_UDP, value, e);
	if (!strcmp(key, "mtu"))
		return set_mtu(c, value, e);
	if (!strcmp(key, "congestion"))
		return set_congestion(c, value, e);
	if (!strcmp(key, "vlan"))
		return set_vlan(c, value, e);
	if (!strcmp(key, "interface"))
		return set_text(c->interface, sizeof(c->interface), key, value, e);
	if (!strcmp(key, "devargs"))
		return set_text(c->devargs, sizeof(c->devargs), key, value, e);
	if (!strcmp(key, "name")) {
		if (!is_name(value))
			return config_fail(e, "name '%s': letters, digits, _ and -, a letter first",
					   value);
		return set_text(c->name, sizeof(c->name), key, value, e);
	}
	if (!strcmp(key, "addr")) {
		if (gid_parse(value, gid) || gid_is_zero(gid) || gid_is_multicast(gid))
			return config_fail(e, "addr '%s' is no address of a host", value);
		return set_text(c->addr, sizeof(c->addr), key, value, e);
	}
	return config_fail(e,
			   "'%s' is none of name, link, uplink, addr, interface, mtu, vlan, "
			   "congestion, devargs",
			   key);
}

int config_device_parse(struct config_device *c, const char *text, struct config_error *e)
{
	char copy[1024], *rest = copy;
	int err = 0;

	if (strlen(text) >= sizeof(copy))
		return config_fail(e, "too long");
	strcpy(copy, text);
	memset(c, 0, sizeof(*c));
	while (!err && rest) {
		char *key = rest, *value = strchr(rest, '=');

		rest = value && !strncmp(key, "devargs=", 8) ? NULL : strchr(key, ',');
		if (rest)
			*rest++ = 0;
		if (!value || (rest && value > rest))
			return config_fail(e, "'%s' is not KEY=VALUE", key);
		*value++ = 0;
		err = config_device_set(c, key, value, e);
	}
	return err;
}

/* "net_af_packet0,iface=eth0": the interface is the kernel's as well. */
static void find_interface(struct config_device *c)
{
	const char *iface = strstr(c->devargs, ",iface=");
	size_t len = iface ? strcspn(iface + 7, ",") : 0;

	if (strncmp(c->devargs, "net_af_", 7) != 0 || *c->addr || *c->interface || !len ||
	    len >= sizeof(c->interface))
		return;
	memcpy(c->interface, iface + 7, len);
	c->interface[len] = 0;
}

static int check_dpdk(struct config_device *c, struct config_error *e)
{
	if (!*c->devargs)
		return config_fail(e, "%s: a dpdk link needs devargs", c->name);
	find_interface(c);
	if (*c->addr && *c->interface)
		return config_fail(e,
				   "%s: a dpdk link has either an addr of its own or those of an "
				   "interface",
				   c->name);
	if (c->vlan && *c->interface)
		return config_fail(e,
				   "%s: with an interface of the kernel there is no vlan; name "
				   "the kernel's interface of it",
				   c->name);
	return 0;
}

/* What a device that is on the switch would need an uplink for. */
static int check_switch(const struct config_device *c, struct config_error *e)
{
	const char *key = *c->addr ? "addr" : *c->interface ? "interface" : "devargs";

	if (!*c->addr && !*c->interface && !*c->devargs)
		return 0;
	return config_fail(e, "%s: a switch link without an uplink has no %s", c->name, key);
}

int config_device_check(struct config_device *c, unsigned index, struct config_error *e)
{
	const char *link;

	if (!*c->name)
		snprintf(c->name, sizeof(c->name), "uroce%u", index);
	if (c->uplink && c->link != LINK_SWITCH)
		return config_fail(e, "%s: a %s link has no uplink; the switch has", c->name,
				   device_link_name[c->link]);
	if (c->uplink) {
		c->link = c->uplink;
		c->uplink = LINK_SWITCH;
		c->is_switched = true;
	}
	link = device_link_name[c->link];
	if (*c->addr && c->link == LINK_PACKET)
		return config_fail(e, "%s: a %s link has no addr", c->name, link);
	if (*c->devargs && c->link != LINK_DPDK && c->link != LINK_SWITCH)
		return config_fail(e, "%s: a %s link has no devargs", c->name, link);
	if (c->vlan && c->link != LINK_DPDK)
		return config_fail(e,
				   "%s: a %s link has no vlan; name the kernel's interface of it",
				   c->name, link);
	switch (c->link) {
	case LINK_SWITCH:
		return check_switch(c, e);
	case LINK_UDP:
		if (!*c->addr == !*c->interface)
			return config_fail(e, "%s: a udp link needs either addr or interface",
					   c->name);
		return 0;
	case LINK_PACKET:
		return *c->interface ? 0
				     : config_fail(e, "%s: a packet link needs an interface",
						   c->name);
	case LINK_DPDK:
		return check_dpdk(c, e);
	case N_DEVICE_LINKS:
		break;
	}
	return -EINVAL;
}
