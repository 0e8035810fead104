/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/host/notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * A channel of the kernel's polls readable and nothing else, and programs rely on it. A socket is
 * writable as long as its send buffer has room: make the buffer small and fill it with bytes that
 * our end never reads.
 */
static int suppress_pollout(int fd)
{
	static const char junk[2048];
	int size = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)))
		return -errno;
	for (unsigned i = 0; i < 64; i++)
		if (send(fd, junk, sizeof(junk), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return errno == EAGAIN ? 0 : -errno;
	return 0;
}

int notify_open(struct notify *n, unsigned len, unsigned max_pending, int *client_fd)
{
	int sv[2], err;

	memset(n, 0, sizeof(*n));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		return -errno;
	err = suppress_pollout(sv[1]);
	if (err) {
		close(sv[0]);
		close(sv[1]);
		return err;
	}
	pthread_mutex_init(&n->lock, NULL);
	n->fd = sv[0];
	n->len = len;
	n->max_pending = max_pending;
	*client_fd = sv[1];
	return 0;
}

void notify_close(struct notify *n)
{
	close(n->fd);
	n->fd = -1;
	free(n->pending);
	n->pending = NULL;
	n->n_pending = 0;
	pthread_mutex_destroy(&n->lock);
}

/* True: sent, or nobody is there to miss it. */
static bool try_send(struct notify *n, const void *record)
{
	ssize_t r;

	do
		r = send(n->fd, record, n->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	if (r == (ssize_t)n->len)
		return true;
	/* A stream socket takes a record of 8 or 16 bytes whole or not at all. */
	if (r < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
		return false;
	n->is_dead = true;
	return true;
}

static struct notify_pending *pending_slot(struct notify *n, const void *record)
{
	struct notify_pending *p;

	for (unsigned i = 0; i < n->n_pending; i++)
		if (!memcmp(n->pending[i].record, record, n->len))
			return &n->pending[i];
	if (n->n_pending == n->max_pending)
		return NULL;
	if (n->n_pending == n->n_room) {
		unsigned room = n->n_room ? n->n_room * 2 : 16;

		p = realloc(n->pending, room * sizeof(*p));
		if (!p)
			return NULL;
		n->pending = p;
		n->n_room = room;
	}
	p = &n->pending[n->n_pending++];
	memset(p, 0, sizeof(*p));
	memcpy(p->record, record, n->len);
	return p;
}

bool notify_send(struct notify *n, const void *record)
{
	struct notify_pending *p;
	bool is_new = false;

	pthread_mutex_lock(&n->lock);
	/* Order: nothing overtakes what is kept. */
	if (!n->is_dead && (n->n_pending || !try_send(n, record))) {
		is_new = n->n_pending == 0;
		p = pending_slot(n, record);
		if (p)
			p->count++;
		else
			n->is_dead = true; /* more kinds of events than the client may have objects */
	}
	pthread_mutex_unlock(&n->lock);
	return is_new;
}

bool notify_flush(struct notify *n)
{
	unsigned done = 0;

	pthread_mutex_lock(&n->lock);
	for (; done < n->n_pending; done++) {
		struct notify_pending *p = &n->pending[done];

		while (p->count && (n->is_dead || try_send(n, p->record)))
			p->count--;
		if (p->count)
			break;
	}
	if (done) {
		n->n_pending -= done;
		memmove(n->pending, n->pending + done, n->n_pending * sizeof(*n->pending));
	}
	done = n->n_pending;
	pthread_mutex_unlock(&n->lock);
	return done == 0;
}

uint64_t notify_forget(struct notify *n, uint64_t key)
{
	uint64_t gone = 0;
	unsigned kept = 0;

	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < n->n_pending; i++) {
		uint64_t k;

		memcpy(&k, n->pending[i].record, sizeof(k));
		if (k == key)
			gone += n->pending[i].count;
		else
			n->pending[kept++] = n->pending[i];
	}
	n->n_pending = kept;
	pthread_mutex_unlock(&n->lock);
	return gone;
}
