/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/abi/layout.h"

#include <assert.h>

static_assert(sizeof(void *) == 8, "the private interface is declared for LP64");
static_assert(sizeof(struct verbs_match_ent) == 24, "");
static_assert(sizeof(struct verbs_device_ops) == 72, "");
static_assert(offsetof(struct verbs_device_ops, alloc_context) == 40, "");
static_assert(offsetof(struct verbs_sysfs_dev, ibdev_name) == 112, "");
static_assert(offsetof(struct verbs_sysfs_dev, modalias) == 432, "");
static_assert(offsetof(struct verbs_sysfs_dev, abi_ver) == 968, "");
static_assert(sizeof(struct verbs_sysfs_dev) == 992, "");
static_assert(offsetof(struct verbs_device, ops) == 664, "");
static_assert(offsetof(struct verbs_device, sysfs) == 696, "");
static_assert(sizeof(struct verbs_device) == 712, "");
static_assert(offsetof(struct verbs_mr, mr_type) == 48, "");
static_assert(sizeof(struct verbs_mr) == 56, "");
static_assert(sizeof(struct ibv_qp_ex) + 16 <= VERBS_QP_ROOM, "room for comp_mask and xrcd");
static_assert(sizeof(struct ibv_cq_ex) <= VERBS_CQ_ROOM, "");
static_assert(sizeof(struct verbs_context) <= VERBS_CONTEXT_ROOM, "");

/* clang-format off */
static const struct verbs_layout layout_table[] = {
	/* since pabi context comp_mask port_attr sysfs_dev num_ports */
	{ 34, 34, 648, 344, 52, 984, false },
	{ 35, 34, 648, 344, 52, 992, true },
	{ 44, 34, 648, 352, 52, 992, true },
	{ 45, 34, 648, 360, 52, 992, true },
	{ 49, 34, 648, 360, 56, 992, true },
	{ 57, 57, 648, 360, 56, 992, true },
	{ 59, 59, 672, 360, 56, 992, true },
	{ 62, 59, 680, 360, 56, 992, true },
	{ 64, 64, 696, 360, 56, 992, true },
	{ 65, 65, 696, 360, 56, 992, true },
};
/* clang-format on */

const struct verbs_layout *uroce_verbs_layout(unsigned release)
{
	const struct verbs_layout *found = NULL;

	if (release < VERBS_RELEASE_MIN || release > VERBS_RELEASE_MAX)
		return NULL;
	for (size_t i = 0; i < sizeof(layout_table) / sizeof(*layout_table); i++) {
		if (layout_table[i].since <= release)
			found = &layout_table[i];
	}
	return found;
}
