/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/worker_cmd.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int worker_cmds_init(struct worker_cmds *c)
{
	c->next = NULL;
	c->done_fd = eventfd(0, EFD_CLOEXEC);
	return c->done_fd < 0 ? -errno : 0;
}

void worker_cmds_fini(struct worker_cmds *c)
{
	close(c->done_fd);
}

void worker_cmds_push(struct worker_cmds *c, struct worker_cmd *cmd)
{
	__atomic_store_n(&c->next, cmd, __ATOMIC_RELEASE);
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
	struct worker_cmd *cmd = __atomic_load_n(&c->next, __ATOMIC_ACQUIRE);

	if (!cmd)
		return false;
	__atomic_store_n(&c->next, NULL, __ATOMIC_RELAXED);
	cmd->fn(w, now, cmd->arg);
	/* Cannot fail: the counter is far from full. The caller's cmd is gone after this. */
	if (write(c->done_fd, &one, sizeof(one)) < 0)
		abort();
	return true;
}

bool worker_cmds_pending(const struct worker_cmds *c)
{
	return __atomic_load_n(&c->next, __ATOMIC_RELAXED) != NULL;
}
