/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/e2e/verbs_crowd.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

struct crowd crowd;

void crowd_broken(const char *what)
{
	const char *none = NULL;

	atomic_compare_exchange_strong(&crowd.broken, &none, what);
}

bool crowd_is_over(void)
{
	return atomic_load(&crowd.broken) || atomic_load(&crowd.must_stop);
}

void crowd_begin(struct stage *s)
{
	memset(&crowd, 0, sizeof(crowd));
	crowd.s = s;
}

void crowd_start(pthread_t *thread, unsigned n, void *(*run)(void *))
{
	for (uintptr_t i = 0; i < n; i++)
		MUST(!pthread_create(&thread[i], NULL, run, (void *)i), "no thread");
}

void crowd_join(pthread_t *thread, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

void crowd_must_be_whole(void)
{
	const char *what = atomic_load(&crowd.broken);

	MUST(!what, "%s", what);
}

void crowd_each_once(unsigned n)
{
	crowd_must_be_whole();
	for (unsigned i = 0; i < n; i++)
		MUST(atomic_load(&crowd.seen[i]) == 1, "request %u completed %u times", i,
		     atomic_load(&crowd.seen[i]));
}

void crowd_count(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS || wc->wr_id >= N_ALL)
		crowd_broken("a completion that is no success, or of nothing that was posted");
	else
		atomic_fetch_add(&crowd.seen[wc->wr_id], 1);
	atomic_fetch_add(&crowd.n_done, 1);
}

/* Polls crowd.cq together with others until all have completed. */
void *crowd_poller(void *arg)
{
	struct ibv_wc wc[4];

	(void)arg;
	while (atomic_load(&crowd.n_done) < N_ALL && !crowd_is_over()) {
		int n = ibv_poll_cq(crowd.cq, 4, wc);

		if (n < 0)
			crowd_broken("ibv_poll_cq failed");
		for (int i = 0; i < n; i++)
			crowd_count(&wc[i]);
	}
	return NULL;
}

struct ibv_sge crowd_bytes(uintptr_t i)
{
	return (struct ibv_sge) { (uintptr_t)crowd.s->lbuf + 64 * i, 64, crowd.s->lmr->lkey };
}

void *crowd_writer(void *arg)
{
	struct ibv_sge sge = crowd_bytes((uintptr_t)arg);
	struct ibv_send_wr wr = remote_wr(crowd.s, IBV_WR_RDMA_WRITE, &sge), *bad;

	wr.wr.rdma.remote_addr += 64 * (uintptr_t)arg;
	for (unsigned i = 0; i < N_EACH && !crowd_is_over();) {
		int err;

		wr.wr_id = (uintptr_t)arg * N_EACH + i;
		err = ibv_post_send(crowd.s->l.qp, &wr, &bad);
		i += !err;
		if (err && err != ENOMEM)
			crowd_broken("ibv_post_send failed");
		if (err)
			sched_yield(); /* full: the pollers will make room */
	}
	return NULL;
}
