/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user says of one device: "name=uroce0,link=udp,addr=192.0.2.1", or the same as JSON. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/abi/ctrl.h"

enum device_link { LINK_SWITCH, LINK_UDP, LINK_PACKET, LINK_DPDK, N_DEVICE_LINKS };
extern const char *const device_link_name[N_DEVICE_LINKS];

struct config_device {
	char name[UROCE_DEV_NAME_MAX];
	enum device_link link;
	enum device_link uplink; /* of the switch, for this device; LINK_SWITCH: none */
	bool is_switched;        /* its link is an uplink: see config_device_check */
	char addr[48]; /* udp: the only local address; dpdk: the device's; "": the interface's */
	char interface[IF_NAMESIZE]; /* udp, packet, dpdk: the kernel's interface */
	char devargs[256];           /* dpdk: what rte_dev_probe gets */
	uint32_t mtu;                /* of IP packets; 0: the interface's */
	bool congestion;             /* DCQCN */
	uint16_t vlan;               /* dpdk: id of the tag on its frames; 0: none */
};

/* A sentence about what is wrong. */
struct config_error {
	char text[256];
};
__attribute__((format(printf, 2, 3))) int config_fail(struct config_error *e, const char *fmt, ...);

/* One word of the description. 0, or -EINVAL with a sentence. */
int config_device_set(struct config_device *c, const char *key, const char *value,
		      struct config_error *e);

/* All of it: KEY=VALUE,... where devargs, if there, is last and takes the rest of the line. */
int config_device_parse(struct config_device *c, const char *text, struct config_error *e);

/*
 * Has the link what it needs, and nothing it does not know? Gives it the name uroceINDEX if none. A
 * device on the switch with an uplink becomes one of that link that is switched.
 */
int config_device_check(struct config_device *c, unsigned index, struct config_error *e);
