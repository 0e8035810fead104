/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/gid.h"

#include <errno.h>
#include <string.h>

static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t zero[GID_LEN];
static const uint8_t link_local[8] = { 0xfe, 0x80 };

/* RFC 4291 appendix A: ff:fe in the middle, the universal bit turned over. */
void gid_from_mac(uint8_t gid[GID_LEN], const uint8_t mac[6])
{
	memcpy(gid, link_local, sizeof(link_local));
	memcpy(gid + 8, mac, 3);
	gid[8] ^= 0x02;
	gid[11] = 0xff;
	gid[12] = 0xfe;
	memcpy(gid + 13, mac + 3, 3);
}

bool gid_mac(const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	if (memcmp(gid, link_local, sizeof(link_local)) != 0 || gid[11] != 0xff || gid[12] != 0xfe)
		return false;
	memcpy(mac, gid + 8, 3);
	mac[0] ^= 0x02;
	memcpy(mac + 3, gid + 13, 3);
	return true;
}

void gid_from_ipv4(uint8_t gid[GID_LEN], const uint8_t addr[4])
{
	memcpy(gid, v4_mapped, sizeof(v4_mapped));
	memcpy(gid + sizeof(v4_mapped), addr, 4);
}

bool gid_is_zero(const uint8_t gid[GID_LEN])
{
	return memcmp(gid, zero, GID_LEN) == 0;
}

bool gid_is_ipv4(const uint8_t gid[GID_LEN])
{
	return memcmp(gid, v4_mapped, sizeof(v4_mapped)) == 0;
}

bool gid_is_multicast(const uint8_t gid[GID_LEN])
{
	return gid_is_ipv4(gid) ? (gid[12] & 0xf0) == 0xe0 : gid[0] == 0xff;
}

bool gid_is_link_local(const uint8_t gid[GID_LEN])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

void gid_table_init(struct gid_table *t, const uint8_t mac[6])
{
	memset(t, 0, sizeof(*t));
	memcpy(t->mac, mac, 6);
}

int gid_table_add(struct gid_table *t, const uint8_t gid[GID_LEN])
{
	if (gid_is_zero(gid) || gid_is_multicast(gid))
		return -EINVAL;
	if (gid_table_find(t, gid) >= 0)
		return -EEXIST;
	for (uint32_t i = 0; i < GID_TABLE_LEN; i++) {
		if (gid_is_zero(t->gid[i])) {
			memcpy(t->gid[i], gid, GID_LEN);
			return (int)i;
		}
	}
	return -ENOSPC;
}

int gid_table_del(struct gid_table *t, uint32_t index)
{
	if (!gid_table_get(t, index))
		return -ENOENT;
	memset(t->gid[index], 0, GID_LEN);
	return 0;
}

int gid_table_find(const struct gid_table *t, const uint8_t gid[GID_LEN])
{
	for (uint32_t i = 0; i < GID_TABLE_LEN; i++) {
		if (!gid_is_zero(t->gid[i]) && memcmp(t->gid[i], gid, GID_LEN) == 0)
			return (int)i;
	}
	return -ENOENT;
}

const uint8_t *gid_table_get(const struct gid_table *t, uint32_t index)
{
	return index < GID_TABLE_LEN && !gid_is_zero(t->gid[index]) ? t->gid[index] : NULL;
}
