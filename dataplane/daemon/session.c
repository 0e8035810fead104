/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/daemon/share.h"
#include "dataplane/daemon/worker.h"
#include "dataplane/host/appmem.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* One user who is not ours must not keep all others out. */
#define MAX_PER_USER (DAEMON_MAX_SESSIONS / 2)
/* Events of all types that can wait for all objects of a session. */
#define MAX_ASYNC_PENDING (8 * (SESSION_MAX_QP + SESSION_MAX_CQ + SESSION_MAX_SRQ))
#define SLOT_MAP_SIZE (UROCE_CTX_QPS * sizeof(uint32_t))

static void read_comm(struct session *s)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)s->pid);
	f = fopen(path, "re");
	if (f && fgets(s->comm, sizeof(s->comm), f))
		s->comm[strcspn(s->comm, "\n")] = 0;
	if (f)
		fclose(f);
	/* It ends up in JSON, which wants UTF-8. */
	for (char *p = s->comm; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

static int identify(struct session *s)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(s->sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	s->pid = cred.pid;
	s->uid = cred.uid;
	len = sizeof(s->pidfd);
	if (getsockopt(s->sock, SOL_SOCKET, SO_PEERPIDFD, &s->pidfd, &len)) {
		/* 0: a process that our pid namespace does not show. */
		s->pidfd = s->pid > 0 ? (int)syscall(SYS_pidfd_open, s->pid, 0) : -1;
		if (s->pid > 0 && s->pidfd < 0)
			return -errno;
	}
	read_comm(s);
	return 0;
}

static int take_id(struct daemon *d, struct session *s)
{
	uint32_t free_id = DAEMON_MAX_SESSIONS, of_user = 0;

	for (uint32_t i = DAEMON_MAX_SESSIONS; i-- > 0;) {
		if (!d->session[i])
			free_id = i;
		else
			of_user += d->session[i]->uid == s->uid;
	}
	if (free_id == DAEMON_MAX_SESSIONS ||
	    (of_user >= MAX_PER_USER && s->uid && s->uid != geteuid()))
		return -ENOSPC;
	s->id = free_id;
	return 0;
}

int session_create(struct session **out, struct daemon *d, int sock)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		close(sock);
		return -ENOMEM;
	}
	s->daemon = d;
	s->sock = sock;
	s->pidfd = s->cmd_fd = s->fd_in = -1;
	err = identify(s);
	if (!err)
		err = take_id(d, s);
	if (!err) {
		s->sock_watch = (struct watch){ WATCH_SOCKET, s };
		s->pid_watch = (struct watch){ WATCH_PROCESS, s };
		err = control_watch(d->control, sock, EPOLLIN, &s->sock_watch);
	}
	if (!err && s->pidfd >= 0)
		err = control_watch(d->control, s->pidfd, EPOLLIN, &s->pid_watch);
	if (err) {
		if (s->pidfd >= 0)
			close(s->pidfd);
		close(sock);
		free(s);
		return err;
	}
	__atomic_store_n(&d->session[s->id], s, __ATOMIC_RELEASE);
	*out = s;
	return 0;
}

void session_open_memory(struct session *s)
{
	s->memory_err = appmem_open(&s->mem, s->pid, s->uid);
	if (!s->memory_err)
		s->memory_err = appmem_probe(s->mem, s->probe_addr);
	if (s->memory_err) {
		appmem_close(s->mem);
		s->mem = NULL;
	}
}

struct doorbell_call {
	struct session *s;
	unsigned worker;
	int err;
};

static void join_worker(struct worker *w, uint64_t now, void *arg)
{
	struct doorbell_call *c = arg;
	struct worker_doorbells bells = {
		.page = session_uar_worker(c->s, c->worker),
		.engine = c->s->dev->engine[c->worker],
		.qpn_of_slot = c->s->qpn_of_slot,
		.clock = &session_uar(c->s)->clock_ns,
		.event_fd = c->s->event_fd[c->worker],
	};

	(void)now;
	c->err = worker_add_doorbells(w, &bells);
}

static int join_workers(struct session *s)
{
	for (unsigned w = 0; w < s->daemon->n_workers; w++) {
		struct doorbell_call c = { s, w, 0 };

		worker_call(s->daemon->worker[w], join_worker, &c);
		if (c.err)
			return c.err;
	}
	return 0;
}

/* One worker forgets the session: its QPs, then what those used, then its doorbells. */
static void leave_worker(struct worker *w, uint64_t now, void *arg)
{
	const struct doorbell_call *c = arg;
	struct engine *e = c->s->dev->engine[c->worker];
	struct cmd_reply unused;
	struct cmd cmd;
	uint32_t pos = 0;
	void *o;

	for (cmd.op = ENGINE_QP_DEL; (o = handles_next(&c->s->qps, &pos));) {
		cmd.key = ((const struct qp *)o)->qpn;
		if (((const struct qp *)o)->xrcd) /* others may hold it */
			continue;
		if (((const struct qp *)o)->worker == c->worker)
			engine_command(e, now, &cmd, &unused);
	}
	for (cmd.op = ENGINE_SRQ_DEL, pos = 0; (o = handles_next(&c->s->srqs, &pos));) {
		cmd.key = ((const struct srq *)o)->srqn;
		engine_command(e, now, &cmd, &unused);
	}
	for (cmd.op = ENGINE_CQ_DEL, pos = 0; (o = handles_next(&c->s->cqs, &pos));) {
		cmd.key = ((const struct cq *)o)->cqn;
		engine_command(e, now, &cmd, &unused);
	}
	for (cmd.op = ENGINE_MW_DEL, pos = 0; (o = handles_next(&c->s->mws, &pos));) {
		cmd.key = ((const struct mw *)o)->key;
		engine_command(e, now, &cmd, &unused);
	}
	for (cmd.op = ENGINE_MR_KILL, pos = 0; (o = handles_next(&c->s->mrs, &pos));) {
		cmd.key = ((const struct mr *)o)->key;
		engine_command(e, now, &cmd, &unused);
	}
	for (cmd.op = ENGINE_AH_DEL, pos = 0; (o = handles_next(&c->s->ahs, &pos));) {
		cmd.key = ((const struct ah *)o)->number;
		engine_command(e, now, &cmd, &unused);
	}
	worker_del_doorbells(w, session_uar_worker(c->s, c->worker));
}

static void leave_workers(struct session *s)
{
	for (unsigned w = 0; w < s->daemon->n_workers; w++) {
		struct doorbell_call c = { s, w, 0 };

		worker_call(s->daemon->worker[w], leave_worker, &c);
	}
}

/* No engine knows any of them any more: what each leaves behind, users before used. */
static void free_objects(struct session *s)
{
	uint32_t pos = 0;
	void *o;

	for (pos = 0; (o = handles_next(&s->qps, &pos));)
		qp_free(s, o);
	for (pos = 0; (o = handles_next(&s->srqs, &pos));)
		srq_free(s, o);
	for (pos = 0; (o = handles_next(&s->cqs, &pos));)
		cq_free(s, o);
	for (pos = 0; (o = handles_next(&s->xrcds, &pos));)
		xrcd_free(s, o);
	for (pos = 0; (o = handles_next(&s->mws, &pos));)
		mw_free(s, o);
	for (pos = 0; (o = handles_next(&s->mrs, &pos));)
		mr_free(s, o);
	for (pos = 0; (o = handles_next(&s->channels, &pos));)
		channel_free(s, o);
	for (pos = 0; (o = handles_next(&s->ahs, &pos));)
		ah_free(s, o);
	for (pos = 0; (o = handles_next(&s->dms, &pos));)
		dm_free(o);
	for (pos = 0; (o = handles_next(&s->pds, &pos));)
		pd_drop(s, o);
	handles_free(&s->qps);
	handles_free(&s->srqs);
	handles_free(&s->xrcds);
	handles_free(&s->cqs);
	handles_free(&s->mws);
	handles_free(&s->mrs);
	handles_free(&s->channels);
	handles_free(&s->ahs);
	handles_free(&s->pds);
	handles_free(&s->dms);
}

static int make_uar(struct session *s)
{
	unsigned n = s->daemon->n_workers;
	int err = shm_create(&s->uar, "uroce-uar", (size_t)UROCE_UAR_PAGE * (1 + n));
	struct uroce_uar *uar;

	if (err)
		return err;
	uar = session_uar(s);
	uar->magic = UROCE_ABI_MAGIC;
	uar->version = UROCE_ABI_VERSION;
	uar->n_workers = n;
	return 0;
}

static int make_event_fds(struct session *s)
{
	for (unsigned w = 0; w < s->daemon->n_workers; w++) {
		s->event_fd[w] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (s->event_fd[w] < 0)
			return -errno;
	}
	return 0;
}

static void close_event_fds(struct session *s)
{
	for (unsigned w = 0; w < s->daemon->n_workers; w++)
		if (s->event_fd[w] >= 0)
			close(s->event_fd[w]);
}

static int make_slots(struct session *s)
{
	void *map = mmap(NULL, SLOT_MAP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	s->qpn_of_slot = map;
	return numbers_init(&s->slots, 0, UROCE_CTX_QPS);
}

static void free_slots(struct session *s)
{
	if (s->qpn_of_slot)
		munmap(s->qpn_of_slot, SLOT_MAP_SIZE);
	s->qpn_of_slot = NULL;
	numbers_free(&s->slots);
}

static void init_handles(struct session *s)
{
	handles_init(&s->pds, SESSION_MAX_PD);
	handles_init(&s->mws, SESSION_MAX_MW);
	handles_init(&s->mrs, SESSION_MAX_MR);
	handles_init(&s->cqs, SESSION_MAX_CQ);
	handles_init(&s->qps, SESSION_MAX_QP);
	handles_init(&s->srqs, SESSION_MAX_SRQ);
	handles_init(&s->xrcds, SESSION_MAX_XRCD);
	handles_init(&s->ahs, SESSION_MAX_AH);
	handles_init(&s->channels, SESSION_MAX_CHANNEL);
	handles_init(&s->dms, SESSION_MAX_DM);
}

static void close_async(struct session *s)
{
	control_unwatch(s->daemon->control, s->async.fd);
	notify_close(&s->async);
}

/* *async_fd: the client's end, the caller's from now on. */
static int open_async(struct session *s, int *async_fd)
{
	int err = notify_open(&s->async, sizeof(struct uroce_async_record), MAX_ASYNC_PENDING,
			      async_fd);

	if (err)
		return err;
	s->async_watch = (struct watch){ WATCH_NOTIFY, &s->async };
	err = control_watch(s->daemon->control, s->async.fd, 0, &s->async_watch);
	if (err) {
		close(*async_fd);
		notify_close(&s->async);
	}
	return err;
}

int session_open(struct session *s, struct device *dev, uint64_t probe_addr, int *async_fd)
{
	int err;

	s->dev = dev;
	s->probe_addr = probe_addr;
	memset(s->event_fd, -1, sizeof(s->event_fd));
	init_handles(s);
	err = make_uar(s);
	if (err)
		return err;
	err = make_event_fds(s);
	if (!err)
		err = make_slots(s);
	if (!err)
		err = open_async(s, async_fd);
	if (err)
		goto free_parts;
	err = join_workers(s);
	if (err)
		goto leave;
	session_open_memory(s);
	s->role = SESSION_CLIENT;
	device_hold(dev);
	return 0;
leave:
	leave_workers(s);
	close(*async_fd);
	close_async(s);
free_parts:
	free_slots(s);
	close_event_fds(s);
	shm_destroy(&s->uar);
	return err;
}

static void close_client(struct session *s)
{
	appmem_retire(s->mem);
	xrc_targets_leave(s);
	leave_workers(s);
	free_objects(s);
	close_async(s);
	free_slots(s);
	close_event_fds(s);
	shm_destroy(&s->uar);
	appmem_close(s->mem);
	if (s->cmd_fd >= 0)
		close(s->cmd_fd);
	device_release(s->dev);
}

void session_destroy(struct session *s)
{
	struct daemon *d = s->daemon;

	log_debug("client %u (pid %d %s) left", s->id, (int)s->pid, s->comm);
	control_unwatch(d->control, s->sock);
	if (s->pidfd >= 0)
		control_unwatch(d->control, s->pidfd);
	if (s->role == SESSION_CLIENT)
		close_client(s);
	__atomic_store_n(&d->session[s->id], NULL, __ATOMIC_RELEASE);
	share_forget(s);
	if (s->pidfd >= 0)
		close(s->pidfd);
	close(s->sock);
	free(s);
}

int session_charge(struct session *s, uint64_t n)
{
	if (n > SESSION_MAX_BYTES - s->bytes)
		return -ENOMEM;
	s->bytes += n;
	return 0;
}

void session_refund(struct session *s, uint64_t n)
{
	s->bytes -= n;
}

void session_event(struct session *s, uint64_t element, uint32_t type)
{
	struct uroce_async_record rec = { .element = element, .type = type };

	if (notify_send(&s->async, &rec))
		control_poke(s->daemon->control, CONTROL_POKE_FLUSH);
}
