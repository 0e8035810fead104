/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events to a client: short records on a stream socket whose other end the program reads. Workers
 * send, and never wait: what the socket does not take now is kept here and sent by the control
 * thread once the socket has room. Equal records are kept as one with a count, so what is kept is
 * bounded by the client's objects, and no event that was counted is ever lost.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NOTIFY_RECORD_MAX 16u

struct notify_pending {
	uint8_t record[NOTIFY_RECORD_MAX];
	uint64_t count;
};

struct notify {
	pthread_mutex_t lock;
	int fd;                         /* our end */
	unsigned len;                   /* of a record: 8 or 16 */
	bool is_dead;                   /* nobody reads any more */
	struct notify_pending *pending; /* in order of arrival */
	uint32_t *index; /* hash of a record → 1 + its place in pending; 2 * n_room */
	unsigned n_pending, n_room, max_pending;
};

/* Makes the socket pair. *client_fd is the program's end: it polls readable only, never writable.
 */
int notify_open(struct notify *n, unsigned len, unsigned max_pending, int *client_fd);
void notify_close(struct notify *n);

/* Sends or keeps one record. True: something is newly kept, call notify_flush when fd has room. */
bool notify_send(struct notify *n, const void *record);

/* Sends what was kept. True: nothing is left. */
bool notify_flush(struct notify *n);

/* Forgets kept records whose first 8 bytes are `key`; returns how many there were. */
uint64_t notify_forget(struct notify *n, uint64_t key);
