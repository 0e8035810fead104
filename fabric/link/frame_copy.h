/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of frames, for links that deliver one more than once or damage it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fabric/wire/frame.h"

/*
 * Makes the empty frame dst (buf, room set) the same packet as src, in the same form. false: no
 * room.
 */
static inline bool frame_copy(struct frame *dst, const struct frame *src)
{
	uint32_t len = 0;

	if (src->n_segs == 0 && src->trailer_len == 0) { /* flat: may use all there is */
		if (src->head_len > FRAME_HEADROOM + dst->room)
			return false;
		dst->head = dst->buf - FRAME_HEADROOM;
	} else {
		if (src->head_len > FRAME_HEADROOM)
			return false;
		dst->head = dst->buf - src->head_len;
	}
	for (uint32_t i = 0; i < src->n_segs; i++) {
		if (src->seg[i].len > dst->room - len)
			return false;
		memcpy(dst->buf + len, src->seg[i].base, src->seg[i].len);
		len += src->seg[i].len;
	}
	memcpy(dst->head, src->head, src->head_len);
	memcpy(dst->trailer, src->trailer, sizeof(dst->trailer));
	dst->head_len = src->head_len;
	dst->trailer_len = src->trailer_len;
	dst->is_ip_id_guessed = src->is_ip_id_guessed;
	dst->is_open = src->is_open;
	dst->n_segs = src->n_segs ? 1 : 0;
	dst->seg[0] = (struct frame_seg){ dst->buf, len };
	return true;
}
