/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <string.h>

#define PORT_NUM            1 /* a device has one port */
#define ODP_UD              (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)
#define ODP_UC              (ODP_UD | IBV_ODP_SUPPORT_WRITE)
#define ODP_RC              (ODP_UC | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC)
#define DEVICE_ATOMIC_WRITE (1ull << 40) /* a bit of the kernel's, without a name in verbs.h yet \
					  */
#define DEVICE_FLUSH_GLOBAL (1ull << 38) /* so is this */
#define CLOCK_KHZ 1000000                /* timestamps are in nanoseconds */

int uroce_device_attr_read(struct uroce_context *ctx)
{
	return uroce_context_call(ctx, UROCE_OP_QUERY_DEVICE, NULL, 0, &ctx->attr,
				  sizeof(ctx->attr));
}

static void fill_device_attr(struct ibv_device_attr *a, const struct uroce_device_attr *d)
{
	memcpy(a->fw_ver, d->fw_ver, sizeof(a->fw_ver));
	a->fw_ver[sizeof(a->fw_ver) - 1] = 0;
	a->node_guid = d->node_guid;
	a->sys_image_guid = d->sys_image_guid;
	a->max_mr_size = d->max_mr_size;
	a->page_size_cap = d->page_size_cap;
	a->vendor_id = d->vendor_id;
	a->vendor_part_id = d->vendor_part_id;
	a->hw_ver = d->hw_ver;
	a->max_qp = (int)d->max_qp;
	a->max_qp_wr = (int)d->max_qp_wr;
	a->device_cap_flags = d->device_cap_flags;
	a->max_sge = (int)d->max_sge;
	a->max_sge_rd = (int)d->max_sge_rd;
	a->max_cq = (int)d->max_cq;
	a->max_cqe = (int)d->max_cqe;
	a->max_mr = (int)d->max_mr;
	a->max_pd = (int)d->max_pd;
	a->max_qp_rd_atom = (int)d->max_qp_rd_atom;
	a->max_res_rd_atom = (int)d->max_res_rd_atom;
	a->max_qp_init_rd_atom = (int)d->max_qp_init_rd_atom;
	a->atomic_cap = (enum ibv_atomic_cap)d->atomic_cap;
	a->max_mw = (int)d->max_mw;
	a->max_mcast_grp = (int)d->max_mcast_grp;
	a->max_mcast_qp_attach = (int)d->max_mcast_qp_attach;
	a->max_total_mcast_qp_attach = (int)(d->max_mcast_grp * d->max_mcast_qp_attach);
	a->max_ah = (int)d->max_ah;
	a->max_srq = (int)d->max_srq;
	a->max_srq_wr = (int)d->max_srq_wr;
	a->max_srq_sge = (int)d->max_srq_sge;
	a->max_pkeys = (uint16_t)d->max_pkeys;
	a->local_ca_ack_delay = (uint8_t)d->local_ca_ack_delay;
	a->phys_port_cnt = (uint8_t)d->phys_port_cnt;
}

/* size is the caller's: of an older or a newer struct than ours, down to the plain device_attr. */
int uroce_query_device_ex(struct ibv_context *ibctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t size)
{
	struct uroce_context *ctx = to_context(ibctx);
	struct ibv_device_attr_ex full = { 0 };

	if ((input && input->comp_mask) || size < sizeof(full.orig_attr))
		return EINVAL;
	if (uroce_context_is_dead(ctx))
		return EIO;
	fill_device_attr(&full.orig_attr, &ctx->attr);
	full.device_cap_flags_ex = ctx->attr.device_cap_flags | DEVICE_ATOMIC_WRITE |
				   DEVICE_FLUSH_GLOBAL;
	full.odp_caps = (struct ibv_odp_caps) {
		.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
		.per_transport_caps = { ODP_RC, ODP_UC, ODP_UD },
	};
	if (ctx->attr.device_cap_flags & IBV_DEVICE_XRC)
		full.xrc_odp_caps = ODP_RC;
	full.max_dm_size = UROCE_MAX_DM;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = CLOCK_KHZ;
	full.phys_port_cnt_ex = ctx->attr.phys_port_cnt;
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int uroce_query_port(struct ibv_context *ibctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct uroce_port_attr p;
	int err;

	if (port != PORT_NUM)
		return EINVAL;
	err = uroce_context_call(to_context(ibctx), UROCE_OP_QUERY_PORT, NULL, 0, &p, sizeof(p));
	if (err)
		return err;
	memset(attr, 0, uroce_library.layout->port_attr_size);
	attr->state = (enum ibv_port_state)p.state;
	attr->max_mtu = (enum ibv_mtu)p.max_mtu;
	attr->active_mtu = (enum ibv_mtu)p.active_mtu;
	attr->gid_tbl_len = (int)p.gid_tbl_len;
	attr->port_cap_flags = p.port_cap_flags;
	attr->max_msg_sz = p.max_msg_sz;
	attr->bad_pkey_cntr = p.bad_pkey_cntr;
	attr->qkey_viol_cntr = p.qkey_viol_cntr;
	attr->pkey_tbl_len = (uint16_t)p.pkey_tbl_len;
	attr->max_vl_num = 1;
	attr->active_width = (uint8_t)p.active_width;
	attr->active_speed = (uint8_t)p.active_speed;
	attr->phys_state = (uint8_t)p.phys_state;
	attr->link_layer = (uint8_t)p.link_layer;
	attr->flags = IBV_QPF_GRH_REQUIRED; /* RoCE addresses by GID */
	if (uroce_library.layout->port_attr_size > VERBS_PORT_ATTR_SPEED_EX)
		memcpy((uint8_t *)attr + VERBS_PORT_ATTR_SPEED_EX, &p.active_speed,
		       sizeof(p.active_speed));
	return 0;
}
