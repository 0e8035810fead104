/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can go wrong on a link, and to which packet it goes wrong: configuration, its text, and the
 * judge. No I/O, no clock, no memory: links and simulations use the same rules. One seed and the
 * same packets at the same times give the same faults.
 *
 * Text: words with spaces or commas between. For all packets:
 *   drop=1% dup=0.1% reorder=0.1% corrupt=0.01%   chances; 0.01 is 1%
 *   mark=10%                                      as a congested switch does: CE, if ECN-capable
 *   delay=20us jitter=5us                         each packet late by delay, and up to jitter more
 *   hold=30us                                     how late a reordered packet is
 *   rate=1gbit                                    0: as fast as it goes
 *   partition=on|off                              nothing passes
 *   dir=tx|rx|both  seed=7
 * For one packet, once, `--once` and then
 *   opcode=read-response-middle nth=3 qpn=17 psn=0x100 dir=tx
 *   action=drop|dup|reorder|corrupt|mark|delay
 *   delay=1ms                                     for action=delay
 *
 * opcode may be the beginning of several: read-response is each of its four. qpn is the destination
 * QP's, which is the one that a packet names. nth counts the packets that all the rest fits. Left
 * out, a word fits anything, nth is 1 and action drop.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/frame.h"

enum fault_dir { FAULT_TX = 1, FAULT_RX = 2, FAULT_BOTH = 3 };

enum fault_action {
	FAULT_DROP,
	FAULT_DUP,
	FAULT_REORDER,
	FAULT_CORRUPT,
	FAULT_MARK,
	FAULT_DELAY,
	FAULT_N_ACTIONS
};

#define FAULT_CERTAIN  1000000000u /* chances are in parts of this */
#define FAULT_ONCE_MAX 16u
#define FAULT_NAME_MAX 24u
#define FAULT_HOLD_NS  30000u
#define FAULT_TEXT_MAX 2048u /* enough for any configuration */
#define FAULT_ANY      UINT64_MAX

struct fault_once {
	char opcode[FAULT_NAME_MAX]; /* as it was given; empty: any */
	uint64_t ops;      /* bit n: operation n; bit 32: CNP; 0: any, also what has no BTH */
	uint64_t qpn, psn; /* FAULT_ANY: any */
	uint64_t delay_ns;
	uint32_t nth;
	uint8_t dir;    /* enum fault_dir */
	uint8_t action; /* enum fault_action */
};

struct fault_conf {
	uint64_t seed;
	uint32_t chance[FAULT_DELAY]; /* by action */
	uint8_t dir;
	bool is_partition;
	uint64_t delay_ns, jitter_ns, hold_ns;
	uint64_t rate_bps;
	uint32_t n_once;
	struct fault_once once[FAULT_ONCE_MAX];
};

/* No faults. */
void fault_conf_init(struct fault_conf *c);
bool fault_conf_is_quiet(const struct fault_conf *c);

/*
 * Changes in c what text names and adds its one-shot rules. 0, or -EINVAL with a sentence in err
 * and c as it was.
 */
int fault_parse(struct fault_conf *c, const char *text, char *err, unsigned err_size);

/* The text that makes c out of an empty configuration, into buf; returns buf. */
const char *fault_describe(const struct fault_conf *c, char *buf, unsigned size);

/* What the judge knows of a packet. */
struct fault_packet {
	uint32_t len;
	bool has_bth;
	uint8_t opcode;
	uint32_t qpn, psn;
};
void fault_packet_read(struct fault_packet *p, const struct frame *f);

/* One direction of one port. */
struct fault_stream {
	uint64_t rng;
	uint64_t wire_free; /* when the rate lets the next packet begin */
	uint8_t dir;        /* FAULT_TX or FAULT_RX */
};

/* Starts the random sequence anew; port: a number, so that ports do not lose the same packets. */
void fault_stream_seed(struct fault_stream *s, const struct fault_conf *c, enum fault_dir dir,
		       unsigned port);

enum fault_fate { FAULT_PASSES, FAULT_LOST, FAULT_PARTITIONED };

struct fault_verdict {
	enum fault_fate fate;
	bool is_dup, is_corrupt, is_reordered, is_marked, is_once;
	uint64_t due;    /* when it arrives; now at the earliest */
	uint64_t random; /* for fault_corrupt */
};

/* seen[i] counts what once[i] fits; it may be shared by the ports of a device. */
struct fault_verdict fault_judge(struct fault_stream *s, const struct fault_conf *c,
				 atomic_uint *seen, uint64_t now, const struct fault_packet *p);

/*
 * Turns one bit of f over, where the ICRC sees it: from the BTH to the end, but for resv8a. Frames
 * without BTH: anywhere behind the Ethernet header.
 */
void fault_corrupt(struct frame *f, uint64_t random);

/*
 * Congestion Experienced into the IP header of a RoCEv2 frame, which the ICRC does not see (RFC
 * 3168). false: it is not ECN-capable, and stays as it is.
 */
bool fault_mark(struct frame *f);

extern const char *const fault_action_name[FAULT_N_ACTIONS];
