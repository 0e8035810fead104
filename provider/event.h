/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that libibverbs reads events from. The daemon holds the only write end, so its death
 * shows as end-of-file, and poll() on the descriptor wakes. Events of an object that was destroyed
 * are counted as stale and never handed out; no stale event ever heads the queue, so a descriptor
 * that polls readable has something to read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct uroce_context;
struct uroce_source;

enum uroce_source_kind {
	SOURCE_COMMAND,    /* a context's cmd_fd: libibverbs writes commands there */
	SOURCE_ASYNC,      /* a context's async_fd */
	SOURCE_COMPLETION, /* a completion channel */
};

/* Known from now on by its descriptor; the descriptor stays the caller's. NULL: no memory. */
struct uroce_source *uroce_source_add(struct uroce_context *ctx, int fd,
				      enum uroce_source_kind kind, uint32_t handle);
/* No longer found by its descriptor; drops the reference of uroce_source_add. */
void uroce_source_remove(struct uroce_source *src);

/* Around a fork: no thread is inside; the child forgets all sources, for they are the parent's. */
void uroce_sources_hold(void);
void uroce_sources_release(bool forget);

/* The source of a descriptor with a reference to drop, or NULL: not ours, or a fork's child. */
struct uroce_source *uroce_source_find(int fd);
void uroce_source_put(struct uroce_source *src);
uint32_t uroce_source_handle(const struct uroce_source *src);

/* A completion channel of the program, or one of our own that the program never sees. */
int uroce_channel_create(struct uroce_context *ctx, int *fd, struct uroce_source **src);
void uroce_channel_destroy(struct uroce_source *src); /* also closes the descriptor */

/* On our own: wait for an event or the time to pass, then forget all events that came. */
void uroce_source_await(struct uroce_source *src, const struct timespec *timeout);

/* The object is going: how many of its events were unread, and will not be delivered. */
uint32_t uroce_source_forget(struct uroce_source *src, uint64_t element);

/* What libibverbs' read, write and close do on our descriptors. */
ssize_t uroce_event_read(int fd, void *buf, size_t n);
ssize_t uroce_event_write(int fd, const void *buf, size_t n);
int uroce_event_close(int fd);
int uroce_event_ioctl(int fd, unsigned long request, void *arg);
