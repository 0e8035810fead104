/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames for tests: flat ones from bytes, flat copies of split ones, memory for a frame to be built
 * in.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/wire/frame.h"

/* A flat frame over these bytes. */
static inline struct frame frame_flat(uint8_t *bytes, uint32_t len)
{
	return (struct frame){ .head = bytes, .head_len = len };
}

/* The bytes of f as a wire would carry them, into out (at least frame_len(f) bytes). */
static inline uint32_t frame_bytes(const struct frame *f, uint8_t *out)
{
	uint32_t n = f->head_len;

	memcpy(out, f->head, n);
	for (uint32_t i = 0; i < f->n_segs; i++) {
		if (f->seg[i].len)
			memcpy(out + n, f->seg[i].base, f->seg[i].len);
		n += f->seg[i].len;
	}
	memcpy(out + n, f->trailer, f->trailer_len);
	return n + f->trailer_len;
}

struct frame_room {
	uint8_t bytes[FRAME_HEADROOM + FRAME_PAYLOAD] __attribute__((aligned(64)));
};

/* An empty frame in that memory, as a link's alloc would give it. */
static inline struct frame frame_empty(struct frame_room *room)
{
	return (struct frame){ .buf = room->bytes + FRAME_HEADROOM, .room = FRAME_PAYLOAD };
}
