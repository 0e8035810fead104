/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device says of itself, and the addresses it knows. */
#include <errno.h>
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "fabric/addr/ah.h"

/* The numbers of libibverbs' enums. */
#define DEVICE_PORT_ACTIVE_EVENT (1u << 10)
#define DEVICE_SYS_IMAGE_GUID    (1u << 11)
#define DEVICE_RC_RNR_NAK_GEN    (1u << 12)
#define DEVICE_SRQ_RESIZE        (1u << 13)
#define ATOMIC_HCA               1u
#define PORT_ACTIVE              4u
#define MTU_4096                 5u
#define PORT_IP_BASED_GIDS       (1u << 26)
#define WIDTH_4X                 2u
#define SPEED_EDR                32u
#define PHYS_LINK_UP             5u
#define LINK_LAYER_ETHERNET      2u

#define VENDOR_ID   0x025552u /* the first half of our MACs */

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
	a->device_cap_flags = DEVICE_PORT_ACTIVE_EVENT | DEVICE_SYS_IMAGE_GUID | DEVICE_RC_RNR_NAK_GEN |
			      DEVICE_SRQ_RESIZE;
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
	a->max_mcast_grp = DEVICE_MAX_MCAST_GROUP;
	a->max_mcast_qp_attach = DEVICE_MAX_MCAST_MEMBER;
	a->max_ah = dev->ahs.n;
	a->max_srq = dev->srqns.n;
	a->max_srq_wr = UROCE_MAX_QP_WR;
	a->max_srq_sge = UROCE_MAX_SGE;
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
	a->gid_tbl_len = GID_TABLE_LEN;
	a->pkey_tbl_len = 1;
	a->max_msg_sz = UROCE_MAX_MSG;
	a->port_cap_flags = PORT_IP_BASED_GIDS;
	a->active_width = WIDTH_4X;
	a->active_speed = SPEED_EDR;
	a->phys_state = PHYS_LINK_UP;
	a->link_layer = LINK_LAYER_ETHERNET;
}

/* The embedded switch knows all its devices, so nobody has to ask for a MAC. */
static bool find_mac(void *ctx, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	const struct daemon *d = ctx;

	for (unsigned i = 0; i < d->n_devices; i++) {
		if (gid_table_find(&d->device[i]->gids, gid) < 0)
			continue;
		memcpy(mac, d->device[i]->mac, 6);
		return true;
	}
	return false;
}

int device_resolve(const struct device *dev, const struct uroce_ah_attr *ah, uint32_t local_qpn,
		   uint32_t remote_qpn, struct net_path *path)
{
	struct ah_attr attr = { .flow_label = ah->flow_label, .sgid_index = ah->sgid_index,
				.tclass = ah->traffic_class, .hop_limit = ah->hop_limit };
	uint8_t mac[6];
	int err;

	/* RoCE has no addresses but GIDs. */
	if (!ah->is_global || ah->port_num != 1)
		return -EINVAL;
	memcpy(attr.dgid, ah->dgid, sizeof(attr.dgid));
	err = ah_resolve(path, &attr, &dev->gids, find_mac, dev->daemon);
	if (err)
		return err == -EHOSTUNREACH ? -ENETUNREACH : err;
	/* A link-local GID tells its MAC, but nobody here may have it. */
	if (!gid_is_multicast(ah->dgid) && !find_mac(dev->daemon, ah->dgid, mac))
		return -ENETUNREACH;
	path->udp_sport = roce_udp_sport(path->flow_label, local_qpn, remote_qpn);
	return 0;
}
