/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared receive queue in plain memory, as fake_app.h has queue pairs. */
#pragma once

#include "dataplane/transport/srq.h"
#include "tests/support/fake_app.h"

struct fake_srq {
	struct fake_dev *dev;
	uint32_t srqn, depth, stride;
	struct uroce_ring ring;
	uint8_t *slots;
	struct srq_shared shared;
	uint32_t prod;
};

/* The device's engine needs max_srq. At most 64 of them; depth is a power of two. */
struct fake_srq *fake_srq_new(struct fake_dev *d, uint32_t number, uint32_t depth);
/* Of an XRC domain: its receives complete on cq, its PD judges the remote keys. */
struct fake_srq *fake_srq_new_xrc(struct fake_dev *d, uint32_t number, uint32_t depth, uint32_t pd,
				  uint32_t xrcd, const struct fake_cq *cq);
int fake_srq_del(struct fake_srq *srq);
int fake_srq_limit(struct fake_srq *srq, uint32_t limit);
bool fake_srq_post(struct fake_srq *srq, uint64_t wr_id, const struct uroce_sge *sge,
		   uint32_t n_sge);
/* Receives that nobody has taken. */
uint32_t fake_srq_left(const struct fake_srq *srq);
