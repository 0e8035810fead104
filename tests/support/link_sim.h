/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire between two ports in virtual time. Everything that goes wrong on it comes from one seed:
 * loss, duplicates, reordering, delay and damaged bytes; or from a filter that a directed test
 * installs ("drop the third READ response once"). Same seed, same frames: the same wire, bit for
 * bit. The last frames are kept in a log, to be printed when a test fails.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fabric/wire/frame.h"
#include "fabric/wire/packet.h"

#define LINK_SIM_LOG 256u

/* Chances are in units of 1/65536. */
struct link_sim_conf {
	uint64_t seed;
	uint32_t drop, dup, reorder, corrupt;
	uint64_t delay_ns;   /* one way */
	uint64_t jitter_ns;  /* added to reordered and duplicated frames, up to this */
	uint64_t ns_per_kib; /* serialization: 1024 bytes take this long; 0: none */
	uint64_t ecn_ns;     /* ECN-capable IPv4 frames that wait longer for the wire are marked; 0:
				none */
	uint32_t tx_burst;   /* frames a port takes before it has to wait for the wire; 0: 256 */
	uint32_t rx_burst;   /* most frames delivered at once; 0: 32 */
	bool split;          /* deliver some frames in split form */
	bool damage_icrc_valid; /* corrupt a byte, then fix the ICRC: a hostile peer, not a bad wire
				 */
};

enum link_sim_act {
	LINK_SIM_PASS,
	LINK_SIM_DROP,
	LINK_SIM_DUP,
	LINK_SIM_DELAY, /* behind the frames of the next jitter_ns */
	LINK_SIM_CORRUPT,
};

/* Judges one frame; from: the sending port. Runs before the random faults and rules them out. */
typedef enum link_sim_act link_sim_filter(void *ctx, unsigned from, const struct packet *pk);

struct link_sim_log {
	uint64_t sent;
	uint8_t from, act, parsed;
	struct packet pk;
};

struct sim_frame {
	struct frame f;
	uint64_t due, order;
	uint8_t from;
	struct sim_frame *next; /* in the free list */
	uint8_t mem[FRAME_HEADROOM + FRAME_PAYLOAD + 64] __attribute__((aligned(64)));
};

struct link_sim {
	struct link_sim_conf conf;
	uint64_t rng, order;
	struct sim_frame **heap[2]; /* towards port 0, port 1; by due, then order */
	uint32_t n[2], cap[2];
	uint64_t wire_free[2]; /* when the sender's last bit has left */
	uint64_t queued_ns;    /* of the frame being sent */
	struct sim_frame *idle;
	link_sim_filter *filter;
	void *filter_ctx;
	struct link_sim_log log[LINK_SIM_LOG];
	uint32_t n_log;
	uint32_t malformed; /* frames that an engine sent and that do not parse */
	uint64_t n_sent[2], n_dropped[2], n_corrupt[2], n_marked[2], bytes[2];
	uint64_t waited_ns[2]; /* for the wire, summed over the frames */
	bool is_cut;           /* nothing passes */
};

void link_sim_init(struct link_sim *l, const struct link_sim_conf *conf);
void link_sim_free(struct link_sim *l);

/* An empty frame for engine_tx, and its return unused. */
struct frame *link_sim_alloc(struct link_sim *l);
void link_sim_put(struct link_sim *l, struct frame *f);

uint32_t link_sim_room(const struct link_sim *l, unsigned from, uint64_t now);
void link_sim_tx(struct link_sim *l, unsigned from, uint64_t now, struct frame *const *f,
		 unsigned n);
/* Frames for port `to` that are due; give each back with link_sim_put. */
unsigned link_sim_rx(struct link_sim *l, unsigned to, uint64_t now, struct frame **f, unsigned n);
/* When the next frame is due, or a full port has room again. */
uint64_t link_sim_deadline(const struct link_sim *l, uint64_t now);

void link_sim_dump(const struct link_sim *l, FILE *out);
