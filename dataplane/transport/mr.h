/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: the table from key to region (an HCA's MPT), and what an access to one may do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/engine.h"

enum mr_kind { MR_REGION, MR_WINDOW_1, MR_WINDOW_2 };

/* One slot of the table: a region, or a window onto one (mw.h). */
struct mr {
	uint32_t key;
	uint32_t pd;
	uint32_t access;
	bool is_live;
	enum mr_kind kind; /* of a window the rest is mw.h's */
	uint64_t iova, length;
	uint64_t addr; /* of iova, in the process */
	uint64_t region;
};

struct mr_table {
	struct mr *slot;
	struct mr_shared *shared; /* mw.h; NULL: no windows */
	uint32_t n; /* a power of two */
};

/* In the order in which an access is judged (IBA vol. 1, 10.6.6 and 9.7.4.1.6). */
enum mr_verdict { MR_OK, MR_NO_KEY, MR_WRONG_PD, MR_NO_ACCESS, MR_BOUNDS };

int mr_add(struct mr_table *t, const struct cmd_mr_add *cmd);
int mr_del(struct mr_table *t, uint32_t key, bool is_forced);

struct qp;

/*
 * May a peer of `qp` touch [va, va + len) through rkey? As mr_access, for windows too.
 */
enum mr_verdict mr_remote_access(const struct mr_table *t, const struct qp *qp, uint32_t pd,
				 uint32_t key, uint32_t access, uint64_t va, uint64_t len,
				 struct mem_vec *out);

/* The same of a FLUSH, which touches nothing: of a range, or of all that the key shows. */
enum mr_verdict mr_flush_access(const struct mr_table *t, const struct qp *qp, uint32_t pd,
				uint32_t key, bool is_whole, uint64_t va, uint64_t len);

/*
 * May a user of `pd` touch [va, va + len) through `key` with all of `access`? On MR_OK *out says
 * where that is. len must not be 0: zero-length accesses are not checked at all.
 */
enum mr_verdict mr_access(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t access,
			  uint64_t va, uint64_t len, struct mem_vec *out);
