/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/worker_cmd.h"

#include <errno.h>
#include <rte_ring.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RING_SIZE 8u /* the control thread waits for each call */

int worker_cmds_init(struct worker_cmds *c)
{
	ssize_t size = rte_ring_get_memsize(RING_SIZE);

	c->done_fd = eventfd(0, EFD_CLOEXEC);
	if (c->done_fd < 0)
		return -errno;
	c->ring = aligned_alloc(RTE_CACHE_LINE_SIZE,
				(size_t)RTE_ALIGN_CEIL(size, (ssize_t)RTE_CACHE_LINE_SIZE));
	if (!c->ring) {
		close(c->done_fd);
		return -ENOMEM;
	}
	return rte_ring_init(c->ring, "calls", RING_SIZE, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

void worker_cmds_fini(struct worker_cmds *c)
{
	close(c->done_fd);
	free(c->ring);
}

void worker_cmds_push(struct worker_cmds *c, struct worker_cmd *cmd)
{
	rte_ring_enqueue(c->ring, cmd);
}

void worker_cmds_wait(struct worker_cmds *c)
{
	uint64_t n;

	while (read(c->done_fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

bool worker_cmds_run(struct worker_cmds *c, struct worker *w, uint64_t now)
{
	static const uint64_t one = 1;
	struct worker_cmd *cmd;
	void *p;

	if (rte_ring_dequeue(c->ring, &p))
		return false;
	cmd = p;
	cmd->fn(w, now, cmd->arg);
	/* Cannot fail: the counter is far from full. The caller's cmd is gone after this. */
	if (write(c->done_fd, &one, sizeof(one)) < 0)
		abort();
	return true;
}

bool worker_cmds_pending(const struct worker_cmds *c)
{
	return !rte_ring_empty(c->ring);
}
