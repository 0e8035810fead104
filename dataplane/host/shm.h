/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory shared with one client: a memfd made and mapped here. Its size is sealed before anybody
 * else gets the descriptor, so that no client can shrink it and kill us with SIGBUS.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct shm {
	int fd; /* -1 once passed on and closed */
	size_t size;
	uint8_t *base;
};

/* size is rounded up to whole pages. 0 or a negative errno. */
int shm_create(struct shm *s, const char *name, size_t size);

/* The descriptor is only needed until the client has it. */
void shm_close_fd(struct shm *s);

/* Gives back all but the first `size` bytes (whole pages), for the client too. */
void shm_trim(struct shm *s, size_t size);

void shm_destroy(struct shm *s);

/* A memfd holding text, for replies that do not fit a message. The descriptor or a negative errno.
 */
int shm_text(const char *name, const char *text, size_t len);
