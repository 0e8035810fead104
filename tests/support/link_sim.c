/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/link_sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/icrc.h"
#include "fabric/wire/rocev2.h"
#include "tests/support/ck_main.h"
#include "tests/support/vclock.h"

#define L3_OFF 14u

void link_sim_init(struct link_sim *l, const struct link_sim_conf *conf)
{
	memset(l, 0, sizeof(*l));
	l->conf = *conf;
	l->rng = conf->seed ^ 0x6c696e6bull;
	if (!l->conf.tx_burst)
		l->conf.tx_burst = 256;
	if (!l->conf.rx_burst)
		l->conf.rx_burst = 32;
}

void link_sim_free(struct link_sim *l)
{
	struct sim_frame *next;

	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < l->n[i]; k++)
			free(l->heap[i][k]);
		free(l->heap[i]);
	}
	for (; l->idle; l->idle = next) {
		next = l->idle->next;
		free(l->idle);
	}
}

struct frame *link_sim_alloc(struct link_sim *l)
{
	struct sim_frame *sf = l->idle;

	if (sf)
		l->idle = sf->next;
	else
		sf = aligned_alloc(64, (sizeof(*sf) + 63) & ~(size_t)63);
	assert(sf);
	sf->f = (struct frame) { .buf = sf->mem + FRAME_HEADROOM,
				 .room = FRAME_PAYLOAD,
				 .owner = sf };
	return &sf->f;
}

void link_sim_put(struct link_sim *l, struct frame *f)
{
	struct sim_frame *sf = f->owner;

	sf->next = l->idle;
	l->idle = sf;
}

/* Copies in (any form) into out in flat form, or split where the headers end at split_at. */
static void frame_copy(struct frame *out, const struct frame *in)
{
	uint8_t *p = out->buf - FRAME_HEADROOM + 64;

	out->head = p;
	memcpy(p, in->head, in->head_len);
	p += in->head_len;
	for (uint32_t i = 0; i < in->n_segs; i++) {
		memcpy(p, in->seg[i].base, in->seg[i].len);
		p += in->seg[i].len;
	}
	memcpy(p, in->trailer, in->trailer_len);
	out->head_len = frame_len(in);
	out->n_segs = 0;
	out->trailer_len = 0;
}

/* Flat → split, two payload segments: what the switch link hands on. */
static void frame_split(struct frame *f, uint32_t head_len, uint32_t trailer_len, uint64_t r)
{
	uint32_t payload = f->head_len - head_len - trailer_len;
	uint32_t cut = payload ? (uint32_t)(r % payload) : 0;

	memcpy(f->trailer, f->head + f->head_len - trailer_len, trailer_len);
	f->trailer_len = trailer_len;
	f->seg[0] = (struct frame_seg) { f->head + head_len, cut };
	f->seg[1] = (struct frame_seg) { f->head + head_len + cut, payload - cut };
	f->n_segs = payload ? 2 : 0;
	f->head_len = head_len;
}

static bool before(const struct sim_frame *a, const struct sim_frame *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void heap_push(struct link_sim *l, unsigned to, struct sim_frame *sf)
{
	struct sim_frame **h;
	uint32_t i = l->n[to]++;

	if (i == l->cap[to]) {
		l->cap[to] = l->cap[to] ? l->cap[to] * 2 : 64;
		l->heap[to] = realloc(l->heap[to], l->cap[to] * sizeof(struct sim_frame *));
		assert(l->heap[to]);
	}
	h = l->heap[to];
	for (; i && before(sf, h[(i - 1) / 2]); i = (i - 1) / 2)
		h[i] = h[(i - 1) / 2];
	h[i] = sf;
}

static struct sim_frame *heap_pop(struct link_sim *l, unsigned to)
{
	struct sim_frame **h = l->heap[to], *top = h[0], *last = h[--l->n[to]];
	uint32_t n = l->n[to], i = 0;

	while (2 * i + 1 < n) {
		uint32_t c = 2 * i + 1;

		if (c + 1 < n && before(h[c + 1], h[c]))
			c++;
		if (!before(h[c], last))
			break;
		h[i] = h[c];
		i = c;
	}
	h[i] = last;
	return top;
}

static bool chance(struct link_sim *l, uint32_t of_65536)
{
	return of_65536 && ck_below(&l->rng, 65536) < of_65536;
}

static void damage(struct link_sim *l, struct frame *flat)
{
	uint32_t from = L3_OFF + (l->conf.damage_icrc_valid ? 28 : 0);
	uint32_t at = from + ck_below(&l->rng, flat->head_len - from);

	flat->head[at] ^= (uint8_t)(1 + ck_below(&l->rng, 255));
	if (l->conf.damage_icrc_valid && flat->head_len > L3_OFF + 4) {
		uint32_t crc = icrc_frame(flat, L3_OFF, flat->head_len - L3_OFF - 4);

		memcpy(flat->head + flat->head_len - 4, &crc, 4);
	}
}

static struct link_sim_log *log_frame(struct link_sim *l, unsigned from, uint64_t now,
				      const struct frame *f)
{
	struct link_sim_log *e = &l->log[l->n_log++ % LINK_SIM_LOG];

	e->sent = now;
	e->from = (uint8_t)from;
	e->act = LINK_SIM_PASS;
	e->parsed = (uint8_t)packet_parse(&e->pk, f, true);
	if (e->parsed != PACKET_OK)
		l->malformed++;
	return e;
}

static enum link_sim_act judge(struct link_sim *l, unsigned from, const struct packet *pk)
{
	enum link_sim_act act = l->filter ? l->filter(l->filter_ctx, from, pk) : LINK_SIM_PASS;

	if (l->is_cut)
		return LINK_SIM_DROP;
	if (act != LINK_SIM_PASS)
		return act;
	if (chance(l, l->conf.drop))
		return LINK_SIM_DROP;
	if (chance(l, l->conf.dup))
		return LINK_SIM_DUP;
	if (chance(l, l->conf.reorder))
		return LINK_SIM_DELAY;
	return chance(l, l->conf.corrupt) ? LINK_SIM_CORRUPT : LINK_SIM_PASS;
}

/* As a switch marks: congestion experienced. The ICRC does not cover it, the checksum does. */
static void mark(struct link_sim *l, unsigned from, struct frame *flat)
{
	struct ipv4_hdr *ip = (struct ipv4_hdr *)(flat->head + L3_OFF);

	if (flat->head[12] != 0x08 || flat->head[13] || !(ip->tos & 3))
		return;
	ip->tos |= 3;
	ip->checksum = be16_make(0);
	ip->checksum = be16_make(ipv4_checksum(ip));
	l->n_marked[from]++;
}

static void deliver(struct link_sim *l, unsigned from, uint64_t due, const struct frame *in,
		    uint32_t split_at, enum link_sim_act act)
{
	struct frame *f = link_sim_alloc(l);
	struct sim_frame *sf = f->owner;
	uint32_t trailer = in->trailer_len;

	frame_copy(f, in);
	if (l->conf.ecn_ns && l->queued_ns > l->conf.ecn_ns)
		mark(l, from, f);
	if (act == LINK_SIM_CORRUPT) {
		damage(l, f);
		l->n_corrupt[from]++;
	} else if (split_at && ck_below(&l->rng, 2)) {
		frame_split(f, split_at, trailer, ck_rand(&l->rng));
	}
	sf->due = due;
	sf->order = l->order++;
	sf->from = (uint8_t)from;
	heap_push(l, !from, sf);
}

static void tx_one(struct link_sim *l, unsigned from, uint64_t now, struct frame *f)
{
	struct link_sim_log *e = log_frame(l, from, now, f);
	enum link_sim_act act = e->act = judge(l, from, &e->pk);
	uint32_t len = frame_len(f), split_at = l->conf.split && f->trailer_len ? f->head_len : 0;
	uint64_t due;

	l->n_sent[from]++;
	l->bytes[from] += len;
	if (l->wire_free[from] < now)
		l->wire_free[from] = now;
	l->queued_ns = l->wire_free[from] - now;
	l->waited_ns[from] += l->queued_ns;
	l->wire_free[from] += len * l->conf.ns_per_kib / 1024;
	due = l->wire_free[from] + l->conf.delay_ns;
	if (act == LINK_SIM_DROP) {
		l->n_dropped[from]++;
		return;
	}
	if (act == LINK_SIM_DUP)
		deliver(l, from, due + ck_below(&l->rng, (uint32_t)l->conf.jitter_ns + 1), f,
			split_at, act);
	if (act == LINK_SIM_DELAY)
		due += 1 + ck_below(&l->rng, (uint32_t)l->conf.jitter_ns + 1);
	deliver(l, from, due, f, split_at, act);
}

/* Serialization time of what waits, as a number of full frames: a port's queue. */
static uint64_t backlog_limit(const struct link_sim *l)
{
	return (uint64_t)l->conf.tx_burst * l->conf.ns_per_kib;
}

uint32_t link_sim_room(const struct link_sim *l, unsigned from, uint64_t now)
{
	if (l->conf.ns_per_kib && l->wire_free[from] > now + backlog_limit(l))
		return 0;
	return l->conf.tx_burst;
}

void link_sim_tx(struct link_sim *l, unsigned from, uint64_t now, struct frame *const *f,
		 unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		tx_one(l, from, now, f[i]);
		link_sim_put(l, f[i]);
	}
}

unsigned link_sim_rx(struct link_sim *l, unsigned to, uint64_t now, struct frame **f, unsigned n)
{
	unsigned got = 0;

	if (n > l->conf.rx_burst)
		n = l->conf.rx_burst;
	while (got < n && l->n[to] && l->heap[to][0]->due <= now)
		f[got++] = &heap_pop(l, to)->f;
	return got;
}

uint64_t link_sim_deadline(const struct link_sim *l, uint64_t now)
{
	uint64_t t = VCLOCK_NEVER;

	for (unsigned i = 0; i < 2; i++) {
		if (l->n[i])
			t = vclock_sooner(t, l->heap[i][0]->due);
		if (!link_sim_room(l, i, now))
			t = vclock_sooner(t, l->wire_free[i] - backlog_limit(l));
	}
	return t;
}

void link_sim_dump(const struct link_sim *l, FILE *out)
{
	static const char *const act[] = { "", " LOST", " TWICE", " LATE", " DAMAGED" };
	uint32_t first = l->n_log > LINK_SIM_LOG ? l->n_log - LINK_SIM_LOG : 0;
	char line[256];

	for (uint32_t i = first; i < l->n_log; i++) {
		const struct link_sim_log *e = &l->log[i % LINK_SIM_LOG];

		fprintf(out, "# %12" PRIu64 " %c>%c %s%s\n", e->sent, 'A' + e->from, 'B' - e->from,
			e->parsed == PACKET_OK ? packet_describe(&e->pk, line, sizeof(line))
					       : packet_verdict_name[e->parsed],
			act[e->act]);
	}
}
