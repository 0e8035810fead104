/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How libibverbs finds us: it loads the driver named in libibverbs.d, our constructor registers,
 * and every device whose modalias says uroce is offered to us.
 */
#include "provider/provider.h"

#include <errno.h>
#include <stdlib.h>

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define verbs_register_driver PASTE(verbs_register_driver_, UROCE_PABI)

void verbs_register_driver(const struct verbs_device_ops *ops);

#define DEVICE_ABI 1u /* class/infiniband_verbs/<uverbs>/abi_version */

struct verbs_library uroce_library;

static const struct verbs_match_ent match_table[] = {
	{ .u.modalias = "uroce:*", .kind = VERBS_MATCH_MODALIAS },
	{ .kind = VERBS_MATCH_END },
};

/* Where the library's struct verbs_context begins: it ends where ours ends. */
struct verbs_context *uroce_library_context(struct uroce_context *ctx)
{
	uint8_t *end = (uint8_t *)(&ctx->vctx + 1);

	return (struct verbs_context *)(end - uroce_library.layout->context_size);
}

/* Called when one of our devices would be offered; the place to say why it cannot be. */
static bool refuse_device(struct verbs_sysfs_dev *dev)
{
	uroce_complain(COMPLAIN_LIBRARY, "device %s is not offered: %s", dev->ibdev_name,
		       uroce_library.why);
	return false;
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs)
{
	(void)sysfs;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

static const struct verbs_device_ops driver = {
	.name = "uroce",
	.match_min_abi_version = DEVICE_ABI,
	.match_max_abi_version = DEVICE_ABI,
	.match_table = match_table,
	.alloc_context = uroce_alloc_context,
	.import_context = uroce_import_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};

/* For a library we must not serve: match, explain, decline. */
static const struct verbs_device_ops refusal = {
	.name = "uroce",
	.match_min_abi_version = DEVICE_ABI,
	.match_max_abi_version = DEVICE_ABI,
	.match_table = match_table,
	.match_device = refuse_device,
	.alloc_context = uroce_alloc_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};

static __attribute__((constructor)) void provider_register(void)
{
	bool is_known = uroce_verbs_library_find(&uroce_library) &&
			uroce_verbs_library_check(&uroce_library);

	verbs_register_driver(is_known ? &driver : &refusal);
}
