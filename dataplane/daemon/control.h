/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread's loop: the listening socket, sessions, signals, and what workers ask for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct control;

/* What an epoll event is about. */
enum watch_kind {
	WATCH_LISTEN,
	WATCH_SIGNAL,
	WATCH_POKE,
	WATCH_TIMER,
	WATCH_SOCKET,
	WATCH_PROCESS,
	WATCH_NOTIFY,
	WATCH_NEIGHBOURS,
	WATCH_NETLINK
};
struct watch {
	enum watch_kind kind;
	void *object; /* struct session, notify, neighbours or portwatch */
};

/* Listens in the run directory. SIGTERM and SIGINT must be blocked. 0 or a negative errno, logged.
 */
int control_create(struct daemon *d);
void control_destroy(struct daemon *d);

/* Serves until a signal or control_stop; 0. */
int control_run(struct daemon *d);
void control_stop(struct control *c);

int control_watch(struct control *c, int fd, uint32_t events, struct watch *w);
void control_unwatch(struct control *c, int fd);

#define CONTROL_POKE_FLUSH 1u /* events are kept somewhere, waiting for room */
#define CONTROL_POKE_AWAKE 2u /* a worker woke: counters will move */

/* Any thread. Costs a system call only when the same thing is not asked for already. */
void control_poke(struct control *c, uint32_t what);
