/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/core.h"

uint64_t sge_total(const struct uroce_sge *sge, unsigned n)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < n; i++)
		total += sge[i].length;
	return total;
}

static int sge_verr(enum mr_verdict v)
{
	switch (v) {
	case MR_OK:
		return 0;
	case MR_NO_KEY:
	case MR_WRONG_PD:
		return (int)UROCE_VERR_LKEY;
	case MR_NO_ACCESS:
		return (int)UROCE_VERR_LKEY_ACCESS;
	case MR_BOUNDS:
		return (int)UROCE_VERR_LKEY_BOUNDS;
	}
	return (int)UROCE_VERR_LKEY;
}

int sge_map(struct engine *e, uint32_t pd, const struct uroce_sge *sge, unsigned n, uint32_t access,
	    uint64_t off, uint64_t len, struct mem_vec *out)
{
	unsigned used = 0;

	for (unsigned i = 0; i < n && len; i++) {
		uint64_t take = sge[i].length;
		enum mr_verdict v;

		if (off >= take) {
			off -= take;
			continue;
		}
		take -= off;
		if (take > len)
			take = len;
		v = mr_access(&e->mr, sge[i].lkey, pd, access, sge[i].addr + off, take, &out[used]);
		if (v != MR_OK)
			return -sge_verr(v);
		used++;
		off = 0;
		len -= take;
	}
	return len ? -(int)UROCE_VERR_WQE_CHANGED : (int)used;
}
