/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct uroce_ah {
	struct ibv_ah v; /* first; its handle is the number in a WQE */
	uint32_t handle;
};

void uroce_ah_attr_pack(struct uroce_ah_attr *to, const struct ibv_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->dgid, from->grh.dgid.raw, sizeof(to->dgid));
	to->flow_label = from->grh.flow_label;
	to->sgid_index = from->grh.sgid_index;
	to->hop_limit = from->grh.hop_limit;
	to->traffic_class = from->grh.traffic_class;
	to->sl = from->sl;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->dlid = from->dlid;
}

void uroce_ah_attr_unpack(struct ibv_ah_attr *to, const struct uroce_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->grh.dgid.raw, from->dgid, sizeof(from->dgid));
	to->grh.flow_label = from->flow_label;
	to->grh.sgid_index = from->sgid_index;
	to->grh.hop_limit = from->hop_limit;
	to->grh.traffic_class = from->traffic_class;
	to->sl = from->sl;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->dlid = from->dlid;
}

struct ibv_ah *uroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct uroce_create_ah req = { .pd = pd->handle };
	struct uroce_ah *ah = calloc(1, sizeof(*ah));
	struct uroce_create_ah_rep rep;
	int err;

	if (!ah)
		return NULL;
	uroce_ah_attr_pack(&req.attr, attr);
	err = uroce_context_call(to_context(pd->context), UROCE_OP_CREATE_AH, &req, sizeof(req),
				 &rep, sizeof(rep));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	ah->v.handle = rep.ah; /* which is what post_send puts into a WQE */
	ah->handle = rep.handle;
	return &ah->v;
}

int uroce_destroy_ah(struct ibv_ah *ibah)
{
	struct uroce_ah *ah = (struct uroce_ah *)ibah;
	int err = uroce_context_destroy(to_context(ibah->context), UROCE_OP_DESTROY_AH, ah->handle,
					NULL);

	if (err)
		return err;
	free(ah);
	return 0;
}
