/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device and the application that opened it, without daemon, provider or process. The pages of
 * QPs and CQs lie in plain memory, laid out as dataplane/abi says; WQEs are written, published and
 * completions taken exactly as a provider does it. Nothing is checked on the way in, so that
 * hostile entries can be posted too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/engine.h"
#include "tests/support/fake_mem.h"

#define FAKE_MAX_QP     64u
#define FAKE_MAX_CQ     64u
#define FAKE_MAX_MR     256u
#define FAKE_MAX_EVENTS 256u

struct fake_dev;

struct fake_cq {
	struct fake_dev *dev;
	uint32_t cqn, depth;
	struct uroce_cq_page *page;
	struct uroce_ring *ring;
	struct uroce_cqe *cqes;
	uint32_t cons;
	uint32_t n_notified; /* completion events so far */
};

struct fake_qp_conf {
	uint32_t type;               /* UROCE_QPT_*; 0: RC */
	uint32_t pd;                 /* 0: 1 */
	uint32_t sq_depth, rq_depth; /* powers of two; 0: 64 */
	uint32_t max_sge;            /* 0: 4 */
	uint32_t max_inline;         /* 0: 256 */
	uint32_t sq_sig_all;
	uint32_t srqn; /* 0: a receive queue of its own */
	uint32_t xrcd; /* XRC receive: no CQs, no queues */
	struct fake_cq *send_cq, *recv_cq;
};

struct fake_qp {
	struct fake_dev *dev;
	struct fake_qp_conf conf;
	struct uroce_qp_cap cap;
	uint32_t qpn, slot;
	uint32_t sq_stride, rq_stride;
	struct uroce_qp_page *page;
	uint8_t *sq, *rq;
	void *mem; /* the engine's */
	uint32_t sq_prod, rq_prod;
	uint32_t sq_done, rq_done; /* freed by completions */
	bool rung;                 /* a doorbell waits for the next turn */
};

struct fake_dev {
	struct engine *engine;
	void *arena;
	struct ports ports;
	struct fake_mem mem;
	uint64_t now; /* of the last call */
	uint8_t mac[6];
	uint8_t gid[16];
	struct fake_qp *qp[FAKE_MAX_QP];
	struct fake_cq *cq[FAKE_MAX_CQ];
	uint32_t qp_generation[FAKE_MAX_QP], cq_generation[FAKE_MAX_CQ];
	uint32_t mr_generation[FAKE_MAX_MR];
	uint32_t mr_owner[FAKE_MAX_MR]; /* region index + 1; 0: free */
	struct engine_event event[FAKE_MAX_EVENTS];
	uint32_t n_events;
	void (*on_trace)(void *ctx, const struct trace_record *rec);
	void *trace_ctx;
};

/* One work request; what is not named is zero. */
struct fake_wr {
	uint64_t wr_id;
	uint8_t opcode, flags;
	uint32_t n_sge;
	struct uroce_sge sge[UROCE_MAX_SGE];
	const void *inline_data; /* with UROCE_WQE_INLINE */
	uint32_t inline_len;
	uint32_t imm, rkey;
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint32_t ah, remote_qpn, remote_qkey;
};

/* side: 0 or 1; gives MAC and GID. conf may be NULL. */
void fake_dev_init(struct fake_dev *d, unsigned side, const struct engine_conf *conf);
void fake_dev_free(struct fake_dev *d);

/* Registered memory of len bytes (access: UROCE_ACCESS_*), and its end. */
struct fake_region *fake_reg(struct fake_dev *d, uint64_t len, uint32_t access);
struct fake_region *fake_reg_pd(struct fake_dev *d, uint64_t len, uint32_t access, uint32_t pd);
int fake_dereg(struct fake_dev *d, struct fake_region *r);

struct fake_cq *fake_cq_new(struct fake_dev *d, uint32_t depth);
int fake_cq_del(struct fake_cq *cq);
struct fake_qp *fake_qp_new(struct fake_dev *d, const struct fake_qp_conf *conf);
int fake_qp_del(struct fake_qp *qp); /* returns what QP_DEL answered */

int fake_qp_modify(struct fake_qp *qp, const struct uroce_qp_attr *attr, uint32_t mask,
		   const struct net_path *path);
int fake_qp_to(struct fake_qp *qp, enum uroce_qps state); /* only the state */
enum uroce_qps fake_qp_state(const struct fake_qp *qp);

/* False: the queue is full, as a provider sees it. A doorbell waits until fake_dev_doorbells. */
bool fake_post_send(struct fake_qp *qp, const struct fake_wr *wr);
bool fake_post_recv(struct fake_qp *qp, uint64_t wr_id, const struct uroce_sge *sge,
		    uint32_t n_sge);
uint32_t fake_sq_room(const struct fake_qp *qp);
uint32_t fake_rq_room(const struct fake_qp *qp);
void fake_dev_doorbells(struct fake_dev *d, uint64_t now);

/* Up to n completions; frees the slots they name. Returns how many, -1: the ring is impossible. */
int fake_poll(struct fake_cq *cq, struct uroce_cqe *out, unsigned n);

/* Events of that type that name this QP or CQ number. */
unsigned fake_events(const struct fake_dev *d, uint32_t type, uint32_t number);

uint64_t fake_counter(const struct fake_dev *d, const char *name); /* UINT64_MAX: no such counter */

static inline struct uroce_sge fake_sge(const struct fake_region *r, uint64_t off, uint32_t len)
{
	return (struct uroce_sge) { .addr = r->iova + off, .length = len, .lkey = r->key };
}
