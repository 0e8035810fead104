/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the verbs programs of the end-to-end tests share: TAP cases that give up at the first
 * broken promise, and queue pairs ready to use in a line.
 */
#pragma once

#include <infiniband/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the running case as failed. */
_Noreturn void tap_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define MUST(cond, ...)                                            \
	do {                                                       \
		if (!(cond))                                       \
			tap_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

struct tap_case {
	const char *name;
	void (*run)(void);
	unsigned seconds; /* deadline; 0: the usual 30 */
};

/* Runs those whose name holds argv[1], if there is one. The exit code of main(). */
int tap_run(const struct tap_case *cases, unsigned n, int argc, char **argv);

/* Runs what another process's case waits for: tells only what failed. The exit code of main(). */
int tap_part(void (*run)(void));

struct vport {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	union ibv_gid gid; /* of index 1 */
};

struct vqp {
	struct vport *port;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	bool owns_cqs;
};

struct vqp_conf {
	unsigned send_wr, recv_wr, send_sge, recv_sge, max_inline;
	enum ibv_mtu mtu;
	int access;
	uint8_t retry_cnt, rnr_retry, timeout, min_rnr_timer, rd_atomic, dest_rd_atomic;
	uint32_t psn;
	bool sig_all;
};

extern const struct vqp_conf vqp_usual;

/* The device of this name, opened; opened once only. */
struct vport *vport_get(const char *name);

/* Both ends of a connection, in RTS. The CQs are the QP's own. */
void vqp_pair(struct vqp *a, struct vport *pa, struct vqp *b, struct vport *pb,
	      const struct vqp_conf *conf);

/* In INIT; with CQs of its own unless some are given. */
void vqp_make(struct vqp *v, struct vport *port, const struct vqp_conf *conf, struct ibv_cq *scq,
	      struct ibv_cq *rcq);
void vqp_connect(struct vqp *v, uint32_t remote_qpn, const union ibv_gid *remote,
		 const struct vqp_conf *conf);
void vqp_close(struct vqp *v);
enum ibv_qp_state vqp_state(const struct vqp *v);

struct ibv_mr *vreg(struct vport *port, void *addr, size_t length, int access);

/* Polls until n completions are there; fails the case after ms milliseconds. */
void vcq_wait(struct ibv_cq *cq, struct ibv_wc *wc, unsigned n, unsigned ms);

/* As vcq_wait for one, which must have this status. */
struct ibv_wc vcq_expect(struct ibv_cq *cq, enum ibv_wc_status status);

uint64_t now_ms(void);

/* Byte i of the pattern of this seed; neighbours and seeds differ. */
uint8_t pattern_byte(uint32_t seed, uint64_t i);
void pattern_fill(void *at, size_t n, uint32_t seed, uint64_t from);

/* The first byte that is not the pattern's; n if all are. */
size_t pattern_differs(const void *at, size_t n, uint32_t seed, uint64_t from);
