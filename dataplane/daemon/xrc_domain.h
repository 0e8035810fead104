/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC domains and their receive QPs. Both are the device's: sessions hold handles, and what they
 * name ends with the last handle. Control thread only, but for a target's lock.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct session;

/* A session that holds a target open, by one QP handle. */
struct xrc_opener {
	struct session *session;
	uint64_t token;
	uint32_t events_sent;
	struct xrc_opener *next;
};

struct xrc_target {
	uint32_t qpn, worker;
	void *mem; /* the engine's, and before it a page that no program sees */
	pthread_mutex_t lock; /* openers: a worker tells them of events */
	struct xrc_opener *openers;
	struct xrc_target *next;
};

struct xrc_domain {
	uint32_t number;
	uint32_t handles; /* of all sessions */
	int file;         /* keeps the file that names it from being another; -1: it has no name */
	dev_t st_dev;
	ino_t st_ino;
	struct xrc_target *targets;
	struct xrc_domain *next;
};
