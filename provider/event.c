/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_MAX 16u
#define PEEK_BYTES 16384u /* a socket's default buffer holds some 280 events */

/* Events still queued for an object that no longer exists. */
struct stale {
	uint64_t element;
	uint32_t count;
	struct stale *next;
};

struct uroce_source {
	int fd;
	enum uroce_source_kind kind;
	uint32_t handle;
	uint32_t record; /* bytes of an event */
	struct uroce_context *ctx;
	atomic_uint refs;
	pthread_mutex_t lock; /* taking records off, and the stale list */
	struct stale *stale;
	bool is_told_dead;
	struct uroce_source *next;
};

static pthread_mutex_t sources_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uroce_source *sources;

struct uroce_source *uroce_source_add(struct uroce_context *ctx, int fd,
				      enum uroce_source_kind kind, uint32_t handle)
{
	struct uroce_source *src = calloc(1, sizeof(*src));

	if (!src)
		return NULL;
	src->fd = fd;
	src->kind = kind;
	src->handle = handle;
	src->record = kind == SOURCE_ASYNC ? 16 : 8;
	src->ctx = ctx;
	atomic_store(&src->refs, 1);
	pthread_mutex_init(&src->lock, NULL);
	pthread_mutex_lock(&sources_lock);
	src->next = sources;
	sources = src;
	pthread_mutex_unlock(&sources_lock);
	return src;
}

void uroce_source_put(struct uroce_source *src)
{
	if (!src || atomic_fetch_sub(&src->refs, 1) != 1)
		return;
	while (src->stale) {
		struct stale *s = src->stale;

		src->stale = s->next;
		free(s);
	}
	pthread_mutex_destroy(&src->lock);
	free(src);
}

void uroce_source_remove(struct uroce_source *src)
{
	pthread_mutex_lock(&sources_lock);
	for (struct uroce_source **p = &sources; *p; p = &(*p)->next) {
		if (*p == src) {
			*p = src->next;
			break;
		}
	}
	pthread_mutex_unlock(&sources_lock);
	uroce_source_put(src);
}

struct uroce_source *uroce_source_find(int fd)
{
	struct uroce_source *src;

	pthread_mutex_lock(&sources_lock);
	for (src = sources; src && src->fd != fd; src = src->next)
		;
	if (src)
		atomic_fetch_add(&src->refs, 1);
	pthread_mutex_unlock(&sources_lock);
	if (src && !uroce_ctrl_is_ours(&src->ctx->ctrl)) {
		uroce_source_put(src);
		return NULL;
	}
	return src;
}

void uroce_sources_hold(void)
{
	pthread_mutex_lock(&sources_lock);
}

void uroce_sources_release(bool forget)
{
	if (forget)
		sources = NULL;
	pthread_mutex_unlock(&sources_lock);
}

uint32_t uroce_source_handle(const struct uroce_source *src)
{
	return src->handle;
}

static uint64_t element_of(const uint8_t *record)
{
	uint64_t element;

	memcpy(&element, record, sizeof(element));
	return element;
}

static struct stale *stale_find(struct uroce_source *src, uint64_t element)
{
	struct stale *s = src->stale;

	while (s && s->element != element)
		s = s->next;
	return s;
}

/* Is this record, just taken off, one to drop? Then it is counted off. */
static bool stale_take(struct uroce_source *src, uint64_t element)
{
	for (struct stale **p = &src->stale; *p; p = &(*p)->next) {
		struct stale *s = *p;

		if (s->element != element)
			continue;
		if (!--s->count) {
			*p = s->next;
			free(s);
		}
		return true;
	}
	return false;
}

/* Restore the rule that no stale record heads the queue. */
static void trim(struct uroce_source *src)
{
	uint8_t rec[RECORD_MAX];

	while (src->stale) {
		ssize_t n = recv(src->fd, rec, src->record, MSG_PEEK | MSG_DONTWAIT);

		if (n != (ssize_t)src->record || !stale_find(src, element_of(rec)))
			return;
		if (recv(src->fd, rec, src->record, MSG_DONTWAIT) != n)
			return;
		stale_take(src, element_of(rec));
	}
}

/* How many records of `element` are queued. */
static uint32_t count_queued(struct uroce_source *src, uint64_t element)
{
	uint8_t buf[PEEK_BYTES];
	uint32_t count = 0;
	ssize_t n = recv(src->fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);

	for (ssize_t at = 0; at + (ssize_t)src->record <= n; at += src->record)
		count += element_of(buf + at) == element;
	return count;
}

uint32_t uroce_source_forget(struct uroce_source *src, uint64_t element)
{
	struct stale *s;
	uint32_t queued, fresh = 0;

	if (!src)
		return 0;
	pthread_mutex_lock(&src->lock);
	queued = count_queued(src, element);
	s = stale_find(src, element);
	if (queued > (s ? s->count : 0)) {
		fresh = queued - (s ? s->count : 0);
		if (!s && (s = calloc(1, sizeof(*s)))) {
			s->element = element;
			s->next = src->stale;
			src->stale = s;
		}
		if (s)
			s->count = queued;
	}
	trim(src);
	pthread_mutex_unlock(&src->lock);
	return fresh;
}

/*
 * Take one record that is not stale: its size, 0 at end of file, -1 with errno. A daemon that dies
 * with bytes of ours unread shows as ECONNRESET first; that is an end of file too.
 */
static ssize_t take_live(struct uroce_source *src, uint8_t rec[RECORD_MAX])
{
	ssize_t n;

	pthread_mutex_lock(&src->lock);
	do
		n = recv(src->fd, rec, src->record, MSG_DONTWAIT);
	while (n == (ssize_t)src->record && stale_take(src, element_of(rec)));
	if (n > 0)
		trim(src);
	pthread_mutex_unlock(&src->lock);
	return n < 0 && errno == ECONNRESET ? 0 : n;
}

/* Nothing more will come: one DEVICE_FATAL on async_fd, one event for each CQ of a channel, then
 * EIO. */
static ssize_t last_words(struct uroce_source *src, uint8_t rec[RECORD_MAX])
{
	struct uroce_async_record fatal = { .type = IBV_EVENT_DEVICE_FATAL };
	struct uroce_context *ctx = src->ctx;
	struct uroce_cq *cq = NULL;
	bool is_first = false;

	atomic_store(&ctx->is_dead, true);
	pthread_mutex_lock(&ctx->objects);
	if (src->kind == SOURCE_ASYNC) {
		is_first = !src->is_told_dead;
		src->is_told_dead = true;
		memcpy(rec, &fatal, sizeof(fatal));
	} else {
		for (cq = ctx->cqs; cq && (cq->source != src || cq->is_told_dead); cq = cq->next)
			;
		if (cq) {
			uint64_t token = (uintptr_t)cq;

			cq->is_told_dead = true;
			memcpy(rec, &token, sizeof(token));
			is_first = true;
		}
	}
	pthread_mutex_unlock(&ctx->objects);
	if (is_first)
		return src->record;
	errno = EIO;
	return -1;
}

static ssize_t source_read(struct uroce_source *src, void *buf, size_t n)
{
	uint8_t rec[RECORD_MAX];

	if (n < src->record) {
		errno = EINVAL;
		return -1;
	}
	for (;;) {
		ssize_t got = take_live(src, rec);

		if (got == 0)
			got = last_words(src, rec);
		if (got == (ssize_t)src->record) {
			memcpy(buf, rec, src->record);
			return got;
		}
		if (got >= 0)
			errno = EIO;
		if (got >= 0 || errno != EAGAIN)
			return -1;
		/* Wait as a read of this descriptor would: O_NONBLOCK and signals as the program
		 * set. */
		if (recv(src->fd, rec, 1, MSG_PEEK) < 0 && errno != ECONNRESET)
			return -1;
	}
}

ssize_t uroce_event_read(int fd, void *buf, size_t n)
{
	struct uroce_source *src = uroce_source_find(fd);
	ssize_t got;

	if (!src || src->kind == SOURCE_COMMAND)
		got = read(fd, buf, n);
	else
		got = source_read(src, buf, n);
	uroce_source_put(src);
	return got;
}

/* The two commands' common head and CREATE_COMP_CHANNEL's body, as libibverbs writes them. */
struct verbs_create_channel {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
};
#define VERBS_CMD_CREATE_COMP_CHANNEL 17u

int uroce_channel_create(struct uroce_context *ctx, int *fd, struct uroce_source **src)
{
	struct uroce_handle rep;
	int fds[2];
	struct uroce_ctrl_msg m = { .op = UROCE_OP_CREATE_CHANNEL,
				    .send_fd = -1,
				    .rep = &rep,
				    .rep_size = sizeof(rep),
				    .fds = fds,
				    .max_fds = 2 };
	int err = uroce_context_send(ctx, &m);

	if (err)
		return err;
	/* The second is a write end. Held, it would hide the daemon's death from the first. */
	if (m.n_fds > 1)
		close(fds[1]);
	if (m.n_fds < 1)
		return EIO;
	*src = uroce_source_add(ctx, fds[0], SOURCE_COMPLETION, rep.handle);
	if (!*src) {
		close(fds[0]);
		return ENOMEM;
	}
	*fd = fds[0];
	return 0;
}

void uroce_channel_destroy(struct uroce_source *src)
{
	struct uroce_handle body = { .handle = src->handle };
	int fd = src->fd;

	uroce_context_call(src->ctx, UROCE_OP_DESTROY_CHANNEL, &body, sizeof(body), NULL, 0);
	uroce_source_remove(src);
	close(fd);
}

void uroce_source_await(struct uroce_source *src, const struct timespec *timeout)
{
	struct pollfd p = { .fd = src->fd, .events = POLLIN };
	uint8_t junk[1024];

	if (ppoll(&p, 1, timeout, NULL) > 0)
		while (recv(src->fd, junk, sizeof(junk), MSG_DONTWAIT) == (ssize_t)sizeof(junk))
			;
}

ssize_t uroce_event_write(int fd, const void *buf, size_t n)
{
	struct uroce_source *src = uroce_source_find(fd);
	struct verbs_create_channel cmd;
	struct uroce_source *channel;
	int err = EOPNOTSUPP, channel_fd;

	if (!src || src->kind != SOURCE_COMMAND) {
		uroce_source_put(src);
		return write(fd, buf, n);
	}
	if (n == sizeof(cmd)) {
		memcpy(&cmd, buf, sizeof(cmd));
		if (cmd.command == VERBS_CMD_CREATE_COMP_CHANNEL)
			err = uroce_channel_create(src->ctx, &channel_fd, &channel);
	}
	uroce_source_put(src);
	if (err) {
		errno = err;
		return -1;
	}
	memcpy((void *)(uintptr_t)cmd.response, &channel_fd, sizeof(channel_fd));
	return (ssize_t)n;
}

int uroce_event_close(int fd)
{
	struct uroce_source *src = uroce_source_find(fd);

	if (!src || src->kind != SOURCE_COMPLETION) {
		uroce_source_put(src);
		return close(fd);
	}
	uroce_channel_destroy(src);
	uroce_source_put(src);
	return 0;
}

/* What libibverbs' one ioctl looks like when it asks for an event descriptor: a head, one
 * attribute. */
struct verbs_ioctl {
	uint16_t length, object, method, n_attrs;
	uint64_t reserved1;
	uint32_t driver, reserved2;
	uint16_t attr, attr_len, attr_flags, attr_reserved;
	uint64_t data;
};
#define VERBS_IOCTL              _IOWR(0x1b, 1, uint8_t[24])
#define VERBS_OBJECT_ASYNC_EVENT 16u
#define VERBS_ASYNC_EVENT_ALLOC  0u

/* An imported context gets its events by descriptor: the one it already has. */
int uroce_event_ioctl(int fd, unsigned long request, void *arg)
{
	struct uroce_source *src = uroce_source_find(fd);
	struct verbs_ioctl *io = arg;
	bool is_ours = src && src->kind == SOURCE_COMMAND && request == VERBS_IOCTL &&
		       io->length == sizeof(*io) && io->object == VERBS_OBJECT_ASYNC_EVENT &&
		       io->method == VERBS_ASYNC_EVENT_ALLOC && io->n_attrs == 1;

	if (is_ours)
		io->data = (uint32_t)src->ctx->vctx.context.async_fd;
	uroce_source_put(src);
	return is_ours ? 0 : ioctl(fd, request, arg);
}
