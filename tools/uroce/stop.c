/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce stop: asks the daemon to end and waits until it has. */
#include "tools/uroce/cmd.h"

#include "tools/uroce/client.h"
#include "tools/uroce/rundir.h"
#include "tools/uroce/say.h"

#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOP_TIMEOUT_MS 10000

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **run_dir = state->input;

	if (key == 'r') {
		*run_dir = arg;
		return 0;
	}
	if (key == ARGP_KEY_ARG)
		argp_error(state, "no argument is expected: %s", arg);
	return ARGP_ERR_UNKNOWN;
}

static const struct argp stop_argp = {
	.options =
		(const struct argp_option[]) {
			{ "run-dir", 'r', "DIR", 0, "The daemon's run directory", 0 }, { 0 } },
	.parser = parse,
	.doc = "Stops the daemon and waits until it is gone.\v"
	       "Programs that use its devices get errors and IBV_EVENT_DEVICE_FATAL. It is no "
	       "error if no daemon runs.",
};

/* A daemon of another version does not know our ADMIN_STOP, but every version knows SIGTERM. */
static int ask(struct client *c, const char *run_dir, pid_t *pid)
{
	int err = client_connect(c, run_dir);

	if (!err) {
		*pid = c->daemon_pid;
		err = client_call(c, UROCE_OP_ADMIN_STOP, NULL, 0, NULL, 0, NULL);
		/* It may be gone before its answer is written. */
		if (!err || err == -ECONNRESET || err == -EPIPE)
			return 0;
		client_close(c);
	}
	if (err == -ENOENT || err == -ECONNREFUSED || err == -EACCES || err == -EPERM)
		return err;
	err = client_open(c, run_dir);
	if (err)
		return err;
	*pid = c->daemon_pid;
	return *pid > 1 && !kill(*pid, SIGTERM) ? 0 : *pid > 1 ? -errno : -ESRCH;
}

static int poll_once(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int n;

	do
		n = poll(&pfd, 1, STOP_TIMEOUT_MS);
	while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : -ETIMEDOUT;
}

/* A pidfd reads ready when the process has ended; without one the socket's end must do. */
static int wait_gone(const struct client *c, int pidfd)
{
	char byte[64];
	int err;

	if (pidfd >= 0)
		return poll_once(pidfd, POLLIN);
	do
		err = poll_once(c->fd, POLLIN);
	while (!err && recv(c->fd, byte, sizeof(byte), MSG_DONTWAIT) > 0);
	return err;
}

int uroce_stop(int argc, char **argv)
{
	const char *given = NULL;
	char run_dir[PATH_MAX];
	struct client c;
	int pidfd = -1, err;
	pid_t pid = 0;

	if (argp_parse(&stop_argp, argc, argv, 0, NULL, &given) || rundir_find(given, run_dir))
		return UROCE_EXIT_USAGE;
	/* Taken before the daemon is told, so that its number cannot be another's by then. */
	if (!client_open(&c, run_dir)) {
		if (c.daemon_pid > 0)
			pidfd = (int)syscall(SYS_pidfd_open, c.daemon_pid, 0);
		client_close(&c);
	}
	err = ask(&c, run_dir, &pid);
	if (err == -ENOENT || err == -ECONNREFUSED) {
		printf("no daemon runs in %s; there is nothing to stop.\n", run_dir);
		return UROCE_EXIT_OK;
	}
	if (err) {
		say_no_daemon(run_dir, err);
		return UROCE_EXIT_FAIL;
	}
	err = wait_gone(&c, pidfd);
	client_close(&c);
	if (err) {
		say_error("the daemon (pid %d) was told to stop and is still there after %d s. "
			  "See %s/uroced.log; `kill -9 %d` ends it for sure.",
			  pid, STOP_TIMEOUT_MS / 1000, run_dir, pid);
		return UROCE_EXIT_FAIL;
	}
	printf("the daemon in %s (pid %d) has stopped.\n", run_dir, pid);
	return UROCE_EXIT_OK;
}
