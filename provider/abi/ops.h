/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' struct verbs_context_ops is a row of function pointers in this order, without
 * padding. Each release may add some in the middle; none was ever removed or moved. Ops older than
 * release 34 count as 34, the oldest release served.
 */
#pragma once

#include <stddef.h>

/* clang-format off */
#define UROCE_VERBS_OPS(OP) \
	OP(advise_mr, 34) \
	OP(alloc_buf, 64) \
	OP(alloc_dm, 34) \
	OP(alloc_dmah, 59) \
	OP(alloc_mw, 34) \
	OP(alloc_null_mr, 34) \
	OP(alloc_parent_domain, 34) \
	OP(alloc_pd, 34) \
	OP(alloc_td, 34) \
	OP(async_event, 34) \
	OP(attach_counters_point_flow, 34) \
	OP(attach_mcast, 34) \
	OP(bind_mw, 34) \
	OP(close_xrcd, 34) \
	OP(cq_event, 34) \
	OP(create_ah, 34) \
	OP(create_comp_cntr, 65) \
	OP(create_counters, 34) \
	OP(create_cq, 34) \
	OP(create_cq_ex, 34) \
	OP(create_flow, 34) \
	OP(create_flow_action_esp, 34) \
	OP(create_qp, 34) \
	OP(create_qp_ex, 34) \
	OP(create_rwq_ind_table, 34) \
	OP(create_srq, 34) \
	OP(create_srq_ex, 34) \
	OP(create_wq, 34) \
	OP(dealloc_dmah, 59) \
	OP(dealloc_mw, 34) \
	OP(dealloc_pd, 34) \
	OP(dealloc_td, 34) \
	OP(dereg_mr, 34) \
	OP(destroy_ah, 34) \
	OP(destroy_comp_cntr, 65) \
	OP(destroy_counters, 34) \
	OP(destroy_cq, 34) \
	OP(destroy_flow, 34) \
	OP(destroy_flow_action, 34) \
	OP(destroy_qp, 34) \
	OP(destroy_rwq_ind_table, 34) \
	OP(destroy_srq, 34) \
	OP(destroy_wq, 34) \
	OP(detach_mcast, 34) \
	OP(dm_export_dmabuf_fd, 62) \
	OP(free_buf, 64) \
	OP(free_context, 34) \
	OP(free_dm, 34) \
	OP(get_srq_num, 34) \
	OP(import_dm, 35) \
	OP(import_mr, 34) \
	OP(import_pd, 34) \
	OP(inc_comp_cntr, 65) \
	OP(inc_err_comp_cntr, 65) \
	OP(modify_cq, 34) \
	OP(modify_flow_action_esp, 34) \
	OP(modify_qp, 34) \
	OP(modify_qp_rate_limit, 34) \
	OP(modify_srq, 34) \
	OP(modify_wq, 34) \
	OP(open_qp, 34) \
	OP(open_xrcd, 34) \
	OP(poll_cq, 34) \
	OP(post_recv, 34) \
	OP(post_send, 34) \
	OP(post_srq_ops, 34) \
	OP(post_srq_recv, 34) \
	OP(qp_attach_comp_cntr, 65) \
	OP(query_comp_cntr_caps, 65) \
	OP(query_device_ex, 34) \
	OP(query_ece, 34) \
	OP(query_port, 34) \
	OP(query_port_speed, 62) \
	OP(query_qp, 34) \
	OP(query_qp_data_in_order, 36) \
	OP(query_rt_values, 34) \
	OP(query_srq, 34) \
	OP(read_comp_cntr, 65) \
	OP(read_counters, 34) \
	OP(read_err_comp_cntr, 65) \
	OP(reg_dm_mr, 34) \
	OP(reg_dmabuf_mr, 34) \
	OP(reg_mr, 34) \
	OP(reg_mr_ex, 59) \
	OP(req_notify_cq, 34) \
	OP(rereg_mr, 34) \
	OP(resize_cq, 34) \
	OP(set_comp_cntr, 65) \
	OP(set_ece, 34) \
	OP(set_err_comp_cntr, 65) \
	OP(unimport_dm, 35) \
	OP(unimport_mr, 34) \
	OP(unimport_pd, 34)
/* clang-format on */

#define UROCE_VERBS_OP_ENUM(name, since) VERBS_OP_##name,
enum verbs_op { UROCE_VERBS_OPS(UROCE_VERBS_OP_ENUM) VERBS_N_OPS };

typedef void (*verbs_fn)(void);

/* An op that the provider implements. */
struct verbs_impl {
	enum verbs_op op;
	verbs_fn fn;
};

const char *uroce_verbs_op_name(enum verbs_op op);

/* Where `op` stands in that release's struct verbs_context_ops, or -1 when it has no such op. */
int uroce_verbs_op_index(enum verbs_op op, unsigned release);
unsigned uroce_verbs_op_count(unsigned release);

/* Lay out a release's ops in `slots` (VERBS_N_OPS entries); what is not in `impl` stays NULL. */
void uroce_verbs_ops_fill(verbs_fn slots[VERBS_N_OPS], unsigned release,
			  const struct verbs_impl *impl, size_t n);
