/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session: one control connection, one context, and everything that was made on it. It ends when
 * the connection closes or the process dies, and all of it ends with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/abi/ctrl.h"
#include "dataplane/daemon/control.h"
#include "dataplane/daemon/handles.h"
#include "dataplane/host/notify.h"
#include "dataplane/host/shm.h"

struct daemon;
struct device;
struct appmem;

/* What one session may hold. */
#define SESSION_MAX_PD       4096u
#define SESSION_MAX_MR       65535u
#define SESSION_MAX_CQ       8192u
#define SESSION_MAX_QP       UROCE_CTX_QPS
#define SESSION_MAX_MW       65535u
#define SESSION_MAX_SRQ      8192u
#define SESSION_MAX_XRCD     1024u
#define SESSION_MAX_AH       65535u
#define SESSION_MAX_CHANNEL  256u
#define SESSION_MAX_DM       256u
#define SESSION_MAX_BYTES    (2ull << 30) /* shared memory, and QP state here */

enum session_role { SESSION_NEW, SESSION_CLIENT, SESSION_ADMIN };

struct pd {
	uint32_t number;
	uint32_t refs;
	uint32_t holders; /* sessions that have a handle of it */
};

struct channel {
	struct notify notify;
	struct watch watch;
	uint32_t refs;
};

struct session {
	struct daemon *daemon;
	uint32_t id; /* index in daemon.session: the owner number of its objects */
	enum session_role role;
	int sock, pidfd;
	struct watch sock_watch, pid_watch, async_watch;
	pid_t pid;
	uid_t uid;
	char comm[20];
	/* A client's, from HELLO on: */
	struct device *dev;
	struct appmem *mem; /* NULL: memory_err says why */
	int memory_err;
	uint64_t probe_addr;
	struct shm uar;
	int event_fd[UROCE_MAX_WORKERS];
	struct notify async;
	uint32_t *qpn_of_slot;
	struct numbers slots;
	uint64_t bytes;
	struct handles pds, mrs, mws, cqs, qps, srqs, xrcds, ahs, channels, dms;
	int cmd_fd;             /* what an importer shows to be let in, or -1 */
	struct session *origin; /* imported from, while that lives; or NULL */
	int fd_in;              /* came with the request being run, or -1; who keeps it says -1 */
};

static inline struct uroce_uar *session_uar(const struct session *s)
{
	return (struct uroce_uar *)s->uar.base;
}

static inline struct uroce_uar_worker *session_uar_worker(const struct session *s, unsigned w)
{
	return (struct uroce_uar_worker *)(s->uar.base + (size_t)UROCE_UAR_PAGE * (1 + w));
}

/* Takes over sock (also on failure). 0 or a negative errno. */
int session_create(struct session **out, struct daemon *d, int sock);

/* Takes down all it owns, in order, and frees it. */
void session_destroy(struct session *s);

/* HELLO: everything between a connection and a context. All or nothing. */
/* *async_fd: the end of the async-event socket for the client; the caller's. */
int session_open(struct session *s, struct device *dev, uint64_t probe_addr, int *async_fd);

/* Opens the process's memory and tries it on probe_addr; sets mem or memory_err. */
void session_open_memory(struct session *s);

/* Room in the session's quota for n bytes more? 0 or -ENOMEM. */
int session_charge(struct session *s, uint64_t n);
void session_refund(struct session *s, uint64_t n);

/* Sends an asynchronous event. */
void session_event(struct session *s, uint64_t element, uint32_t type);
