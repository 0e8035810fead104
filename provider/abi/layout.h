/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' private interface to providers, declared here because Debian ships no header for it.
 * Layouts are those of x86-64 and of every other LP64 machine. What differs between releases is not
 * in these structs but in struct verbs_layout, looked up for the library found at run time; structs
 * that grew are declared with the room of the largest release.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <sys/types.h>
#include <infiniband/verbs.h>

#define VERBS_RELEASE_MIN 34u
#define VERBS_RELEASE_MAX 65u

struct verbs_list_node {
	struct verbs_list_node *next, *prev;
};

enum verbs_match_kind {
	VERBS_MATCH_END,
	VERBS_MATCH_PCI,
	VERBS_MATCH_MODALIAS,
	VERBS_MATCH_DRIVER_ID,
};

struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind; /* enum verbs_match_kind */
};

/* Up to ibdev_idx the same in all releases; num_ports came with 35 and moved what follows it. */
struct verbs_sysfs_dev {
	struct verbs_list_node entry;
	void *provider_data;
	const struct verbs_match_ent *match;
	unsigned int flags;
	char sysfs_name[IBV_SYSFS_NAME_MAX];
	dev_t sysfs_cdev;
	char ibdev_name[IBV_SYSFS_NAME_MAX];
	char ibdev_path[IBV_SYSFS_PATH_MAX];
	char modalias[512];
	uint64_t node_guid;
	uint32_t driver_id;
	uint32_t node_type; /* enum ibv_node_type */
	int ibdev_idx;
	uint32_t num_ports;
	uint32_t abi_ver;
	struct timespec time_created;
};

struct verbs_device_ops;

struct verbs_device {
	struct ibv_device device; /* first */
	const struct verbs_device_ops *ops;
	int refcount; /* the library's: atomic */
	struct verbs_list_node entry;
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs_dev);
	struct verbs_context *(*alloc_context)(struct ibv_device *device, int cmd_fd, void *priv);
	struct verbs_context *(*import_context)(struct ibv_device *device, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs_dev);
	void (*uninit_device)(struct verbs_device *device);
};

#define VERBS_MR_TYPE_MR   0
#define VERBS_MR_TYPE_NULL 1
#define VERBS_MR_TYPE_IMPORTED 2
#define VERBS_MR_TYPE_DMABUF 3

struct verbs_mr {
	struct ibv_mr ibv_mr;
	int mr_type;
	int access;
};

/* The library keeps its own words behind the public struct: room for every release's. */
#define VERBS_QP_ROOM 512u
#define VERBS_CQ_ROOM 512u
#define VERBS_SRQ_ROOM 256u

union verbs_qp {
	struct ibv_qp qp;
	struct ibv_qp_ex qp_ex;
	uint8_t room[VERBS_QP_ROOM];
};

#define VERBS_QP_EX 2u /* bit of verbs_qp.comp_mask: ibv_qp_to_qp_ex may hand out qp_ex */

union verbs_srq {
	struct ibv_srq srq;
	uint8_t room[VERBS_SRQ_ROOM];
};

union verbs_cq {
	struct ibv_cq cq;
	struct ibv_cq_ex cq_ex;
	uint8_t room[VERBS_CQ_ROOM];
};

/*
 * struct verbs_context grows at its front: the library of another release writes below the struct
 * that verbs.h declares. Providers keep this much room before theirs.
 */
#define VERBS_CONTEXT_ROOM 1024u

/* What a release of libibverbs does differently. */
struct verbs_layout {
	unsigned since;           /* first release of this layout */
	unsigned pabi;            /* IBVERBS_PABI_VERSION */
	uint32_t context_size;    /* sizeof(struct verbs_context) */
	uint32_t qp_comp_mask;    /* offset of verbs_qp.comp_mask */
	uint32_t port_attr_size;  /* sizeof(struct ibv_port_attr) */
	uint32_t sysfs_dev_size;  /* sizeof(struct verbs_sysfs_dev) */
	bool has_num_ports;       /* verbs_sysfs_dev.num_ports */
};

#define VERBS_PORT_ATTR_SPEED_EX \
	52u /* offset of ibv_port_attr.active_speed_ex, where there is one */

/* The layout of a release, or NULL when it is not one we know. */
const struct verbs_layout *uroce_verbs_layout(unsigned release);

/* Entry points of libibverbs' private version node. */
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t alloc_size,
				    struct verbs_context *context_offset, uint32_t driver_id);
void verbs_set_ops(struct verbs_context *vctx, const void *ops);
void verbs_uninit_context(struct verbs_context *vctx);
