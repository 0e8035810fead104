/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/ah.h"

#include <errno.h>
#include <string.h>

#define HOP_LIMIT_DEFAULT 64

/* RFC 1112 and RFC 2464: the low 23 or 32 bits of the group in the MAC. */
void ah_group_mac(const uint8_t dgid[GID_LEN], uint8_t dmac[6])
{
	if (gid_is_ipv4(dgid)) {
		memcpy(dmac, "\x01\x00\x5e", 3);
		memcpy(dmac + 3, dgid + 13, 3);
		dmac[3] &= 0x7f;
	} else {
		memcpy(dmac, "\x33\x33", 2);
		memcpy(dmac + 2, dgid + 12, 4);
	}
}

static bool find_mac(const uint8_t dgid[GID_LEN], uint8_t dmac[6], ah_neigh_lookup *lookup,
		     void *ctx)
{
	if (gid_is_multicast(dgid)) {
		ah_group_mac(dgid, dmac);
		return true;
	}
	return (lookup && lookup(ctx, dgid, dmac)) || gid_mac(dgid, dmac);
}

int ah_resolve(struct net_path *path, const struct ah_attr *attr, const struct gid_table *gids,
	       ah_neigh_lookup *lookup, void *ctx)
{
	const uint8_t *sgid = gid_table_get(gids, attr->sgid_index);

	if (!sgid || gid_is_zero(attr->dgid) || gid_is_ipv4(sgid) != gid_is_ipv4(attr->dgid))
		return -EINVAL;
	memset(path, 0, sizeof(*path));
	if (!find_mac(attr->dgid, path->dmac, lookup, ctx))
		return -EHOSTUNREACH;
	memcpy(path->smac, gids->mac, sizeof(path->smac));
	memcpy(path->sgid, sgid, GID_LEN);
	memcpy(path->dgid, attr->dgid, GID_LEN);
	path->is_ipv4 = gid_is_ipv4(sgid);
	path->vlan = NET_NO_VLAN;
	path->tclass = attr->tclass;
	path->hop_limit = attr->hop_limit < 2 ? HOP_LIMIT_DEFAULT : attr->hop_limit;
	if (!path->is_ipv4)
		path->flow_label = attr->flow_label & 0xfffffu;
	return 0;
}
