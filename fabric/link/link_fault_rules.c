/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_fault_rules.h"

#include <string.h>

#include "fabric/link/steer.h"
#include "fabric/wire/hdr.h"
#include "fabric/wire/opcode.h"
#include "fabric/wire/rocev2.h"

#define CNP_OPCODE 0x81u
#define CNP_BIT    32u

#define ECN_MASK 3u /* of the traffic class: 0: not capable, 3: Congestion Experienced */

const char *const fault_action_name[FAULT_N_ACTIONS] = {
	[FAULT_DROP] = "drop",       [FAULT_DUP] = "dup",   [FAULT_REORDER] = "reorder",
	[FAULT_CORRUPT] = "corrupt", [FAULT_MARK] = "mark", [FAULT_DELAY] = "delay",
};

void fault_conf_init(struct fault_conf *c)
{
	memset(c, 0, sizeof(*c));
	c->dir = FAULT_BOTH;
	c->hold_ns = FAULT_HOLD_NS;
}

bool fault_conf_is_quiet(const struct fault_conf *c)
{
	for (unsigned i = 0; i < FAULT_DELAY; i++) {
		if (c->chance[i])
			return false;
	}
	return !c->is_partition && !c->delay_ns && !c->jitter_ns && !c->rate_bps && !c->n_once;
}

void fault_packet_read(struct fault_packet *p, const struct frame *f)
{
	const struct bth *h = steer_bth(f, NULL);

	*p = (struct fault_packet) { .len = frame_len(f) };
	if (!h)
		return;
	p->has_bth = true;
	p->opcode = h->opcode;
	p->qpn = bth_dest_qpn(h);
	p->psn = bth_psn(h);
}

/* splitmix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* A number below n, of the upper half of a random number. */
static uint64_t below(uint64_t random, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)random * n) >> 64);
}

void fault_stream_seed(struct fault_stream *s, const struct fault_conf *c, enum fault_dir dir,
		       unsigned port)
{
	uint64_t state = c->seed ^ (uint64_t)port << 32 ^ (uint64_t)dir << 62;

	s->rng = next_random(&state);
	s->dir = (uint8_t)dir;
}

static bool fits(const struct fault_once *r, const struct fault_stream *s,
		 const struct fault_packet *p)
{
	uint64_t op = p->opcode == CNP_OPCODE ? CNP_BIT : p->opcode & 0x1fu;

	if (!(r->dir & s->dir))
		return false;
	if (!p->has_bth)
		return !r->ops && r->qpn == FAULT_ANY && r->psn == FAULT_ANY;
	return (!r->ops || (r->ops >> op & 1)) && (r->qpn == FAULT_ANY || r->qpn == p->qpn) &&
	       (r->psn == FAULT_ANY || r->psn == p->psn);
}

/* The rule whose turn it is, or NULL. Every rule counts each packet that it fits. */
static const struct fault_once *find_once(const struct fault_stream *s, const struct fault_conf *c,
					  atomic_uint *seen, const struct fault_packet *p)
{
	const struct fault_once *found = NULL;

	for (unsigned i = 0; i < c->n_once; i++) {
		const struct fault_once *r = &c->once[i];

		if (atomic_load_explicit(&seen[i], memory_order_relaxed) >= r->nth)
			continue; /* used up, and must not wrap */
		if (fits(r, s, p) && atomic_fetch_add(&seen[i], 1) + 1 == r->nth && !found)
			found = r;
	}
	return found;
}

static void apply_action(struct fault_verdict *v, enum fault_action a, const struct fault_conf *c)
{
	switch (a) {
	case FAULT_DROP:
		v->fate = FAULT_LOST;
		return;
	case FAULT_DUP:
		v->is_dup = true;
		return;
	case FAULT_CORRUPT:
		v->is_corrupt = true;
		return;
	case FAULT_MARK:
		v->is_marked = true;
		return;
	case FAULT_REORDER:
		v->is_reordered = true;
		v->due += c->hold_ns;
		return;
	case FAULT_DELAY:
	case FAULT_N_ACTIONS:
		return;
	}
}

/* Ethernet's preamble and gaps are not counted: the rate is that of frames. */
static uint64_t transmit(struct fault_stream *s, const struct fault_conf *c, uint64_t now,
			 uint32_t len)
{
	if (!c->rate_bps)
		return now;
	if (s->wire_free < now)
		s->wire_free = now;
	s->wire_free += (uint64_t)len * 8u * 1000000000u / c->rate_bps;
	return s->wire_free;
}

struct fault_verdict fault_judge(struct fault_stream *s, const struct fault_conf *c,
				 atomic_uint *seen, uint64_t now, const struct fault_packet *p)
{
	struct fault_verdict v = { .fate = FAULT_PASSES, .due = now };
	const struct fault_once *once;
	uint64_t jitter, beside;

	if (c->is_partition && (c->dir & s->dir)) {
		v.fate = FAULT_PARTITIONED;
		return v;
	}
	once = find_once(s, c, seen, p);
	if (!(c->dir & s->dir) && !once)
		return v;
	if (c->dir & s->dir) {
		v.due = transmit(s, c, now, p->len) + c->delay_ns;
		jitter = next_random(&s->rng);
		if (c->jitter_ns)
			v.due += below(jitter, c->jitter_ns + 1);
		/* Always as many random numbers: so one chance does not change another's packets.
		 */
		for (unsigned a = 0; a < FAULT_MARK; a++) {
			if (below(next_random(&s->rng), FAULT_CERTAIN) < c->chance[a])
				apply_action(&v, (enum fault_action)a, c);
		}
		/* Marks came later: of a sequence beside, so that a seed still means what it did.
		 */
		beside = ~s->rng;
		v.is_marked = below(next_random(&beside), FAULT_CERTAIN) < c->chance[FAULT_MARK];
	}
	v.random = next_random(&s->rng);
	if (once) {
		/* The rule decides, not chance. */
		v = (struct fault_verdict) { .is_once = true, .due = v.due, .random = v.random };
		apply_action(&v, (enum fault_action)once->action, c);
		if (once->action == FAULT_DELAY)
			v.due += once->delay_ns;
	}
	return v;
}

/* The byte at off of the frame, in whichever part it lies. */
static uint8_t *byte_at(struct frame *f, uint32_t off)
{
	if (off < f->head_len)
		return f->head + off;
	off -= f->head_len;
	for (uint32_t i = 0; i < f->n_segs; i++) {
		if (off < f->seg[i].len)
			return f->seg[i].base + off;
		off -= f->seg[i].len;
	}
	return f->trailer + off;
}

void fault_corrupt(struct frame *f, uint64_t random)
{
	const struct bth *h = steer_bth(f, NULL);
	uint32_t start = h ? (uint32_t)((const uint8_t *)h - f->head) : sizeof(struct eth_hdr);
	uint32_t len = frame_len(f);
	uint32_t masked = h ? start + (uint32_t)offsetof(struct bth, fecn_qpn) : UINT32_MAX;
	uint32_t off;

	if (len <= start + (h ? 1u : 0u))
		return;
	off = start + (uint32_t)below(random, len - start - (h ? 1u : 0u));
	if (off >= masked)
		off++;
	*byte_at(f, off) ^= (uint8_t)(1u << (random & 7));
}

static bool mark_ipv4(struct ipv4_hdr *h)
{
	if (!(h->tos & ECN_MASK))
		return false;
	h->tos |= ECN_MASK;
	h->checksum = be16_make(0);
	h->checksum = be16_make(ipv4_checksum(h));
	return true;
}

static bool mark_ipv6(struct ipv6_hdr *h)
{
	uint32_t v = be32_get(h->ver_tc_fl);

	if (!(v >> 20 & ECN_MASK))
		return false;
	h->ver_tc_fl = be32_make(v | ECN_MASK << 20);
	return true;
}

bool fault_mark(struct frame *f)
{
	const struct bth *h = steer_bth(f, NULL);
	const struct eth_hdr *eth = (const struct eth_hdr *)f->head;
	uint16_t type;
	uint8_t *udp;

	if (!h)
		return false;
	type = be16_get(eth->type);
	if (type == ETH_TYPE_VLAN)
		type = be16_get(((const struct vlan_tag *)(eth + 1))->type);
	udp = f->head + ((const uint8_t *)h - f->head) - sizeof(struct udp_hdr);
	return type == ETH_TYPE_IPV4
		       ? mark_ipv4((struct ipv4_hdr *)(udp - sizeof(struct ipv4_hdr)))
		       : mark_ipv6((struct ipv6_hdr *)(udp - sizeof(struct ipv6_hdr)));
}
