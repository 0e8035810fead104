/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIDs of RoCEv2, which are IP addresses: sixteen bytes in network order, IPv4 as ::ffff:a.b.c.d.
 * And the table of a device's own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GID_LEN       16u
#define GID_TABLE_LEN 16u
#define GID_TEXT_LEN  40u /* with the terminating zero */

/* fe80::/64 with the EUI-64 of the MAC: GID 0 of a port. */
void gid_from_mac(uint8_t gid[GID_LEN], const uint8_t mac[6]);
void gid_from_ipv4(uint8_t gid[GID_LEN], const uint8_t addr[4]);

bool gid_is_zero(const uint8_t gid[GID_LEN]);
bool gid_is_ipv4(const uint8_t gid[GID_LEN]);
bool gid_is_multicast(const uint8_t gid[GID_LEN]); /* of either family */
bool gid_is_link_local(const uint8_t gid[GID_LEN]); /* fe80::/10 */

/* The MAC inside a link-local GID made by gid_from_mac; false: it is none. */
bool gid_mac(const uint8_t gid[GID_LEN], uint8_t mac[6]);

/* As sysfs shows it, "fe80:0000:0000:0000:0055:52ff:fe4f:0001"; returns buf. */
const char *gid_format(const uint8_t gid[GID_LEN], char buf[GID_TEXT_LEN]);

/*
 * Reads an IPv6 address (RFC 4291: with or without "::", IPv4 at its end allowed) or an IPv4 one.
 * 0 or -EINVAL; gid is written only on success.
 */
int gid_parse(const char *text, uint8_t gid[GID_LEN]);

/* A device's addresses. Entries keep their index; an empty one is all zero, as sysfs shows it. */
struct gid_table {
	uint8_t mac[6];
	uint8_t gid[GID_TABLE_LEN][GID_LEN];
};

void gid_table_init(struct gid_table *t, const uint8_t mac[6]);

/* The index it got, the first free one; -EINVAL (zero or multicast), -EEXIST, -ENOSPC. */
int gid_table_add(struct gid_table *t, const uint8_t gid[GID_LEN]);

/* 0; -ENOENT: no such entry. */
int gid_table_del(struct gid_table *t, uint32_t index);

/* The index, or -ENOENT. */
int gid_table_find(const struct gid_table *t, const uint8_t gid[GID_LEN]);

/* NULL: index beyond the table, or an empty entry. */
const uint8_t *gid_table_get(const struct gid_table *t, uint32_t index);
