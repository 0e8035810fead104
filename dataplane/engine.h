/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The face of the transport core: one engine is one worker's share of one device. Pure: events and
 * a time in, effects out through the ports; the same inputs give the same outputs, bit for bit.
 *
 * `now` is in nanoseconds and never goes back. Numbers (QPN, CQ number, memory key, PD) are given
 * by the caller, who keeps them unique over all engines of a device. An engine allocates nothing:
 * its tables live in the arena, and the memory of each QP comes with the command that makes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/abi/abi.h"
#include "dataplane/abi/ctrl.h"
#include "dataplane/ports.h"
#include "fabric/wire/packet.h"

struct engine;

struct engine_conf {
	uint32_t max_qp; /* a power of two, as max_cq and max_mr */
	uint32_t max_cq;
	uint32_t max_mr;
	uint32_t max_srq; /* 0: none; else a power of two, as max_ah and max_mcast */
	uint32_t max_ah;
	uint32_t max_mcast; /* attachments of QPs to multicast groups */
	uint32_t ud_mtu;    /* bytes a UD message may have; 0: 4096 */
	uint32_t worker;    /* which CQ sub-ring is ours */
	uint32_t n_workers; /* engines of this device; 0: 1 */
	void *shared;       /* engine_shared_size() zeroed bytes for all of them; NULL: our own */
	uint32_t window;    /* packets in flight per QP; 0: default */
	uint64_t seed;
	bool check_icrc; /* verify the ICRC of what arrives */
	bool congestion; /* DCQCN: packets ECN-capable, marks answered with CNPs, CNPs obeyed */
};

size_t engine_size(const struct engine_conf *conf); /* arena bytes, 64-aligned */
size_t engine_shared_size(const struct engine_conf *conf);
struct engine *engine_create(const struct engine_conf *conf, const struct ports *ports,
			     void *arena);

/* Frames from the link, in order. They stay the caller's; nothing of them is kept. */
void engine_rx(struct engine *e, uint64_t now, const struct frame *const *in, unsigned n);

/* A doorbell for this QP: look at its SQ (and at its RQ in ERR). Unknown QPNs are ignored. */
void engine_doorbell(struct engine *e, uint64_t now, uint32_t qpn);

/*
 * Fill up to n empty frames (buf, room set; FRAME_HEADROOM before buf) with packets to send;
 * returns how many. Pull: what is not asked for stays where it is.
 */
unsigned engine_tx(struct engine *e, uint64_t now, struct frame *const *out, unsigned n);
bool engine_tx_pending(const struct engine *e);

/* When engine_expire must be called next; UINT64_MAX: never. */
uint64_t engine_deadline(const struct engine *e);
void engine_expire(struct engine *e, uint64_t now);

enum engine_op {
	ENGINE_MR_ADD,
	ENGINE_MR_DEL, /* EBUSY while windows are bound; from then on none can be, in any engine */
	ENGINE_MW_ADD,
	ENGINE_MW_DEL,
	ENGINE_CQ_ADD,
	ENGINE_CQ_DEL,
	ENGINE_QP_ADD,
	ENGINE_QP_MODIFY,
	ENGINE_QP_QUERY,
	ENGINE_QP_DEL,
	ENGINE_SRQ_ADD,
	ENGINE_SRQ_LIMIT,
	ENGINE_SRQ_DEL,
	ENGINE_AH_ADD,
	ENGINE_AH_DEL,
	ENGINE_MCAST_ADD,
	ENGINE_MCAST_DEL,
	ENGINE_SRQ_RESIZE,
	ENGINE_SRQ_QUERY,
	ENGINE_CQ_RESIZE, /* EINVAL: more completions wait than the new ring holds */
	ENGINE_CQ_FIRE,   /* an armed CQ sends its event now */
	ENGINE_MR_OPEN, /* windows can be bound to a region that was added without */
	ENGINE_MR_KILL, /* as MR_DEL, whatever windows there are: they show nothing any more */
};

struct cmd_mr_add {
	uint32_t key; /* lkey == rkey: index << 8 | generation */
	uint32_t pd;
	uint32_t access; /* enum ibv_access_flags */
	uint64_t iova;
	uint64_t length;
	uint64_t addr;   /* where iova is in the process */
	uint64_t region; /* handed back in mem_vec */
	bool no_windows; /* until ENGINE_MR_OPEN */
};

struct cmd_mw_add {
	uint32_t key; /* its index is the window's for life, binding changes the low byte */
	uint32_t pd;
	uint32_t type; /* enum ibv_mw_type: 1, 2 */
};

struct cmd_cq_add {
	uint32_t cqn;
	uint32_t depth; /* power of two */
	uint32_t owner;
	struct uroce_cq_page *page;
	struct uroce_ring *ring; /* this worker's sub-ring; the CQEs follow it */
	uint64_t channel;        /* 0: none */
	uint64_t token;
};

/* Completions that the client has not taken move to another ring, under their indices. */
struct cmd_cq_resize {
	uint32_t cqn;
	uint32_t depth;
	struct uroce_ring *ring;
};

struct cmd_qp_add {
	uint32_t qpn;
	uint32_t type; /* UROCE_QPT_* */
	uint32_t pd;
	uint32_t send_cqn, recv_cqn;
	uint32_t srqn; /* 0: the QP has a receive queue of its own */
	uint32_t xrcd; /* XRC receive: its domain; such a QP has no queues, no CQs and no PD */
	uint32_t owner;
	uint32_t slot; /* of the context, for CQEs */
	uint32_t sq_sig_all;
	uint64_t token;
	struct uroce_qp_cap cap; /* as granted */
	uint32_t sq_depth, rq_depth, sq_stride, rq_stride;
	struct uroce_qp_page *page;
	uint8_t *sq, *rq; /* slots in shared memory */
	void *mem;        /* engine_qp_size() bytes, zeroed, the engine's until QP_DEL */
};
size_t engine_qp_size(uint32_t sq_depth);

/*
 * MODIFY: attributes and mask as the program gave them, checked here by the state table. path: how
 * to reach attr.ah (resolved by the caller), read only when the mask has IBV_QP_AV.
 */
struct cmd_qp_modify {
	uint32_t qpn;
	uint32_t mask;
	struct uroce_qp_attr attr;
	struct net_path path;
};

/*
 * A shared receive queue is one queue for all engines of a device: what they share is `shared`, 64
 * zeroed bytes of the daemon's own. The provider's room is depth - (prod - cons): a receive leaves
 * its slot when it is taken.
 */
struct cmd_srq_add {
	uint32_t srqn;
	uint32_t pd;
	uint32_t owner;
	uint32_t max_sge;
	uint32_t depth, stride;
	uint32_t xrcd; /* XRC SRQ: its domain, and the CQ of its receives; else 0 */
	uint32_t cqn;
	uint64_t token;
	struct uroce_ring *ring;
	uint8_t *slots;
	struct srq_shared *shared;
};

/* Fewer receives than `limit` left: one IBV_EVENT_SRQ_LIMIT_REACHED, then disarmed. 0: no event. */
struct cmd_srq_limit {
	uint32_t srqn;
	uint32_t limit;
};

/* Other memory, into which the receives at their indices have been copied already. */
struct cmd_srq_resize {
	uint32_t srqn;
	uint32_t depth;
	struct uroce_ring *ring;
	uint8_t *slots;
};

struct cmd_ah_add {
	uint32_t ah;
	uint32_t pd;
	struct net_path path;
};

struct cmd_mcast {
	uint32_t qpn;
	uint8_t mgid[16];
};

struct cmd {
	enum engine_op op;
	union {
		struct cmd_mr_add mr_add;
		struct cmd_mw_add mw_add;
		struct cmd_cq_add cq_add;
		struct cmd_cq_resize cq_resize;
		struct cmd_qp_add qp_add;
		struct cmd_qp_modify qp_modify;
		struct cmd_srq_add srq_add;
		struct cmd_srq_limit srq_limit;
		struct cmd_srq_resize srq_resize;
		struct cmd_ah_add ah_add;
		struct cmd_mcast mcast;
		uint32_t key; /* the object of _DEL and _QUERY: memory key, cqn, qpn, srqn or ah */
	};
};

struct cmd_reply {
	union {
		struct uroce_qp_attr attr; /* QP_QUERY */
		struct {
			uint32_t
				events_sent; /* QP_DEL, CQ_DEL, SRQ_DEL, SRQ_QUERY: that named it */
			struct {
				uint32_t limit, taken;
			} srq; /* SRQ_QUERY */
		};
	};
};

/* 0 or a negative errno. After MR_DEL no byte of the region is touched any more. */
int engine_command(struct engine *e, uint64_t now, const struct cmd *cmd, struct cmd_reply *reply);

/* What `uroce status` shows of a QP beyond its attributes. */
struct engine_qp_info {
	uint32_t state, type, dest_qpn, mtu;
	uint32_t nxt_psn, una_psn, epsn, msn;
	uint32_t sq_pending, retries, rnr_retries;
};
int engine_qp_info(const struct engine *e, uint32_t qpn, struct engine_qp_info *info);

/* Counters: one line each in transport/counters.h. */
const uint64_t *engine_counters(const struct engine *e);
unsigned engine_n_counters(void);
const char *engine_counter_name(unsigned i);

/* The numbers of libibverbs' enums that the core needs; the provider checks them against verbs.h.
 */
#define UROCE_QPT_RC       2u
#define UROCE_QPT_UC       3u
#define UROCE_QPT_UD       4u
#define UROCE_QPT_XRC_SEND 9u
#define UROCE_QPT_XRC_RECV 10u

enum uroce_qps {
	UROCE_QPS_RESET,
	UROCE_QPS_INIT,
	UROCE_QPS_RTR,
	UROCE_QPS_RTS,
	UROCE_QPS_SQD,
	UROCE_QPS_SQE,
	UROCE_QPS_ERR,
	UROCE_N_QPS
};

#define UROCE_ACCESS_LOCAL_WRITE   0x01u
#define UROCE_ACCESS_REMOTE_WRITE  0x02u
#define UROCE_ACCESS_REMOTE_READ   0x04u
#define UROCE_ACCESS_REMOTE_ATOMIC 0x08u
#define UROCE_ACCESS_MW_BIND       0x10u
#define UROCE_ACCESS_ZERO_BASED    0x20u
#define UROCE_ACCESS_ON_DEMAND     0x40u
#define UROCE_ACCESS_FLUSH_GLOBAL  0x100u

#define UROCE_EVENT_CQ_ERR        0u
#define UROCE_EVENT_QP_FATAL      1u
#define UROCE_EVENT_QP_REQ_ERR    2u
#define UROCE_EVENT_QP_ACCESS_ERR 3u
#define UROCE_EVENT_COMM_EST      4u
#define UROCE_EVENT_SQ_DRAINED    5u
#define UROCE_EVENT_DEVICE_FATAL  8u
#define UROCE_EVENT_PORT_ACTIVE   9u
#define UROCE_EVENT_PORT_ERR      10u
#define UROCE_EVENT_SRQ_ERR       14u
#define UROCE_EVENT_SRQ_LIMIT     15u
#define UROCE_EVENT_QP_LAST_WQE   16u
#define UROCE_EVENT_GID_CHANGE    18u
