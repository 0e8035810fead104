/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/dispatch.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/metrics.h"
#include "dataplane/daemon/neighbours.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/daemon/session.h"

#define REFRESH_S 1 /* counters in the class tree, while they move */

struct control {
	struct daemon *daemon;
	int epoll_fd, listen_fd, signal_fd, poke_fd, timer_fd;
	int reserve_fd; /* given up for a moment when descriptors run out */
	uint32_t poked; /* CONTROL_POKE_*, set by any thread */
	uint32_t is_refreshing;
	bool must_stop;
	struct watch listen_watch, signal_watch, poke_watch, timer_watch;
};

int control_watch(struct control *c, int fd, uint32_t events, struct watch *w)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (!c)
		return 0;
	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void control_unwatch(struct control *c, int fd)
{
	if (c)
		epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void control_poke(struct control *c, uint32_t what)
{
	static const uint64_t one = 1;

	if (!c)
		return;
	if (what == CONTROL_POKE_AWAKE && __atomic_load_n(&c->is_refreshing, __ATOMIC_RELAXED))
		return;
	if (__atomic_fetch_or(&c->poked, what, __ATOMIC_ACQ_REL) & what)
		return;
	if (write(c->poke_fd, &one, sizeof(one)) < 0)
		return; /* full: it is being woken already */
}

void control_stop(struct control *c)
{
	if (c)
		c->must_stop = true;
}

static int listen_at(struct control *c, const struct rundir *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/" RUNDIR_SOCKET, dir->path);
	mode_t mode = geteuid() ? 0600 : 0666; /* root's devices are everybody's, as HCAs are */

	if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	c->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen_fd < 0)
		return -errno;
	/* We hold the directory's lock: what lies there is left from a daemon that was killed. */
	unlinkat(dir->fd, RUNDIR_SOCKET, 0);
	if (bind(c->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    fchmodat(dir->fd, RUNDIR_SOCKET, mode, 0) || listen(c->listen_fd, SOMAXCONN))
		return -errno;
	return 0;
}

static int open_fds(struct control *c)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->poke_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	c->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (c->epoll_fd < 0 || c->signal_fd < 0 || c->poke_fd < 0 || c->timer_fd < 0)
		return -errno;
	return 0;
}

static int watch_own(struct control *c)
{
	int err;

	c->listen_watch.kind = WATCH_LISTEN;
	c->signal_watch.kind = WATCH_SIGNAL;
	c->poke_watch.kind = WATCH_POKE;
	c->timer_watch.kind = WATCH_TIMER;
	err = control_watch(c, c->listen_fd, EPOLLIN, &c->listen_watch);
	if (!err)
		err = control_watch(c, c->signal_fd, EPOLLIN, &c->signal_watch);
	if (!err)
		err = control_watch(c, c->poke_fd, EPOLLIN, &c->poke_watch);
	if (!err)
		err = control_watch(c, c->timer_fd, EPOLLIN, &c->timer_watch);
	return err;
}

int control_create(struct daemon *d)
{
	struct control *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	d->control = c;
	c->daemon = d;
	c->listen_fd = -1;
	err = open_fds(c);
	if (!err)
		err = listen_at(c, &d->dir);
	if (!err)
		err = watch_own(c);
	if (err)
		log_error("%s/" RUNDIR_SOCKET ": %s", d->dir.path, strerror(-err));
	return err;
}

void control_destroy(struct daemon *d)
{
	struct control *c = d->control;
	int fds[] = { c->listen_fd, c->signal_fd,  c->poke_fd,
		      c->timer_fd,  c->reserve_fd, c->epoll_fd };

	d->control = NULL;
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(c);
}

/* Out of descriptors: a connection that cannot be served must not make us spin on it. */
static void turn_away(struct control *c)
{
	close(c->reserve_fd);
	close(accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC));
	c->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	log_warning("out of file descriptors: a client was turned away");
}

static void accept_one(struct control *c)
{
	int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct session *s;
	int err;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(c);
		return;
	}
	err = session_create(&s, c->daemon, fd);
	if (err)
		log_warning("a client was turned away: %s",
			    err == -ENOSPC ? "too many connections" : strerror(-err));
}

static bool wants_flush(struct notify *n)
{
	bool yes;

	pthread_mutex_lock(&n->lock);
	yes = n->n_pending != 0;
	pthread_mutex_unlock(&n->lock);
	return yes;
}

static void want_room(struct control *c, struct notify *n, struct watch *w)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = w };

	if (wants_flush(n))
		epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, n->fd, &ev);
}

/* Some socket was full: ask for room on each that waits. Rare, so a search will do. */
static void find_waiting(struct control *c)
{
	for (unsigned i = 0; i < DAEMON_MAX_SESSIONS; i++) {
		struct session *s = c->daemon->session[i];
		struct channel *ch;
		uint32_t pos = 0;

		if (!s || s->role != SESSION_CLIENT)
			continue;
		want_room(c, &s->async, &s->async_watch);
		while ((ch = handles_next(&s->channels, &pos)))
			want_room(c, &ch->notify, &ch->watch);
	}
}

static void start_refreshing(struct control *c)
{
	struct itimerspec t = { .it_interval.tv_sec = REFRESH_S, .it_value.tv_sec = REFRESH_S };

	__atomic_store_n(&c->is_refreshing, 1, __ATOMIC_RELAXED);
	timerfd_settime(c->timer_fd, 0, &t, NULL);
}

/* Once a second while counters move, and never while they do not. */
static void refresh(struct control *c)
{
	static const struct itimerspec off;
	uint64_t n;

	if (read(c->timer_fd, &n, sizeof(n)) < 0 || metrics_refresh(c->daemon))
		return;
	timerfd_settime(c->timer_fd, 0, &off, NULL);
	__atomic_store_n(&c->is_refreshing, 0, __ATOMIC_RELAXED);
}

static void poked(struct control *c)
{
	uint64_t n;
	uint32_t what;

	if (read(c->poke_fd, &n, sizeof(n)) < 0)
		return;
	what = __atomic_exchange_n(&c->poked, 0, __ATOMIC_ACQ_REL);
	if (what & CONTROL_POKE_FLUSH)
		find_waiting(c);
	if (what & CONTROL_POKE_AWAKE)
		start_refreshing(c);
}

/* An event channel has room, or its program's end is closed (EPOLLHUP comes unasked). */
static void flush(struct control *c, struct watch *w, uint32_t events)
{
	struct notify *n = w->object;
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = w };

	if (events & (EPOLLHUP | EPOLLERR)) {
		control_unwatch(c, n->fd);
		notify_flush(n);
		return;
	}
	if (!notify_flush(n))
		epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, n->fd, &ev);
}

static void handle(struct control *c, const struct epoll_event *ev)
{
	struct watch *w = ev->data.ptr;

	switch (w->kind) {
	case WATCH_LISTEN:
		accept_one(c);
		return;
	case WATCH_SIGNAL:
		c->must_stop = true;
		return;
	case WATCH_POKE:
		poked(c);
		return;
	case WATCH_TIMER:
		refresh(c);
		return;
	case WATCH_SOCKET:
		if (!dispatch_serve(w->object))
			session_destroy(w->object);
		return;
	case WATCH_PROCESS:
		session_destroy(w->object);
		return;
	case WATCH_NOTIFY:
		flush(c, w, ev->events);
		return;
	case WATCH_NEIGHBOURS:
		neighbours_serve(w->object);
		return;
	case WATCH_NETLINK:
		c->daemon->look_at_net(c->daemon->look_at_net_ctx);
		return;
	}
}

int control_run(struct daemon *d)
{
	struct control *c = d->control;
	struct epoll_event ev;

	/* One event at a time: what it is about may end others of the same batch. */
	while (!c->must_stop) {
		int n = epoll_wait(c->epoll_fd, &ev, 1, -1);

		if (n == 1)
			handle(c, &ev);
		else if (n < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}
