/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between provider and daemon: the software counterpart of an HCA's programming
 * manual. docs/ABI.md shows the same bytes as tables; tests/abi holds both together.
 *
 * Everything here lies in memory that both sides can write at any time. The daemon copies a
 * record once and judges the copy; it follows no pointer found here. All fields are in host byte
 * order unless a comment says otherwise. A change of layout raises UROCE_ABI_VERSION.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define UROCE_ASSERT(cond, text) static_assert(cond, text)
#else
#define UROCE_ASSERT(cond, text) _Static_assert(cond, text)
#endif

#define UROCE_ABI_MAGIC   0x55524f43u /* "UROC" */
#define UROCE_ABI_VERSION 1u

/* Limits of the contract; a device may advertise less. */
#define UROCE_MAX_SGE     32u
#define UROCE_MAX_INLINE  960u
#define UROCE_MAX_QP_WR   16384u
#define UROCE_MAX_CQE     1048576u
#define UROCE_MAX_MSG     0x80000000u /* bytes: 2 GiB */
#define UROCE_MAX_WORKERS 16u
#define UROCE_CTX_QPS     16384u /* QP slots (doorbells) in one context */
#define UROCE_NO_SLOT     0xffffffffu /* of a QP without queues: XRC receive */
#define UROCE_CACHE_LINE  64u

/* Work request opcodes in a WQE. */
#define UROCE_WR_WRITE        0u
#define UROCE_WR_WRITE_IMM    1u
#define UROCE_WR_SEND         2u
#define UROCE_WR_SEND_IMM     3u
#define UROCE_WR_READ         4u
#define UROCE_WR_CMP_SWAP     5u
#define UROCE_WR_FETCH_ADD    6u
#define UROCE_WR_LOCAL_INV    7u
#define UROCE_WR_BIND_MW      8u
#define UROCE_WR_SEND_INV     9u
#define UROCE_WR_FLUSH        14u
#define UROCE_WR_ATOMIC_WRITE 15u
/* (the numbers of enum ibv_wr_opcode, so that the provider copies them) */

/* WQE flags. */
#define UROCE_WQE_FENCE     0x01u
#define UROCE_WQE_SIGNALED  0x02u
#define UROCE_WQE_SOLICITED 0x04u
#define UROCE_WQE_INLINE    0x08u
/* (the bits of enum ibv_send_flags) */

/*
 * Send queue entry. The slot's remaining bytes hold either num_sge scatter/gather entries or,
 * with UROCE_WQE_INLINE, inline_len bytes of payload.
 */
struct uroce_wqe {
	uint64_t wr_id;
	uint8_t opcode; /* UROCE_WR_* */
	uint8_t flags;  /* UROCE_WQE_* */
	uint16_t num_sge;
	uint32_t inline_len; /* bytes, at most the QP's max_inline */
	uint32_t imm; /* immediate as the program gave it (big-endian), or rkey to invalidate */
	uint32_t rkey;
	uint64_t remote_addr;
	/* CMP_SWAP: compare; FETCH_ADD: addend; ATOMIC_WRITE: the 8 bytes; FLUSH: length */
	uint64_t compare_add;
	uint64_t swap;
	uint32_t ah;          /* UD: address handle */
	uint32_t remote_qpn;  /* UD; XRC: the number of the remote SRQ */
	uint32_t remote_qkey; /* UD */
	uint32_t reserved;
};
UROCE_ASSERT(sizeof(struct uroce_wqe) == 64, "a WQE header is one cache line");

struct uroce_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};
UROCE_ASSERT(sizeof(struct uroce_sge) == 16, "16 bytes, as struct ibv_sge");

/* Receive queue entry; num_sge entries follow it in the slot. */
struct uroce_rqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
};
UROCE_ASSERT(sizeof(struct uroce_rqe) == 16, "an RQE header is 16 bytes");

/* Completion status: the numbers of enum ibv_wc_status. */
#define UROCE_WC_SUCCESS           0u
#define UROCE_WC_LOC_LEN_ERR       1u
#define UROCE_WC_LOC_QP_OP_ERR     2u
#define UROCE_WC_LOC_PROT_ERR      4u
#define UROCE_WC_WR_FLUSH_ERR      5u
#define UROCE_WC_MW_BIND_ERR       6u
#define UROCE_WC_BAD_RESP_ERR      7u
#define UROCE_WC_LOC_ACCESS_ERR    8u
#define UROCE_WC_REM_INV_REQ_ERR   9u
#define UROCE_WC_REM_ACCESS_ERR    10u
#define UROCE_WC_REM_OP_ERR        11u
#define UROCE_WC_RETRY_EXC_ERR     12u
#define UROCE_WC_RNR_RETRY_EXC_ERR 13u
#define UROCE_WC_REM_ABORT_ERR     16u
#define UROCE_WC_FATAL_ERR         19u
#define UROCE_WC_GENERAL_ERR       21u

/* Completion opcode: the numbers of enum ibv_wc_opcode. */
#define UROCE_WC_SEND         0u
#define UROCE_WC_RDMA_WRITE   1u
#define UROCE_WC_RDMA_READ    2u
#define UROCE_WC_COMP_SWAP    3u
#define UROCE_WC_FETCH_ADD    4u
#define UROCE_WC_BIND_MW      5u
#define UROCE_WC_LOCAL_INV    6u
#define UROCE_WC_FLUSH        8u
#define UROCE_WC_ATOMIC_WRITE 9u
#define UROCE_WC_RECV         128u
#define UROCE_WC_RECV_IMM     129u /* RECV_RDMA_WITH_IMM */

/* Completion flags: the bits of enum ibv_wc_flags. */
#define UROCE_WC_GRH      0x01u
#define UROCE_WC_WITH_IMM 0x02u
#define UROCE_WC_WITH_INV 0x08u

/* Which queue of the QP a CQE belongs to. DEAD: purged by the provider, to be skipped. */
#define UROCE_CQE_SQ   0u
#define UROCE_CQE_RQ   1u
#define UROCE_CQE_SRQ  2u
#define UROCE_CQE_DEAD 0xffu

/* Completion queue entry. */
struct uroce_cqe {
	uint64_t wr_id;
	uint64_t timestamp; /* ns, the device's clock (CLOCK_MONOTONIC) */
	uint32_t qpn;
	uint32_t qp_slot; /* the QP's slot in its context: index for the provider's table */
	uint32_t byte_len;
	uint32_t imm; /* immediate (big-endian) or invalidated rkey */
	uint32_t src_qp;
	uint32_t vendor_err; /* UROCE_VERR_*: why, beyond the status */
	uint32_t
		wqe_index; /* free-running index of the WQE in its queue: frees it and all before */
	uint8_t status;    /* UROCE_WC_* */
	uint8_t opcode;    /* UROCE_WC_* */
	uint8_t flags;     /* UROCE_WC_* */
	uint8_t queue;     /* UROCE_CQE_* */
	uint16_t pkey_index;
	uint8_t sl;
	uint8_t solicited; /* not 0: a CQ armed for solicited completions fires on it */
	uint8_t reserved[8];
};
UROCE_ASSERT(sizeof(struct uroce_cqe) == 64, "a CQE is one cache line");

/*
 * Head of every ring: the producer's line, then the consumer's. Indices run freely over 2^32; the
 * entry of index i is slot i & (depth - 1). Only ring.h loads or stores prod, cons, arm and want.
 */
struct uroce_ring {
	uint32_t prod;
	uint32_t reserved0[15];
	uint32_t cons;
	uint32_t reserved1[15];
};
UROCE_ASSERT(sizeof(struct uroce_ring) == 128, "two cache lines");
UROCE_ASSERT(offsetof(struct uroce_ring, cons) == 64, "the consumer has its own line");

/*
 * Shared memory of a QP: this header, then the SQ slots at sq_off, then the RQ slots at rq_off
 * (offsets, strides and depths come in the reply to CREATE_QP and are not read from here).
 * want: the daemon asks for a doorbell after a receive is posted (the QP is in ERR and must flush).
 */
struct uroce_qp_page {
	struct uroce_ring sq;
	struct uroce_ring rq;
	uint32_t want;
	uint32_t reserved[15];
};
UROCE_ASSERT(sizeof(struct uroce_qp_page) == 320, "SQ and RQ rings and one line of flags");

/* CQ arm word: what the next event shall fire on. */
#define UROCE_ARM_NONE      0u
#define UROCE_ARM_ANY       1u
#define UROCE_ARM_SOLICITED 2u

/*
 * Shared memory of a CQ: this header, then one sub-ring for each worker (its struct uroce_ring,
 * then depth CQEs) at sub_off + i * sub_stride. Completions of one queue stay in one sub-ring, so
 * their order holds.
 */
struct uroce_cq_page {
	uint32_t arm;
	uint32_t overrun; /* set by the daemon when completions were lost: the CQ is in error */
	uint32_t reserved[14];
};
UROCE_ASSERT(sizeof(struct uroce_cq_page) == 64, "one line");

/*
 * UAR: the doorbell memory of one context. Page 0 is struct uroce_uar; page 1 + w belongs to worker
 * w. To ring for QP slot s of worker w: set bit s % 64 of bits[s / 64], then bit (s / 64) % 64 of
 * summary[s / 4096] (both atomic or, release), full fence, and if need_wakeup reads non-zero write
 * 8 bytes to the worker's eventfd. A doorbell is a hint; the truth is the ring's prod.
 */
#define UROCE_UAR_PAGE    4096u
#define UROCE_UAR_WORDS   (UROCE_CTX_QPS / 64u)
#define UROCE_UAR_SUMMARY ((UROCE_UAR_WORDS + 63u) / 64u)

#define UROCE_UAR_ENDED   1u /* with its daemon */
#define UROCE_UAR_REMOVED 2u /* alone */

struct uroce_uar {
	uint32_t magic;
	uint32_t version;
	uint32_t n_workers;
	uint32_t fatal;    /* UROCE_UAR_*: the device is gone */
	uint64_t clock_ns; /* coarse: refreshed while a worker is awake; for diagnosis only */
	uint32_t reserved[10];
};
UROCE_ASSERT(sizeof(struct uroce_uar) == 64, "one line");

struct uroce_uar_worker {
	uint32_t need_wakeup;
	uint32_t reserved0[15];
	uint64_t summary[UROCE_UAR_SUMMARY];
	uint64_t reserved1[8 - UROCE_UAR_SUMMARY];
	uint64_t bits[UROCE_UAR_WORDS];
};
UROCE_ASSERT(sizeof(struct uroce_uar_worker) <= UROCE_UAR_PAGE, "fits its page");
UROCE_ASSERT(offsetof(struct uroce_uar_worker, summary) == 64, "summary has its own line");

/* vendor_err of a CQE: the reason in one number (uroce's own; `uroce status` names them). */
#define UROCE_VERR_NONE         0u
#define UROCE_VERR_LKEY         1u /* no such lkey, or another PD's */
#define UROCE_VERR_LKEY_BOUNDS  2u
#define UROCE_VERR_LKEY_ACCESS  3u
#define UROCE_VERR_APP_MEMORY   4u /* the process's memory could not be read or written */
#define UROCE_VERR_WQE          5u /* malformed WQE: opcode, SGE count, length */
#define UROCE_VERR_WQE_CHANGED  6u /* the WQE changed after it was posted */
#define UROCE_VERR_NAK          7u
#define UROCE_VERR_TIMEOUT      8u
#define UROCE_VERR_RNR          9u
#define UROCE_VERR_RECV_LEN     10u
#define UROCE_VERR_NO_RD_ATOMIC 11u /* READ or atomic with max_rd_atomic 0 */
#define UROCE_VERR_BAD_RESPONSE 12u
#define UROCE_VERR_RKEY         13u /* invalidate: no such key */
