/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on a device's ports: wraps each port of a link in one that loses, repeats, delays,
 * reorders or damages frames as its rules say (link_fault_rules.h has their text). Without rules a
 * wrapped port costs one load and one branch a burst. What the inner link loses nothing of, this
 * one loses only on purpose: late frames wait in a queue, and tx_room tells senders when it is
 * full.
 *
 * A frame from a device to itself passes its port twice, out and in, and is judged twice.
 *
 * Threads: create, set, clear, text, destroy belong to the control thread, counters to anyone,
 * drain and the ops of a port to its worker. New rules are handed over by one pointer, which a port
 * takes up at its next tx_room or rx; the control thread frees old rules once all ports have moved
 * on (those of a worker that sleeps are kept until it wakes).
 */
#pragma once

#include <stdint.h>

#include "fabric/link/link.h"
#include "fabric/link/link_fault_rules.h"

struct link_fault;

/* What became of frames. */
enum link_fault_count {
	LINK_FAULT_PASSED,      /* among them the reordered, corrupted and delayed */
	LINK_FAULT_DROPPED,
	LINK_FAULT_PARTITIONED,
	LINK_FAULT_DUPLICATED,  /* copies made */
	LINK_FAULT_REORDERED,
	LINK_FAULT_CORRUPTED,
	LINK_FAULT_MARKED, /* and were ECN-capable */
	LINK_FAULT_ONCE,        /* one-shot rules that had their turn, whatever they did */
	LINK_FAULT_OVERFLOW,    /* lost: more was sent than tx_room said */
	LINK_FAULT_NO_BUFFER,   /* copies not made */
	LINK_FAULT_N_COUNTS
};
extern const char *const link_fault_count_name[LINK_FAULT_N_COUNTS];

/* Wraps inner[0..n_ports) into ports[0..n_ports), without rules. NULL: no memory. */
struct link_fault *link_fault_create(struct link_port *const *inner, unsigned n_ports,
				     struct link_port **ports);

/* Every port must have been drained, and its worker have stopped using it. */
void link_fault_destroy(struct link_fault *lf);

/* Frees the frames that a port still holds: the last thing a worker does with it. */
void link_fault_drain(struct link_port *port);

/*
 * Changes the rules by text: what it names is set, its one-shot rules are added, the rest stays.
 * The random sequence begins anew. 0, -EINVAL with a sentence in err, -ENOMEM.
 */
int link_fault_set(struct link_fault *lf, const char *text, char *err, unsigned err_size);

/* No faults any more; late frames still arrive. 0 or -ENOMEM. */
int link_fault_clear(struct link_fault *lf);

/* All that comes or goes is lost (counted as partitioned), whatever the rules are. 0 or -ENOMEM. */
int link_fault_cut(struct link_fault *lf, bool is_cut);

/* The rules as text, without one-shot rules that are used up; returns buf. "": no faults. */
const char *link_fault_text(const struct link_fault *lf, char *buf, unsigned size);

/* The sum over all ports of the device, by enum link_fault_count. */
void link_fault_counters(const struct link_fault *lf, uint64_t out[LINK_FAULT_N_COUNTS]);
