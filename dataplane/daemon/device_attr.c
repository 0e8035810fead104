/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device says of itself, and the addresses it knows. */
#include <errno.h>
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"

/* The numbers of libibverbs' enums. */
#define DEVICE_PORT_ACTIVE_EVENT (1u << 10)
#define DEVICE_SYS_IMAGE_GUID    (1u << 11)
#define DEVICE_RC_RNR_NAK_GEN    (1u << 12)
#define ATOMIC_HCA               1u
#define PORT_ACTIVE              4u
#define MTU_4096                 5u
#define PORT_IP_BASED_GIDS       (1u << 26)
#define WIDTH_4X                 2u
#define SPEED_EDR                32u
#define PHYS_LINK_UP             5u
#define LINK_LAYER_ETHERNET      2u

#define VENDOR_ID   0x025552u /* the first half of our MACs */
#define DEFAULT_HOP_LIMIT 64u

void device_attr(const struct device *dev, struct uroce_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	strncpy(a->fw_ver, UROCE_VERSION, sizeof(a->fw_ver) - 1);
	memcpy(&a->node_guid, dev->guid, 8);
	memcpy(&a->sys_image_guid, dev->guid, 8);
	a->max_mr_size = UINT64_MAX;
	a->page_size_cap = 0xfffff000;
	a->vendor_id = VENDOR_ID;
	a->vendor_part_id = 1;
	a->hw_ver = 1;
	a->max_qp = dev->qpns.n;
	a->max_qp_wr = UROCE_MAX_QP_WR;
	a->device_cap_flags = DEVICE_PORT_ACTIVE_EVENT | DEVICE_SYS_IMAGE_GUID | DEVICE_RC_RNR_NAK_GEN;
	a->max_sge = UROCE_MAX_SGE;
	a->max_sge_rd = UROCE_MAX_SGE;
	a->max_inline = UROCE_MAX_INLINE;
	a->max_cq = dev->cqns.n;
	a->max_cqe = UROCE_MAX_CQE;
	a->max_mr = dev->keys.n;
	a->max_pd = DEVICE_MAX_PD;
	a->max_qp_rd_atom = DEVICE_RD_ATOMIC;
	a->max_qp_init_rd_atom = DEVICE_RD_ATOMIC;
	a->max_res_rd_atom = DEVICE_RD_ATOMIC * dev->qpns.n;
	a->atomic_cap = ATOMIC_HCA;
	a->max_ah = DEVICE_MAX_AH;
	a->max_pkeys = 1;
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = 1;
}

void device_port_attr(const struct device *dev, struct uroce_port_attr *a)
{
	(void)dev;
	memset(a, 0, sizeof(*a));
	a->state = PORT_ACTIVE;
	a->max_mtu = a->active_mtu = MTU_4096;
	a->gid_tbl_len = DEVICE_GIDS;
	a->pkey_tbl_len = 1;
	a->max_msg_sz = UROCE_MAX_MSG;
	a->port_cap_flags = PORT_IP_BASED_GIDS;
	a->active_width = WIDTH_4X;
	a->active_speed = SPEED_EDR;
	a->phys_state = PHYS_LINK_UP;
	a->link_layer = LINK_LAYER_ETHERNET;
}

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

static const struct device *owner_of_gid(const struct daemon *d, const uint8_t gid[16])
{
	for (unsigned i = 0; i < d->n_devices; i++)
		for (unsigned g = 0; g < DEVICE_GIDS; g++)
			if (!memcmp(d->device[i]->gid[g], gid, 16))
				return d->device[i];
	return NULL;
}

int device_resolve(const struct device *dev, const struct uroce_ah_attr *ah, uint32_t local_qpn,
		   uint32_t remote_qpn, struct net_path *p)
{
	const struct device *peer;

	if (!ah->is_global || ah->port_num != 1 || ah->sgid_index >= DEVICE_GIDS ||
	    gid_is_empty(dev->gid[ah->sgid_index]) || gid_is_empty(ah->dgid))
		return -EINVAL;
	memset(p, 0, sizeof(*p));
	memcpy(p->sgid, dev->gid[ah->sgid_index], 16);
	memcpy(p->dgid, ah->dgid, 16);
	p->is_ipv4 = is_ipv4(p->sgid);
	peer = owner_of_gid(dev->daemon, ah->dgid);
	if (!peer || p->is_ipv4 != is_ipv4(ah->dgid))
		return -ENETUNREACH;
	memcpy(p->smac, dev->mac, 6);
	memcpy(p->dmac, peer->mac, 6);
	p->flow_label = ah->flow_label & 0xfffff;
	p->vlan = NET_NO_VLAN;
	p->tclass = ah->traffic_class;
	p->hop_limit = ah->hop_limit ? ah->hop_limit : DEFAULT_HOP_LIMIT;
	p->udp_sport = roce_udp_sport(p->flow_label, local_qpn, remote_qpn);
	return 0;
}
