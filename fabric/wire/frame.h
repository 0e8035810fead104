/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame: what engine and links exchange. Two legal forms:
 *   split: head holds every header byte from Ethernet through the last IB extension header and no
 *          more, the payload lies in seg[], and trailer holds pad bytes and ICRC;
 *   flat:  head holds all bytes, as a wire delivers them; n_segs and trailer_len are 0.
 * An engine builds split frames; a link may flatten them. packet_parse() takes either.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FRAME_HEADROOM   192u  /* bytes before buf for headers; buf is 64-byte aligned */
#define FRAME_SEGS       4u
#define FRAME_PAYLOAD    4096u /* room a link must give a frame: the largest path MTU */
#define FRAME_TRAILER    8u

struct frame_seg {
	uint8_t *base;
	uint32_t len;
};

struct frame {
	uint8_t *head;
	uint32_t head_len;
	uint32_t n_segs;
	struct frame_seg seg[FRAME_SEGS];
	uint32_t trailer_len;
	uint8_t trailer[FRAME_TRAILER];
	uint32_t room;   /* payload bytes that fit at buf */
	uint8_t *buf;    /* the frame's own payload memory; headers are built just before it */
	void *owner;     /* the link's: an mbuf; NULL in tests */
	/*
	 * Received through a socket, which does not show the identification of an IPv4 packet: the
	 * one in head is the likeliest. An ICRC that another identification explains is right then.
	 */
	bool is_ip_id_guessed;
	/*
	 * Open: the ICRC in trailer has not been computed. A link that hands frames on in this
	 * process's own memory, where nothing can damage them, gives out open frames; whoever lets
	 * somebody see or touch one seals it first (icrc_seal). Never true of a flat frame.
	 */
	bool is_open;
};

/* Bytes on the wire, without FCS. */
static inline uint32_t frame_len(const struct frame *f)
{
	uint32_t n = f->head_len + f->trailer_len;

	for (uint32_t i = 0; i < f->n_segs; i++)
		n += f->seg[i].len;
	return n;
}
