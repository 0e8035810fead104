/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames as a wire delivers them: bytes with all headers, perhaps a super-frame. Written by an
 * enemy: everything is looked at before it is believed. Private to fabric/link.
 */
#pragma once

#include "fabric/link/gso.h"

/* What arrived, cut by and by. The bytes stay where they are until then. */
struct raw_frame {
	const uint8_t *bytes;
	uint32_t len;  /* without what pads a short IP packet to Ethernet's least length */
	bool is_super; /* then s holds; else one frame, to be copied with its headers as they are */
	bool is_group; /* Ethernet's destination */
	struct gso_super s;
};

/*
 * packet_len: bytes after the UDP header of each packet but the last; 0: no super-frame. false: too
 * short for what it claims to be.
 */
bool raw_frame_read(struct raw_frame *r, const uint8_t *bytes, uint32_t len, uint32_t packet_len);

unsigned raw_frame_count(const struct raw_frame *r);

/* Copies packet i into the empty frame f. false: longer than a frame. */
bool raw_frame_cut(const struct raw_frame *r, unsigned i, struct frame *f);
