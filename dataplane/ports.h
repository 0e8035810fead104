/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the core asks of outside. The daemon implements these over Linux, tests over plain memory.
 * Every call returns at once; none may call back into the engine.
 */
#pragma once

#include <stdint.h>

/* A piece of registered memory in an application: address there, and the MR's adapter handle. */
struct mem_vec {
	uint64_t addr;
	uint64_t region; /* opaque: from cmd_mr_add */
	uint64_t len;
};

/* A piece of memory here: frame payload or inline data. */
struct buf_vec {
	uint8_t *base;
	uint64_t len;
};

enum mem_atomic_op { MEM_CMP_SWAP, MEM_FETCH_ADD, MEM_STORE };

struct engine_event {
	uint64_t element; /* token */
	uint32_t owner;   /* the object's owner, from its command */
	uint32_t type;    /* enum ibv_event_type's number */
	uint32_t qpn;     /* or CQ number; for traces */
};

enum trace_kind {
	TRACE_RX,       /* a packet was accepted */
	TRACE_TX,       /* a packet was built */
	TRACE_DROP,     /* a packet was dropped; arg: enum drop_reason */
	TRACE_QP_STATE, /* arg: new state */
	TRACE_TIMEOUT,
	TRACE_COMPLETE, /* arg: status */
};

struct trace_record {
	uint64_t now;
	uint32_t qpn;
	uint32_t psn;
	uint32_t arg;
	uint8_t kind;
	uint8_t opcode;
	uint16_t reserved;
};

/*
 * mem_read copies application memory into bufs, mem_write the other way; the total lengths of both
 * lists are equal and all app pieces belong to one process, so that one system call can serve a
 * whole message. 0, or a negative errno, in which case any part may have been copied.
 * mem_atomic works on 8 aligned bytes, atomically against every other mem_atomic of the device.
 * cq_notify sends a completion event; event sends an asynchronous one. trace may be NULL.
 */
struct ports {
	void *ctx;
	int (*mem_read)(void *ctx, const struct mem_vec *app, unsigned n_app,
			const struct buf_vec *buf, unsigned n_buf);
	int (*mem_write)(void *ctx, const struct mem_vec *app, unsigned n_app,
			 const struct buf_vec *buf, unsigned n_buf);
	int (*mem_atomic)(void *ctx, const struct mem_vec *app, enum mem_atomic_op op,
			  uint64_t operand, uint64_t compare, uint64_t *old);
	void (*cq_notify)(void *ctx, uint32_t owner, uint32_t cqn, uint64_t channel,
			  uint64_t token);
	void (*event)(void *ctx, const struct engine_event *ev);
	void (*trace)(void *ctx, const struct trace_record *rec);
};
