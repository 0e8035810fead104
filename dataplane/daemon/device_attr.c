/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device says of itself. */
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"

/* The numbers of libibverbs' enums. */
#define DEVICE_PORT_ACTIVE_EVENT (1u << 10)
#define DEVICE_SYS_IMAGE_GUID    (1u << 11)
#define DEVICE_RC_RNR_NAK_GEN    (1u << 12)
#define DEVICE_SRQ_RESIZE        (1u << 13)
#define DEVICE_MEM_WINDOW        (1u << 17)
#define DEVICE_XRC               (1u << 20)
#define DEVICE_MEM_MGT           (1u << 21) /* send with invalidate, local invalidate, bind */
#define DEVICE_MEM_WINDOW_2B     (1u << 24)
#define ATOMIC_HCA               1u
#define PORT_ACTIVE              4u
#define MTU_4096                 5u
#define PORT_DOWN                1u
#define PHYS_DISABLED            3u
#define PORT_IP_BASED_GIDS       (1u << 26)
#define WIDTH_4X                 2u
#define SPEED_EDR                32u
#define PHYS_LINK_UP             5u
#define LINK_LAYER_ETHERNET      2u

#define VENDOR_ID 0x025552u /* the first half of our MACs */

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
	a->device_cap_flags = DEVICE_PORT_ACTIVE_EVENT | DEVICE_SYS_IMAGE_GUID |
			      DEVICE_RC_RNR_NAK_GEN | DEVICE_SRQ_RESIZE | DEVICE_XRC |
			      DEVICE_MEM_WINDOW | DEVICE_MEM_MGT | DEVICE_MEM_WINDOW_2B;
	a->max_mw = dev->keys.n;
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

/* 256 is 1, 4096 is 5 (enum ibv_mtu). */
uint32_t device_mtu_enum(uint32_t path_mtu)
{
	return (uint32_t)__builtin_ctz(path_mtu) - 7;
}

void device_port_attr(const struct device *dev, struct uroce_port_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->state = device_is_up(dev) ? PORT_ACTIVE : PORT_DOWN;
	a->max_mtu = MTU_4096;
	a->active_mtu = device_mtu_enum(dev->net.path_mtu);
	a->gid_tbl_len = GID_TABLE_LEN;
	a->pkey_tbl_len = 1;
	a->max_msg_sz = UROCE_MAX_MSG;
	a->port_cap_flags = PORT_IP_BASED_GIDS;
	a->active_width = WIDTH_4X;
	a->active_speed = SPEED_EDR;
	a->phys_state = device_is_up(dev) ? PHYS_LINK_UP : PHYS_DISABLED;
	a->link_layer = LINK_LAYER_ETHERNET;
}
