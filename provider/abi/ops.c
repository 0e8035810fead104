/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/abi/ops.h"

#include <string.h>

#define OP_ROW(name, since) { #name, since },
static const struct {
	const char *name;
	unsigned since;
} op_table[VERBS_N_OPS] = { UROCE_VERBS_OPS(OP_ROW) };

const char *uroce_verbs_op_name(enum verbs_op op)
{
	return op_table[op].name;
}

int uroce_verbs_op_index(enum verbs_op op, unsigned release)
{
	int index = 0;

	if (op_table[op].since > release)
		return -1;
	for (unsigned i = 0; i < (unsigned)op; i++)
		index += op_table[i].since <= release;
	return index;
}

unsigned uroce_verbs_op_count(unsigned release)
{
	unsigned count = 0;

	for (unsigned i = 0; i < VERBS_N_OPS; i++)
		count += op_table[i].since <= release;
	return count;
}

void uroce_verbs_ops_fill(verbs_fn slots[VERBS_N_OPS], unsigned release,
			  const struct verbs_impl *impl, size_t n)
{
	memset(slots, 0, VERBS_N_OPS * sizeof(*slots));
	for (size_t i = 0; i < n; i++) {
		int index = uroce_verbs_op_index(impl[i].op, release);

		if (index >= 0)
			slots[index] = impl[i].fn;
	}
}
