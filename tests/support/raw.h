/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One engine with one connected QP, and a peer made by hand: packets go in, the answers that come
 * out are kept, decoded, to be looked at.
 */
#pragma once

#include "tests/support/fake_app.h"
#include "tests/support/pktgen.h"

#define RAW_ANSWERS  256u
#define RAW_PEER_QPN 0x123456u

struct raw_conf {
	uint32_t type; /* UROCE_QPT_*; 0: RC */
	uint32_t mtu;  /* IBV_MTU_*; 0: 1024 */
	uint32_t rq_psn, sq_psn;
	uint32_t access;        /* of the QP; 0: all */
	uint8_t dest_rd_atomic; /* 0: 8, 0xff: zero */
	uint8_t min_rnr_timer;  /* 0: 12 */
	uint32_t mem;           /* bytes of the region; 0: 64 KiB */
	uint32_t window;        /* of the engine */
	uint32_t cq_depth;      /* 0: 256 */
	uint32_t sq_sig_all;
};

struct raw {
	struct fake_dev dev;
	struct fake_cq *cq;
	struct fake_qp *qp;
	struct fake_region *mem;
	struct pktgen gen;
	struct net_path inbound; /* of gen: from the peer to us */
	uint64_t now;
	struct packet answer[RAW_ANSWERS];
	uint8_t payload[RAW_ANSWERS][64]; /* the first bytes of each */
	uint32_t n_answers;
};

void raw_init(struct raw *r, const struct raw_conf *conf);
void raw_free(struct raw *r); /* also checks guards and violations */

/* A packet to the QP: fills in the QPN and P_Key. Answers are appended. */
void raw_send(struct raw *r, const struct packet *pk, const void *payload);
void raw_frame(struct raw *r, const struct frame *f);
void raw_clear(struct raw *r);
void raw_pull(struct raw *r); /* what the engine has to send */

/* Requests in short form; AckReq set. */
void raw_write(struct raw *r, uint8_t op, uint32_t psn, uint64_t off, uint32_t dma_len,
	       uint32_t len);
void raw_read(struct raw *r, uint32_t psn, uint64_t off, uint32_t len);
void raw_op(struct raw *r, uint8_t op, uint32_t psn, uint32_t len); /* no RETH */
void raw_atomic(struct raw *r, uint8_t op, uint32_t psn, uint64_t off, uint64_t operand,
		uint64_t compare);

/* Answers to the engine's own requests. */
void raw_ack(struct raw *r, uint8_t syndrome, uint32_t psn);
void raw_read_resp(struct raw *r, uint8_t op, uint32_t psn, uint32_t len);

/* WRs of the QP: the peer's memory is at 0x10000, key 0x77; signaled; at offset off of mem. */
void raw_post(struct raw *r, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags);
/* The next completion has that wr_id (the offset) and status; or there is none. */
void raw_expect_cqe(struct raw *r, uint64_t wr_id, uint8_t status);
void raw_expect_no_cqe(struct raw *r);

/* The one answer is an ACK or NAK with that syndrome and PSN; clears. */
void raw_expect_ack(struct raw *r, uint8_t syndrome, uint32_t psn, uint32_t msn);
void raw_expect_none(struct raw *r);
