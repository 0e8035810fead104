/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which MAC an address is reached by, the next hop's where a router stands between. One thread
 * writes (whoever asks the kernel, or the port that speaks ARP itself), all workers read without
 * locks. A cache: of addresses that nobody uses, the least recently used make room.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/addr/gid.h"

#define NEIGH_WAYS  4u
#define NEIGH_SETS  256u
#define NEIGH_SLOTS (NEIGH_SETS * NEIGH_WAYS)

struct neigh_slot {
	_Atomic uint64_t key[2];  /* the GID as it lies in memory; zero: free */
	_Atomic uint64_t mac;     /* 63 known, 62 asked for, 61:48 version, 47:0 address */
	_Atomic uint32_t is_used; /* set by readers, taken back by the writer */
	uint32_t last_used;       /* the writer's: in which of its rounds */
};

struct neigh_table {
	_Atomic uint32_t changes; /* grows with every change that readers may wait for */
	uint32_t round;
	struct neigh_slot slot[NEIGH_SLOTS];
};

enum neigh_answer {
	NEIGH_MISSING, /* nobody asked for it: not in the table */
	NEIGH_PENDING, /* asked for, no answer yet */
	NEIGH_KNOWN,   /* mac is written */
};

/* Any thread. */
enum neigh_answer neigh_lookup(struct neigh_table *t, const uint8_t gid[GID_LEN], uint8_t mac[6]);

/* All of the following: the writer only. */

/* The slot of gid; if it had none it gets one, pending. is_new may be NULL. */
unsigned neigh_add(struct neigh_table *t, const uint8_t gid[GID_LEN], bool *is_new);

/* The slot of gid, or -1. */
int neigh_find(const struct neigh_table *t, const uint8_t gid[GID_LEN]);

/* mac NULL: it does not answer any more. True when that is news. */
bool neigh_set(struct neigh_table *t, unsigned slot, const uint8_t *mac);

/* false: the slot is free. */
bool neigh_get(const struct neigh_table *t, unsigned slot, uint8_t gid[GID_LEN], bool *is_known);

/* Was it looked up since the last time this was asked? Also dates it. */
bool neigh_take_used(struct neigh_table *t, unsigned slot);
