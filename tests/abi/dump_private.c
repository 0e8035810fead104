/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print the layout of libibverbs' private interface: as provider/abi declares it on top of this
 * machine's verbs.h, or, with -DFROM_RDMA_CORE and an rdma-core source tree in the include path, as
 * libibverbs/driver.h has it. The goldens were made the second way; equal output is the proof that
 * our declarations are right. The argument, or DUMP_RELEASE, is the release of the headers.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "provider/abi/ops.h"

#ifdef FROM_RDMA_CORE
#include <infiniband/driver.h>
#define PRINT_OP(name) \
	printf("op %s %zu\n", #name, offsetof(struct verbs_context_ops, name) / sizeof(void *));
#define AT_34(name) PRINT_OP(name)
#if DUMP_RELEASE >= 35
#define AT_35(name) PRINT_OP(name)
#else
#define AT_35(name)
#endif
#if DUMP_RELEASE >= 36
#define AT_36(name) PRINT_OP(name)
#else
#define AT_36(name)
#endif
#if DUMP_RELEASE >= 59
#define AT_59(name) PRINT_OP(name)
#else
#define AT_59(name)
#endif
#if DUMP_RELEASE >= 62
#define AT_62(name) PRINT_OP(name)
#else
#define AT_62(name)
#endif
#if DUMP_RELEASE >= 64
#define AT_64(name) PRINT_OP(name)
#else
#define AT_64(name)
#endif
#if DUMP_RELEASE >= 65
#define AT_65(name) PRINT_OP(name)
#else
#define AT_65(name)
#endif
#define PRINT_IF_THERE(name, since) AT_##since(name)

static void print_ops(unsigned release)
{
	printf("ops %zu\n", sizeof(struct verbs_context_ops) / sizeof(void *));
	(void)release;
	UROCE_VERBS_OPS(PRINT_IF_THERE)
}

static void print_grown(unsigned release)
{
	(void)release;
	printf("verbs_context %zu\n", sizeof(struct verbs_context));
	printf("verbs_qp.comp_mask %zu\n", offsetof(struct verbs_qp, comp_mask));
	printf("ibv_port_attr %zu\n", sizeof(struct ibv_port_attr));
	printf("verbs_sysfs_dev %zu\n", sizeof(struct verbs_sysfs_dev));
}
#else
#include "provider/abi/layout.h"

static void print_ops(unsigned release)
{
	printf("ops %u\n", uroce_verbs_op_count(release));
	for (unsigned op = 0; op < VERBS_N_OPS; op++) {
		int index = uroce_verbs_op_index((enum verbs_op)op, release);

		if (index >= 0)
			printf("op %s %d\n", uroce_verbs_op_name((enum verbs_op)op), index);
	}
}

static void print_grown(unsigned release)
{
	const struct verbs_layout *l = uroce_verbs_layout(release);

	if (!l)
		exit(1);
	printf("verbs_context %u\n", l->context_size);
	printf("verbs_qp.comp_mask %u\n", l->qp_comp_mask);
	printf("ibv_port_attr %u\n", l->port_attr_size);
	printf("verbs_sysfs_dev %u\n", l->sysfs_dev_size);
}
#endif

#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))
#define FIELD(type, field) printf(#type "." #field " %zu\n", offsetof(struct type, field))

static void print_structs(void)
{
	SIZE(verbs_match_ent);
	FIELD(verbs_match_ent, driver_data);
	FIELD(verbs_match_ent, u);
	FIELD(verbs_match_ent, vendor);
	FIELD(verbs_match_ent, device);
	FIELD(verbs_match_ent, kind);
	SIZE(verbs_device_ops);
	FIELD(verbs_device_ops, name);
	FIELD(verbs_device_ops, match_min_abi_version);
	FIELD(verbs_device_ops, match_max_abi_version);
	FIELD(verbs_device_ops, match_table);
	FIELD(verbs_device_ops, static_providers);
	FIELD(verbs_device_ops, match_device);
	FIELD(verbs_device_ops, alloc_context);
	FIELD(verbs_device_ops, import_context);
	FIELD(verbs_device_ops, alloc_device);
	FIELD(verbs_device_ops, uninit_device);
	FIELD(verbs_sysfs_dev, match);
	FIELD(verbs_sysfs_dev, flags);
	FIELD(verbs_sysfs_dev, sysfs_name);
	FIELD(verbs_sysfs_dev, ibdev_name);
	FIELD(verbs_sysfs_dev, ibdev_path);
	FIELD(verbs_sysfs_dev, modalias);
	FIELD(verbs_sysfs_dev, node_guid);
	FIELD(verbs_sysfs_dev, driver_id);
	FIELD(verbs_sysfs_dev, ibdev_idx);
	SIZE(verbs_device);
	FIELD(verbs_device, ops);
	FIELD(verbs_device, refcount);
	FIELD(verbs_device, entry);
	FIELD(verbs_device, sysfs);
	FIELD(verbs_device, core_support);
	SIZE(verbs_mr);
	FIELD(verbs_mr, mr_type);
	FIELD(verbs_mr, access);
}

int main(int argc, char **argv)
{
#ifdef DUMP_RELEASE
	unsigned release = DUMP_RELEASE;
#else
	unsigned release = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
#endif
	(void)argc;
	(void)argv;
	print_structs();
	print_grown(release);
	print_ops(release);
	return 0;
}
