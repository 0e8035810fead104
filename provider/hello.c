/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_all(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

static int yama_scope(void)
{
	char text[8] = "";
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return atoi(text);
}

/* Why one process may not touch the other's memory, and what helps. */
static void explain_memory(const struct ucred *daemon, char *text, size_t size)
{
	const char *cure = "run uroced as the same user, or as root with CAP_SYS_PTRACE";

	if (daemon->uid != geteuid())
		snprintf(text, size, "uroced runs as uid %u, this program as uid %u: %s",
			 daemon->uid, geteuid(), cure);
	else if (prctl(PR_GET_DUMPABLE) != 1)
		snprintf(text, size,
			 "this program is not dumpable (set-uid, file capabilities, or "
			 "PR_SET_DUMPABLE): run uroced as root with CAP_SYS_PTRACE");
	else if (yama_scope() > 1)
		snprintf(text, size,
			 "kernel.yama.ptrace_scope is %d: set it to 1 or 0, or run uroced "
			 "as root with CAP_SYS_PTRACE",
			 yama_scope());
	else
		snprintf(text, size,
			 "a container or security module keeps them apart: run uroced in "
			 "the same user and pid namespace, or as root with CAP_SYS_PTRACE");
}

/*
 * Memory that the daemon could not reach. Under Yama it may once we name it as our tracer; that is
 * done only when it is needed, because a process has one such tracer.
 */
static int secure_memory(struct uroce_context *ctx, const struct uroce_hello_rep *rep,
			 const char *device)
{
	struct ucred daemon = { 0 };
	socklen_t len = sizeof(daemon);
	char why[256];
	int err;

	if (!rep->memory_err)
		return 0;
	getsockopt(ctx->ctrl.fd, SOL_SOCKET, SO_PEERCRED, &daemon, &len);
	if (rep->daemon_pid)
		daemon.pid = (pid_t)rep->daemon_pid;
	if (daemon.pid > 0)
		prctl(PR_SET_PTRACER, (unsigned long)daemon.pid, 0, 0, 0);
	err = uroce_context_call(ctx, UROCE_OP_PROBE_MEMORY, NULL, 0, NULL, 0);
	if (!err)
		return 0;
	explain_memory(&daemon, why, sizeof(why));
	uroce_complain(COMPLAIN_MEMORY,
		       "%s: uroced (pid %d) cannot reach this program's memory (%s). %s", device,
		       (int)daemon.pid, strerror(err), why);
	return EPERM;
}

/* The descriptors of the reply: UAR, async socket, one eventfd a worker. */
static int adopt(struct uroce_context *ctx, const struct uroce_hello_rep *rep, int *fds, unsigned n)
{
	if (rep->n_workers < 1 || rep->n_workers > UROCE_MAX_WORKERS || n < 2 + rep->n_workers ||
	    rep->uar_size < UROCE_UAR_PAGE * (1 + rep->n_workers)) {
		close_all(fds, n);
		return EPROTO;
	}
	ctx->uar = uroce_map(fds[0], rep->uar_size);
	if (!ctx->uar) {
		close_all(fds + 1, n - 1);
		return ENOMEM;
	}
	ctx->uar_size = rep->uar_size;
	ctx->vctx.context.async_fd = fds[1];
	ctx->n_workers = rep->n_workers;
	memcpy(ctx->wake_fd, fds + 2, rep->n_workers * sizeof(int));
	close_all(fds + 2 + rep->n_workers, n - 2 - rep->n_workers);
	return 0;
}

int uroce_hello(struct uroce_context *ctx, const char *device, const char *path)
{
	struct uroce_hello hello = { .magic = UROCE_ABI_MAGIC,
				     .version = UROCE_ABI_VERSION,
				     .probe_addr = (uintptr_t)&ctx->probe_word,
				     .client_pid = (uint32_t)getpid(),
				     .flags = ctx->is_imported ? UROCE_HELLO_IMPORT : 0 };
	struct uroce_hello_rep rep;
	int fds[UROCE_CTRL_FDS_MAX];
	struct uroce_ctrl_msg m = { .op = UROCE_OP_HELLO,
				    .body = &hello,
				    .len = sizeof(hello),
				    .send_fd = ctx->vctx.context.cmd_fd,
				    .rep = &rep,
				    .rep_size = sizeof(rep),
				    .fds = fds,
				    .max_fds = UROCE_CTRL_FDS_MAX };
	int err;

	snprintf(hello.device, sizeof(hello.device), "%s", device);
	err = uroce_ctrl_call(&ctx->ctrl, &m);
	if (err == EPROTO || (!err && rep.version != UROCE_ABI_VERSION)) {
		uroce_complain(
			COMPLAIN_VERSION,
			"%s: this provider speaks version %u of uroce's interface, the daemon at "
			"%s (uroced %.32s) version %u: install the same release of both",
			device, UROCE_ABI_VERSION, path, rep.daemon_version, rep.version);
		close_all(fds, m.n_fds);
		return EPROTO;
	}
	if (err && ctx->is_imported)
		return err;
	if (err) {
		uroce_complain(COMPLAIN_PROTOCOL, "%s: the daemon at %s did not open it: %s",
			       device, path, strerror(err));
		return err;
	}
	err = adopt(ctx, &rep, fds, m.n_fds);
	if (err) {
		uroce_complain(COMPLAIN_PROTOCOL, "%s: the daemon at %s sent a malformed answer",
			       device, path);
		return err;
	}
	if (ctx->is_imported)
		err = uroce_share_settle(ctx, rep.device);
	if (!err)
		err = secure_memory(ctx, &rep, device);
	if (err)
		uroce_hello_undo(ctx);
	return err;
}

void uroce_hello_undo(struct uroce_context *ctx)
{
	uroce_unmap(ctx->uar, ctx->uar_size);
	ctx->uar = NULL;
	if (uroce_ctrl_is_ours(&ctx->ctrl))
		close_all(ctx->wake_fd, ctx->n_workers);
	ctx->n_workers = 0;
}
