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
	free(n->index);
	n->pending = NULL;
	n->index = NULL;
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

static unsigned index_slot(const struct notify *n, const void *record)
{
	unsigned mask = 2 * n->n_room - 1;
	uint64_t h[2] = { 0 };

	memcpy(h, record, n->len);
	h[0] = (h[0] ^ h[1] * 0x94d049bb133111ebull) * 0x9e3779b97f4a7c15ull;
	return (unsigned)(h[0] >> 32) & mask;
}

/* Finds the record's entry in the index, or the free one where it belongs. */
static uint32_t *index_find(struct notify *n, const void *record)
{
	unsigned i = index_slot(n, record);

	while (n->index[i] && memcmp(n->pending[n->index[i] - 1].record, record, n->len))
		i = (i + 1) & (2 * n->n_room - 1);
	return &n->index[i];
}

static void index_rebuild(struct notify *n)
{
	if (!n->index)
		return;
	memset(n->index, 0, 2 * n->n_room * sizeof(*n->index));
	for (unsigned i = 0; i < n->n_pending; i++)
		*index_find(n, n->pending[i].record) = i + 1;
}

/* n_room stays a power of two. */
static bool grow(struct notify *n)
{
	unsigned room = n->n_room ? n->n_room * 2 : 16;
	struct notify_pending *p = realloc(n->pending, room * sizeof(*p));
	uint32_t *index;

	if (!p)
		return false;
	n->pending = p;
	index = realloc(n->index, 2 * room * sizeof(*index));
	if (!index)
		return false;
	n->index = index;
	n->n_room = room;
	index_rebuild(n);
	return true;
}

static struct notify_pending *pending_slot(struct notify *n, const void *record)
{
	struct notify_pending *p;
	uint32_t *at;

	if (n->n_pending == n->n_room && !grow(n))
		return NULL;
	at = index_find(n, record);
	if (*at)
		return &n->pending[*at - 1];
	if (n->n_pending == n->max_pending)
		return NULL;
	p = &n->pending[n->n_pending++];
	*at = n->n_pending;
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
			n->is_dead =
				true; /* more kinds of events than the client may have objects */
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
		index_rebuild(n);
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
	index_rebuild(n);
	pthread_mutex_unlock(&n->lock);
	return gone;
}
