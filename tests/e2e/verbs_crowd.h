/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads in one case. Only the main thread may end a case, so the others leave a word and
 * stop.
 */
#pragma once

#include "tests/e2e/verbs_stage.h"

#include <pthread.h>
#include <stdatomic.h>

#define N_THREADS 3
#define N_EACH    200u
#define N_ALL     (N_THREADS * N_EACH)

/* What the threads of a case share. */
struct crowd {
	struct stage *s;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel;
	atomic_uint seen[N_ALL]; /* completions by wr_id */
	atomic_uint n_done, n_events;
	atomic_bool must_stop;
	_Atomic(const char *) broken; /* what went wrong first */
};
extern struct crowd crowd;

void crowd_begin(struct stage *s);
void crowd_start(pthread_t *thread, unsigned n, void *(*run)(void *)); /* run(0) .. run(n - 1) */
void crowd_join(pthread_t *thread, unsigned n);

/* Any thread. */
void crowd_broken(const char *what);
bool crowd_is_over(void);
void crowd_count(const struct ibv_wc *wc);

/* Main thread: nothing broke; every request below n completed exactly once. */
void crowd_must_be_whole(void);
void crowd_each_once(unsigned n);

/* The 64 bytes of thread i. */
struct ibv_sge crowd_bytes(uintptr_t i);

/* Threads: poll crowd.cq until all have completed; write N_EACH times, by l of the stage. */
void *crowd_poller(void *arg);
void *crowd_writer(void *arg);
