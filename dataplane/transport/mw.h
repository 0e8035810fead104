/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: narrower, revocable keys onto regions (IBA vol. 1, 10.6.7). */
#pragma once

#include "dataplane/transport/mr.h"

struct engine;
struct qp;
struct send_rec;

int mw_add(struct mr_table *t, const struct cmd_mw_add *cmd);
int mw_del(struct mr_table *t, uint32_t key);

/* A BIND_MW work request; false: refused, nothing has changed. */
bool mw_bind(struct engine *e, const struct qp *qp, const struct send_rec *rec);

/* LOCAL_INV, or a SEND with Invalidate: unbind a type 2 window of this QP. */
bool mw_invalidate(struct engine *e, const struct qp *qp, uint32_t key);
