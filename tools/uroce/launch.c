/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/launch.h"

#include "tools/uroce/client.h"
#include "tools/uroce/place.h"
#include "tools/uroce/rundir.h"
#include "tools/uroce/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_TIMEOUT_MS 30000
#define READY_FD         3

static int open_in(const char *run_dir, const char *name, int flags)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", run_dir, name);

	if (n <= 0 || n >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* In the daemon-to-be: nothing of the caller stays but its user, its environment and limits. */
static void become_daemon(const char *exe, const char *run_dir, int log, int ready)
{
	char fd_text[16];
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Out of the way of 0 to 3 first, which are about to be overwritten. */
	log = fcntl(log, F_DUPFD, 10);
	ready = fcntl(ready, F_DUPFD, 10);
	if (null < 0 || log < 0 || ready < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 ||
	    dup2(log, 2) < 0 || dup2(ready, READY_FD) < 0)
		_exit(1);
	close_range(READY_FD + 1, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < SIGRTMIN; sig++)
		signal(sig, SIG_DFL);
	if (chdir("/"))
		_exit(1);
	snprintf(fd_text, sizeof(fd_text), "%d", READY_FD);
	execl(exe, "uroced", "--run-dir", run_dir, "--ready-fd", fd_text, (char *)NULL);
	dprintf(2, "uroced: %s cannot be started: %s\n", exe, strerror(errno));
	_exit(1);
}

/* The last lines that this start wrote to the log, which say why it failed. */
static void show_log(int log, off_t from)
{
	char text[2048];
	ssize_t n;
	off_t end = lseek(log, 0, SEEK_END);

	if (end - from > (off_t)sizeof(text) - 1)
		from = end - ((off_t)sizeof(text) - 1);
	n = pread(log, text, sizeof(text) - 1, from);
	if (n <= 0)
		return;
	text[n] = '\0';
	fputs(text, stderr);
	if (text[n - 1] != '\n')
		fputc('\n', stderr);
}

static int wait_ready(int ready)
{
	struct pollfd pfd = { .fd = ready, .events = POLLIN };
	char byte;
	int n;

	do
		n = poll(&pfd, 1, READY_TIMEOUT_MS);
	while (n < 0 && errno == EINTR);
	if (!n)
		return -ETIMEDOUT;
	return read(ready, &byte, 1) == 1 ? 0 : -ECHILD;
}

static int start(const char *exe, const char *run_dir, int log)
{
	int ready[2];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(ready[0]);
		close(ready[1]);
		return err;
	}
	if (!pid) {
		/* The second fork: the program that we become must not find a child it never made.
		 */
		setsid();
		pid = fork();
		if (!pid)
			become_daemon(exe, run_dir, log, ready[1]);
		_exit(pid < 0);
	}
	close(ready[1]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	pid = wait_ready(ready[0]);
	close(ready[0]);
	return pid;
}

static int start_and_tell(const char *run_dir)
{
	char exe[PATH_MAX];
	struct client c;
	off_t from;
	int log, err;

	if (!place_find_daemon(exe)) {
		say_error("no daemon runs in %s, and uroced is neither beside this command nor in "
			  "PATH, so none can be started. Build or install uroce completely.",
			  run_dir);
		return -ENOENT;
	}
	log = open_in(run_dir, "uroced.log", O_RDWR | O_CREAT | O_APPEND);
	if (log < 0) {
		err = -errno;
		say_error("%s/uroced.log cannot be written (%s), so no daemon is started.", run_dir,
			  strerror(-err));
		return err;
	}
	from = lseek(log, 0, SEEK_END);
	err = start(exe, run_dir, log);
	if (err) {
		/* Somebody may have started one by hand meanwhile; then ours has given way. */
		if (!client_connect(&c, run_dir)) {
			client_close(&c);
			err = 0;
		} else {
			say_error("the daemon %s %s. Its own words (%s/uroced.log):", exe,
				  err == -ETIMEDOUT ? "did not get ready in 30 s"
						    : "could not start",
				  run_dir);
			show_log(log, from);
		}
	}
	close(log);
	return err;
}

static int check_or_start(const char *run_dir)
{
	struct client c;
	int err = client_connect(&c, run_dir);

	if (!err) {
		client_close(&c);
		return 0;
	}
	if (err != -ENOENT && err != -ECONNREFUSED) {
		say_no_daemon(run_dir, err);
		return err;
	}
	err = rundir_make(run_dir);
	return err ? err : start_and_tell(run_dir);
}

int launch_ensure(const char *run_dir)
{
	struct client c;
	int lock, err;

	/* The common case needs no lock, nor a run directory that we may write to. */
	if (!client_connect(&c, run_dir)) {
		client_close(&c);
		return 0;
	}
	if (access(run_dir, F_OK)) {
		err = rundir_make(run_dir);
		if (err)
			return err;
	}
	lock = open_in(run_dir, "start.lock", O_RDWR | O_CREAT);
	if (lock >= 0)
		while (flock(lock, LOCK_EX) && errno == EINTR)
			;
	err = check_or_start(run_dir);
	if (lock >= 0)
		close(lock);
	return err;
}
