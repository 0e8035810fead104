/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon for the provider's tests: a real socket, real shared memory, and a thread that answers
 * control messages. It moves no data; the test itself looks into the rings and writes completions.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/abi/ctrl.h"
#include "dataplane/abi/ring.h"

#define FAKE_WORKERS 2u
#define FAKE_MAX     16u /* objects of a kind; handle = index + 1 */

struct fake_cq {
	bool is_used;
	uint8_t *mem;
	uint32_t channel;
	uint64_t token;
	uint32_t depth;
	uint64_t stride;
	uint32_t prod[FAKE_WORKERS];
	uint32_t events_sent;
	uint32_t n_fired;
};

struct fake_qp {
	bool is_used;
	uint8_t *mem;
	struct uroce_create_qp req;
	struct uroce_create_qp_rep rep;
	struct uroce_modify_qp modified;
	uint32_t events_sent;
};

struct fake {
	/* Set before fake_start. */
	uint32_t version;     /* what it speaks */
	uint32_t memory_err;  /* of HELLO */
	uint32_t probe_err;   /* of PROBE_MEMORY */

	char dir[64];         /* the class tree and the socket */
	int listen_fd, conn_fd, stop_fd;
	pthread_t thread;
	uint8_t *uar;
	int async_fd, wake_fd[FAKE_WORKERS];
	int channel_fd[FAKE_MAX];
	struct fake_cq cq[FAKE_MAX];
	struct fake_qp qp[FAKE_MAX];
	struct uroce_reg_mr mr;     /* the last one */
	struct uroce_create_ah ah;  /* the last one */
	uint32_t n_probes, n_channels_gone, n_mrs_gone;
};

/*
 * Once, before the first test: private /dev with /dev/infiniband, netlink refused. False when the
 * machine lets us have neither root nor namespaces.
 */
bool fake_world(void);

/* Class tree, socket, thread; points SYSFS_PATH at the tree. */
void fake_start(struct fake *f);

/* As if it was killed: every descriptor of it closes. */
void fake_die(struct fake *f);

/* The worker's page of the UAR. */
struct uroce_uar_worker *fake_uar(struct fake *f, uint32_t worker);

/* Write one completion into sub-ring `sub`. */
void fake_complete(struct fake *f, uint32_t cq_handle, uint32_t sub, const struct uroce_cqe *cqe);

/* Completion event of a CQ, as if it had fired; async event naming an element. */
void fake_notify(struct fake *f, uint32_t cq_handle);
void fake_async(struct fake *f, uint64_t element, uint32_t type);
