/* SPDX-License-Identifier: BSD-3-Clause */
/* A connected pair with one registered buffer at each side, for programs that do something wrong.
 */
#pragma once

#include "tests/e2e/verbs_lib.h"

#define SIZE 8192u
#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* l posts, r is the peer; around rbuf there are SIZE guard bytes on each side, from rmem on. */
struct stage {
	struct vport *pl, *pr;
	struct vqp l, r;
	uint8_t *lbuf, *rmem, *rbuf;
	struct ibv_mr *lmr, *rmr;
};

struct stage *set_up(const struct vqp_conf *conf, int local_access, int remote_access);
struct stage *set_up_usual(void);
void tear_down(struct stage *s);

/* Neither rbuf nor the guard bytes changed. */
void must_be_untouched(const struct stage *s);
void must_be_in(const struct vqp *v, enum ibv_qp_state state, const char *who);

struct ibv_sge sge_of(const struct stage *s, uint32_t length);

/* Signaled, to or from the start of rbuf. */
struct ibv_send_wr remote_wr(const struct stage *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge);
void post(struct vqp *v, struct ibv_send_wr *wr);
void post_recv(struct vqp *v, uint64_t id, void *addr, uint32_t length, uint32_t lkey);
