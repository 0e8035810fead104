/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rte_pause.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "dataplane/abi/backoff.h"
#include "dataplane/abi/ring.h"
#include "dataplane/daemon/config.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/worker_cmd.h"
#include "dataplane/engine.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/slice.h"
#include "fabric/link/link.h"

#define BURST         32u
#define MAX_POSTPONED 128u
#define EMPTY_SOCKET  32u /* as many looks at memory as a socket that has nothing takes time */
#define SLICE_NS      500000u /* shorter ones come straight back from a yield */

struct worker_device {
	struct engine *engine;
	struct link_port *port;
	struct frame *spare[BURST]; /* empty frames, kept for the next engine_tx */
	unsigned n_spare;
};

struct worker {
	struct worker_conf conf;
	struct worker_device dev[CONFIG_MAX_DEVICES];
	unsigned n_dev;
	struct worker_doorbells *bells;
	unsigned n_bells, room_bells;
	struct worker_cmds cmds;
	struct uroce_backoff backoff;
	int epoll_fd, wake_fd;
	uint32_t is_asleep; /* shared: relaxed, ordered by full fences on both sides */
	uint32_t must_stop;
	uint64_t turns, sleeps;
	bool has_backlog;     /* a link gave a full burst in this turn: there may be more */
	unsigned n_postponed; /* turns since timers were looked at */
	bool is_tx_stuck; /* an engine has packets that its link did not take */
	unsigned n_sockets; /* ports that are asked by a system call each */
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t start_lock; /* start-up handshake only */
	pthread_cond_t start_cond;
	int start_err; /* 1: not known yet */
};

static bool rx(struct worker *w, struct worker_device *d, uint64_t now)
{
	struct frame *f[BURST];
	unsigned n = d->port->ops->rx(d->port, now, f, BURST);

	if (!n)
		return false;
	engine_rx(d->engine, now, (const struct frame *const *)f, n);
	d->port->ops->free(d->port, f, n);
	w->has_backlog |= n == BURST;
	return true;
}

static bool tx(struct worker *w, struct worker_device *d, uint64_t now)
{
	const struct link_ops *ops = d->port->ops;
	unsigned room, n;

	if (!engine_tx_pending(d->engine))
		return false;
	room = ops->tx_room(d->port);
	if (room > BURST)
		room = BURST;
	if (d->n_spare < room)
		d->n_spare += ops->alloc(d->port, d->spare + d->n_spare, room - d->n_spare);
	if (room > d->n_spare)
		room = d->n_spare;
	n = room ? engine_tx(d->engine, now, d->spare, room) : 0;
	if (n) {
		ops->tx(d->port, now, d->spare, n);
		d->n_spare -= n;
		memmove(d->spare, d->spare + n, d->n_spare * sizeof(*d->spare));
	}
	if (engine_tx_pending(d->engine))
		w->is_tx_stuck = true;
	return n != 0;
}

static void ring_word(const struct worker_doorbells *b, uint64_t now, uint32_t word)
{
	uint64_t bits = uroce_uar_take_bits(b->page, word);

	for (; bits; bits &= bits - 1) {
		uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
		uint32_t qpn = __atomic_load_n(&b->qpn_of_slot[slot], __ATOMIC_RELAXED);

		if (qpn)
			engine_doorbell(b->engine, now, qpn);
	}
}

static bool scan_doorbells(struct worker *w, uint64_t now)
{
	bool found = false;

	for (unsigned i = 0; i < w->n_bells; i++) {
		const struct worker_doorbells *b = &w->bells[i];

		for (uint32_t s = 0; s < UROCE_UAR_SUMMARY; s++) {
			uint64_t sum = uroce_uar_take_summary(b->page, s);

			if (!sum)
				continue;
			found = true;
			__atomic_store_n(b->clock, now, __ATOMIC_RELAXED);
			for (; sum; sum &= sum - 1)
				ring_word(b, now, s * 64 + (uint32_t)__builtin_ctzll(sum));
		}
	}
	return found;
}

/*
 * A worker that comes late finds timers due and, behind the first burst, the very packets they wait
 * for. So timers wait for those, but not for ever: under steady load every burst is full.
 */
static bool may_expire(struct worker *w)
{
	if (w->has_backlog && ++w->n_postponed < MAX_POSTPONED)
		return false;
	w->n_postponed = 0;
	return true;
}

/* True when something happened. */
static bool turn(struct worker *w)
{
	uint64_t now = clock_now();
	bool is_busy = worker_cmds_run(&w->cmds, w, now), can_expire;

	__atomic_store_n(&w->turns, w->turns + 1, __ATOMIC_RELAXED);
	w->is_tx_stuck = false;
	w->has_backlog = false;
	for (unsigned i = 0; i < w->n_dev; i++)
		is_busy |= rx(w, &w->dev[i], now);
	can_expire = may_expire(w);
	is_busy |= scan_doorbells(w, now);
	for (unsigned i = 0; i < w->n_dev; i++) {
		if (can_expire && engine_deadline(w->dev[i].engine) <= now) {
			engine_expire(w->dev[i].engine, now);
			is_busy = true;
		}
		is_busy |= tx(w, &w->dev[i], now);
	}
	return is_busy;
}

static uint64_t next_deadline(const struct worker *w)
{
	uint64_t t = UINT64_MAX;

	for (unsigned i = 0; i < w->n_dev; i++) {
		uint64_t e = engine_deadline(w->dev[i].engine);
		uint64_t l = w->dev[i].port->ops->deadline(w->dev[i].port);

		t = e < t ? e : t;
		t = l < t ? l : t;
	}
	return t;
}

static void set_asleep(struct worker *w, uint32_t is_asleep)
{
	__atomic_store_n(&w->is_asleep, is_asleep, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < w->n_bells; i++)
		uroce_uar_set_need_wakeup(w->bells[i].page, is_asleep);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void wait_until(struct worker *w, uint64_t deadline)
{
	struct pollfd p = { .fd = w->epoll_fd, .events = POLLIN };
	struct epoll_event ev[64];
	struct timespec ts, *timeout = NULL;
	uint64_t now = clock_now();

	if (deadline != UINT64_MAX) {
		uint64_t ns = deadline > now ? deadline - now : 0;

		ts = (struct timespec) { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
		timeout = &ts;
	}
	/* Edge-triggered: taking the events is enough, nobody's counter is read. */
	if (ppoll(&p, 1, timeout, NULL) > 0)
		while (epoll_wait(w->epoll_fd, ev, 64, 0) == 64)
			;
}

static void sleep_until_work(struct worker *w)
{
	set_asleep(w, 1);
	/* Whoever published before this fence is seen by this turn; whoever comes later sees us
	 * asleep. */
	if (!turn(w) && !w->is_tx_stuck && !__atomic_load_n(&w->must_stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(&w->sleeps, w->sleeps + 1, __ATOMIC_RELAXED);
		wait_until(w, next_deadline(w));
		if (w->conf.woken)
			w->conf.woken(w->conf.ctx);
	}
	set_asleep(w, 0);
	uroce_backoff_busy(&w->backoff);
}

static void idle(struct worker *w)
{
	uint64_t t;

	w->backoff.empty += w->n_sockets * EMPTY_SOCKET;
	if (!uroce_backoff_due(&w->backoff)) {
		rte_pause();
		return;
	}
	t = clock_now();
	switch (uroce_backoff_next(&w->backoff, t)) {
	case UROCE_BACKOFF_PAUSE:
		rte_pause();
		return;
	case UROCE_BACKOFF_SLEEP:
		if (!w->is_tx_stuck) {
			sleep_until_work(w);
			return;
		}
		/* fall through */
	case UROCE_BACKOFF_YIELD:
		sched_yield();
		uroce_backoff_yielded(&w->backoff, clock_now() - t);
		return;
	}
}

static void started(struct worker *w, int err)
{
	pthread_mutex_lock(&w->start_lock);
	w->start_err = err;
	pthread_cond_signal(&w->start_cond);
	pthread_mutex_unlock(&w->start_lock);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	int err = w->conf.enter ? w->conf.enter() : 0;

	/* Retransmission timers are in microseconds; the default slack is 50 of them. */
	prctl(PR_SET_TIMERSLACK, 1);
	/* Programs that wait for their memory to change never give a core away: be put ahead. */
	slice_set(SLICE_NS);
	started(w, err);
	if (err)
		return NULL;
	uroce_backoff_init(&w->backoff);
	while (!__atomic_load_n(&w->must_stop, __ATOMIC_RELAXED)) {
		if (turn(w))
			uroce_backoff_busy(&w->backoff);
		else
			idle(w);
	}
	return NULL;
}

static int watch(struct worker *w, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };

	return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

struct worker *worker_create(const struct worker_conf *conf, int *err)
{
	struct worker *w = aligned_alloc(UROCE_CACHE_LINE, (sizeof(*w) + 63) & ~(size_t)63);

	*err = -ENOMEM;
	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->conf = *conf;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->wake_fd < 0)
		*err = -errno;
	else
		*err = watch(w, w->wake_fd, EPOLLIN | EPOLLET);
	if (!*err)
		*err = worker_cmds_init(&w->cmds);
	if (!*err) {
		pthread_mutex_init(&w->start_lock, NULL);
		pthread_cond_init(&w->start_cond, NULL);
		return w;
	}
	close(w->epoll_fd);
	close(w->wake_fd);
	free(w);
	return NULL;
}

void worker_destroy(struct worker *w)
{
	for (unsigned i = 0; i < w->n_dev; i++)
		w->dev[i].port->ops->free(w->dev[i].port, w->dev[i].spare, w->dev[i].n_spare);
	worker_cmds_fini(&w->cmds);
	close(w->epoll_fd);
	close(w->wake_fd);
	free(w->bells);
	free(w);
}

int worker_start(struct worker *w)
{
	int err;

	w->start_err = 1;
	err = pthread_create(&w->thread, NULL, run, w);
	if (err)
		return -err;
	pthread_setname_np(w->thread, "uroce-worker");
	pthread_mutex_lock(&w->start_lock);
	while (w->start_err > 0)
		pthread_cond_wait(&w->start_cond, &w->start_lock);
	err = w->start_err;
	pthread_mutex_unlock(&w->start_lock);
	if (err)
		pthread_join(w->thread, NULL);
	else
		w->has_thread = true;
	return err;
}

void worker_stop(struct worker *w)
{
	if (!w->has_thread)
		return;
	__atomic_store_n(&w->must_stop, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	worker_wake(w);
	pthread_join(w->thread, NULL);
	w->has_thread = false;
}

void worker_wake(struct worker *w)
{
	static const uint64_t one = 1;

	/* EAGAIN: the counter is full, so the worker is being woken anyway. */
	if (__atomic_load_n(&w->is_asleep, __ATOMIC_RELAXED) &&
	    write(w->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void worker_call(struct worker *w, worker_fn *fn, void *arg)
{
	struct worker_cmd cmd = { fn, arg };

	if (!w->has_thread) {
		fn(w, clock_now(), arg);
		return;
	}
	worker_cmds_push(&w->cmds, &cmd);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	worker_wake(w);
	worker_cmds_wait(&w->cmds);
}

void worker_get_status(const struct worker *w, struct worker_status *out)
{
	out->turns = __atomic_load_n(&w->turns, __ATOMIC_RELAXED);
	out->sleeps = __atomic_load_n(&w->sleeps, __ATOMIC_RELAXED);
	out->is_asleep = __atomic_load_n(&w->is_asleep, __ATOMIC_RELAXED) != 0;
}

int worker_add_device(struct worker *w, struct engine *engine, struct link_port *port)
{
	int fd = port->ops->wait_fd(port);

	if (w->n_dev == CONFIG_MAX_DEVICES)
		return -ENOSPC;
	w->dev[w->n_dev++] = (struct worker_device) { .engine = engine, .port = port };
	if (fd < 0)
		return 0;
	w->n_sockets++;
	/* Level-triggered: the next turn empties the link. */
	return watch(w, fd, EPOLLIN);
}

void worker_del_device(struct worker *w, const struct link_port *port)
{
	unsigned at = 0;
	int fd;

	while (at < w->n_dev && w->dev[at].port != port)
		at++;
	if (at == w->n_dev)
		return;
	fd = port->ops->wait_fd(port);
	if (fd >= 0) {
		epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		w->n_sockets--;
	}
	port->ops->free(w->dev[at].port, w->dev[at].spare, w->dev[at].n_spare);
	w->n_dev--;
	memmove(w->dev + at, w->dev + at + 1, (w->n_dev - at) * sizeof(w->dev[0]));
}

int worker_add_doorbells(struct worker *w, const struct worker_doorbells *d)
{
	int err;

	if (w->n_bells == w->room_bells) {
		unsigned room = w->room_bells ? w->room_bells * 2 : 16;
		struct worker_doorbells *b = realloc(w->bells, room * sizeof(*b));

		if (!b)
			return -ENOMEM;
		w->bells = b;
		w->room_bells = room;
	}
	/* One descriptor a session, edge-triggered: who rings without end wakes us, and no more. */
	err = watch(w, d->event_fd, EPOLLIN | EPOLLET);
	if (!err)
		w->bells[w->n_bells++] = *d;
	return err;
}

void worker_del_doorbells(struct worker *w, const struct uroce_uar_worker *page)
{
	for (unsigned i = 0; i < w->n_bells; i++) {
		if (w->bells[i].page != page)
			continue;
		epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, w->bells[i].event_fd, NULL);
		w->bells[i] = w->bells[--w->n_bells];
		return;
	}
}
