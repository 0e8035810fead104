/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_fault.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/link/frame_copy.h"
#include "fabric/link/hold.h"
#include "fabric/wire/icrc.h"

#define BURST 32u

/* How far a rate limit lets its queue grow before senders wait: less than any retry timeout. */
#define RATE_QUEUE_NS 1000000u

const char *const link_fault_count_name[LINK_FAULT_N_COUNTS] = {
	[LINK_FAULT_PASSED] = "passed",
	[LINK_FAULT_DROPPED] = "dropped",
	[LINK_FAULT_PARTITIONED] = "partitioned",
	[LINK_FAULT_DUPLICATED] = "duplicated",
	[LINK_FAULT_REORDERED] = "reordered",
	[LINK_FAULT_CORRUPTED] = "corrupted",
	[LINK_FAULT_MARKED] = "marked",
	[LINK_FAULT_ONCE] = "once",
	[LINK_FAULT_OVERFLOW] = "overflow",
	[LINK_FAULT_NO_BUFFER] = "no-buffer",
};

/* Never changed once published, but for the counts of the one-shot rules. */
struct rules {
	struct rules *next; /* retired */
	uint64_t generation;
	bool is_quiet;
	bool is_cut;
	struct fault_conf conf;
	atomic_uint seen[FAULT_ONCE_MAX];
};

struct fault_port {
	struct link_port port;
	struct link_port *inner;
	struct link_fault *lf;
	unsigned number;
	uint64_t now; /* the latest this port was told */
	struct rules *rules;
	_Atomic uint64_t generation; /* of rules: older ones are not looked at any more */
	struct fault_stream tx, rx;
	struct hold tx_hold, rx_hold;
	_Atomic uint64_t count[LINK_FAULT_N_COUNTS];
};

struct link_fault {
	_Atomic(struct rules *) rules;
	struct rules *retired;
	unsigned n_ports;
	struct fault_port port[];
};

static struct fault_port *to_fault_port(const struct link_port *p)
{
	return (struct fault_port *)p;
}

/* Only the owner writes, so load and store need not be one step. */
static void count(struct fault_port *fp, enum link_fault_count what)
{
	atomic_store_explicit(
		&fp->count[what],
		atomic_load_explicit(&fp->count[what], memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* Takes up new rules, if there are any. */
static void adopt(struct fault_port *fp)
{
	struct rules *r = atomic_load_explicit(&fp->lf->rules, memory_order_acquire);

	if (r == fp->rules)
		return;
	fp->rules = r;
	fault_stream_seed(&fp->tx, &r->conf, FAULT_TX, fp->number);
	fault_stream_seed(&fp->rx, &r->conf, FAULT_RX, fp->number);
	atomic_store_explicit(&fp->generation, r->generation, memory_order_release);
}

static bool is_clear(const struct fault_port *fp, const struct hold *h)
{
	return fp->rules->is_quiet && !h->n;
}

static unsigned port_alloc(struct link_port *p, struct frame **f, unsigned n)
{
	struct fault_port *fp = to_fault_port(p);

	return fp->inner->ops->alloc(fp->inner, f, n);
}

static void port_free(struct link_port *p, struct frame *const *f, unsigned n)
{
	struct fault_port *fp = to_fault_port(p);

	fp->inner->ops->free(fp->inner, f, n);
}

static void hold_frame(struct fault_port *fp, struct hold *h, uint64_t due, struct frame *f)
{
	if (hold_push(h, due, f))
		return;
	count(fp, LINK_FAULT_OVERFLOW);
	port_free(&fp->port, &f, 1);
}

static void hold_copy(struct fault_port *fp, struct hold *h, uint64_t due, const struct frame *f)
{
	struct frame *copy;

	if (!port_alloc(&fp->port, &copy, 1)) {
		count(fp, LINK_FAULT_NO_BUFFER);
		return;
	}
	if (!frame_copy(copy, f)) {
		count(fp, LINK_FAULT_NO_BUFFER);
		port_free(&fp->port, &copy, 1);
		return;
	}
	count(fp, LINK_FAULT_DUPLICATED);
	hold_frame(fp, h, due, copy);
}

/* Judges f and puts what is left of it into h. */
static void pass(struct fault_port *fp, struct fault_stream *s, struct hold *h, uint64_t now,
		 struct frame *f)
{
	struct rules *r = fp->rules;
	struct fault_packet pk;
	struct fault_verdict v;

	if (r->is_cut) {
		count(fp, LINK_FAULT_PARTITIONED);
		port_free(&fp->port, &f, 1);
		return;
	}
	icrc_seal(f); /* what a fault damages must be found out, as on a real link */
	fault_packet_read(&pk, f);
	v = fault_judge(s, &r->conf, r->seen, now, &pk);
	if (v.is_once)
		count(fp, LINK_FAULT_ONCE);
	switch (v.fate) {
	case FAULT_PASSES:
		break;
	case FAULT_LOST:
		count(fp, LINK_FAULT_DROPPED);
		port_free(&fp->port, &f, 1);
		return;
	case FAULT_PARTITIONED:
		count(fp, LINK_FAULT_PARTITIONED);
		port_free(&fp->port, &f, 1);
		return;
	}
	count(fp, LINK_FAULT_PASSED);
	if (v.is_reordered)
		count(fp, LINK_FAULT_REORDERED);
	if (v.is_dup)
		hold_copy(fp, h, v.due, f); /* sound, just before the other */
	if (v.is_marked && fault_mark(f))
		count(fp, LINK_FAULT_MARKED);
	if (v.is_corrupt) {
		count(fp, LINK_FAULT_CORRUPTED);
		fault_corrupt(f, v.random);
	}
	hold_frame(fp, h, v.due, f);
}

/* Sends what is due, as far as the inner link has room. */
static void flush_tx(struct fault_port *fp, uint64_t now)
{
	struct frame *f[BURST];
	unsigned room, n;

	while (hold_due(&fp->tx_hold) <= now && fp->tx_hold.n) {
		room = fp->inner->ops->tx_room(fp->inner);
		if (!room)
			return;
		for (n = 0; n < room && n < BURST; n++) {
			f[n] = hold_pop(&fp->tx_hold, now);
			if (!f[n])
				break;
		}
		fp->inner->ops->tx(fp->inner, now, f, n);
	}
}

static bool is_backlogged(const struct fault_stream *s, uint64_t now)
{
	return s->wire_free > now + RATE_QUEUE_NS;
}

/* Frames that h takes for sure: each may be doubled. */
static unsigned hold_room(const struct fault_port *fp, const struct fault_stream *s,
			  const struct hold *h, uint64_t now)
{
	return fp->rules->conf.rate_bps && is_backlogged(s, now) ? 0 : (HOLD_MAX - h->n) / 2;
}

static unsigned port_tx_room(struct link_port *p)
{
	struct fault_port *fp = to_fault_port(p);
	unsigned room = fp->inner->ops->tx_room(fp->inner);
	unsigned own;

	adopt(fp);
	if (is_clear(fp, &fp->tx_hold))
		return room;
	own = hold_room(fp, &fp->tx, &fp->tx_hold, fp->now);
	return own < room ? own : room;
}

/* By the rules that tx_room knew: so new ones never meet more frames than they have room for. */
static void port_tx(struct link_port *p, uint64_t now, struct frame *const *f, unsigned n)
{
	struct fault_port *fp = to_fault_port(p);

	fp->now = now;
	if (is_clear(fp, &fp->tx_hold)) {
		fp->inner->ops->tx(fp->inner, now, f, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		pass(fp, &fp->tx, &fp->tx_hold, now, f[i]);
	flush_tx(fp, now);
}

static void pull_rx(struct fault_port *fp, uint64_t now)
{
	struct frame *f[BURST];
	unsigned room = hold_room(fp, &fp->rx, &fp->rx_hold, now);
	unsigned n;

	if (!room)
		return;
	n = fp->inner->ops->rx(fp->inner, now, f, room < BURST ? room : BURST);
	for (unsigned i = 0; i < n; i++)
		pass(fp, &fp->rx, &fp->rx_hold, now, f[i]);
}

static unsigned port_rx(struct link_port *p, uint64_t now, struct frame **f, unsigned n)
{
	struct fault_port *fp = to_fault_port(p);
	unsigned got = 0;

	fp->now = now;
	adopt(fp);
	flush_tx(fp, now);
	if (is_clear(fp, &fp->rx_hold))
		return fp->inner->ops->rx(fp->inner, now, f, n);
	pull_rx(fp, now);
	while (got < n && (f[got] = hold_pop(&fp->rx_hold, now)))
		got++;
	return got;
}

static uint64_t port_deadline(const struct link_port *p)
{
	const struct fault_port *fp = to_fault_port(p);
	uint64_t at = fp->inner->ops->deadline(fp->inner);

	if (at > hold_due(&fp->tx_hold))
		at = hold_due(&fp->tx_hold);
	return at < hold_due(&fp->rx_hold) ? at : hold_due(&fp->rx_hold);
}

static int port_wait_fd(const struct link_port *p)
{
	const struct fault_port *fp = to_fault_port(p);

	return fp->inner->ops->wait_fd(fp->inner);
}

static void port_counters(const struct link_port *p, struct link_counters *out)
{
	const struct fault_port *fp = to_fault_port(p);

	fp->inner->ops->counters(fp->inner, out);
}

static const struct link_ops fault_ops = {
	.alloc = port_alloc,
	.free = port_free,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.rx = port_rx,
	.deadline = port_deadline,
	.wait_fd = port_wait_fd,
	.counters = port_counters,
};

struct link_fault *link_fault_create(struct link_port *const *inner, unsigned n_ports,
				     struct link_port **ports)
{
	struct link_fault *lf = calloc(1, sizeof(*lf) + n_ports * sizeof(lf->port[0]));
	struct rules *r = calloc(1, sizeof(*r));

	if (!lf || !r) {
		free(lf);
		free(r);
		return NULL;
	}
	fault_conf_init(&r->conf);
	r->is_quiet = true;
	r->generation = 1;
	atomic_init(&lf->rules, r);
	lf->n_ports = n_ports;
	for (unsigned i = 0; i < n_ports; i++) {
		struct fault_port *fp = &lf->port[i];

		fp->port = (struct link_port){ .ops = &fault_ops, .mtu = inner[i]->mtu };
		memcpy(fp->port.mac, inner[i]->mac, sizeof(fp->port.mac));
		fp->inner = inner[i];
		fp->lf = lf;
		fp->number = i;
		adopt(fp);
		ports[i] = &fp->port;
	}
	return lf;
}

static void drain_hold(struct fault_port *fp, struct hold *h)
{
	struct frame *f;

	while ((f = hold_pop(h, UINT64_MAX)))
		port_free(&fp->port, &f, 1);
}

void link_fault_drain(struct link_port *port)
{
	drain_hold(to_fault_port(port), &to_fault_port(port)->tx_hold);
	drain_hold(to_fault_port(port), &to_fault_port(port)->rx_hold);
}

void link_fault_destroy(struct link_fault *lf)
{
	if (!lf)
		return;
	for (unsigned i = 0; i < lf->n_ports; i++)
		assert(!lf->port[i].tx_hold.n && !lf->port[i].rx_hold.n);
	while (lf->retired) {
		struct rules *r = lf->retired;

		lf->retired = r->next;
		free(r);
	}
	free(atomic_load(&lf->rules));
	free(lf);
}

/* Frees retired rules that no port can look at any more. */
static void reclaim(struct link_fault *lf)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned i = 0; i < lf->n_ports; i++) {
		uint64_t g = atomic_load_explicit(&lf->port[i].generation, memory_order_acquire);

		if (g < oldest)
			oldest = g;
	}
	for (struct rules **r = &lf->retired; *r;) {
		struct rules *old = *r;

		if (old->generation < oldest) {
			*r = old->next;
			free(old);
		} else {
			r = &old->next;
		}
	}
}

static void publish(struct link_fault *lf, struct rules *r)
{
	struct rules *old = atomic_load_explicit(&lf->rules, memory_order_relaxed);

	r->is_quiet = !r->is_cut && fault_conf_is_quiet(&r->conf);
	r->generation = old->generation + 1;
	atomic_store_explicit(&lf->rules, r, memory_order_release);
	old->next = lf->retired;
	lf->retired = old;
	reclaim(lf);
}

/* The rules as they are now, without what is used up. The counts go on where they were. */
static void copy_rules(struct rules *to, const struct rules *from)
{
	to->is_cut = from->is_cut;
	to->conf = from->conf;
	to->conf.n_once = 0;
	for (unsigned i = 0; i < from->conf.n_once; i++) {
		unsigned seen = atomic_load_explicit(&from->seen[i], memory_order_relaxed);

		if (seen >= from->conf.once[i].nth)
			continue;
		atomic_init(&to->seen[to->conf.n_once], seen);
		to->conf.once[to->conf.n_once++] = from->conf.once[i];
	}
}

int link_fault_set(struct link_fault *lf, const char *text, char *err, unsigned err_size)
{
	struct rules *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	copy_rules(r, atomic_load_explicit(&lf->rules, memory_order_relaxed));
	if (fault_parse(&r->conf, text, err, err_size) != 0) {
		free(r);
		return -EINVAL;
	}
	publish(lf, r);
	return 0;
}

int link_fault_clear(struct link_fault *lf)
{
	struct rules *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->is_cut = atomic_load_explicit(&lf->rules, memory_order_relaxed)->is_cut;
	fault_conf_init(&r->conf);
	publish(lf, r);
	return 0;
}

int link_fault_cut(struct link_fault *lf, bool is_cut)
{
	struct rules *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	copy_rules(r, atomic_load_explicit(&lf->rules, memory_order_relaxed));
	r->is_cut = is_cut;
	publish(lf, r);
	return 0;
}

const char *link_fault_text(const struct link_fault *lf, char *buf, unsigned size)
{
	struct rules now = { 0 };

	copy_rules(&now, atomic_load_explicit(&lf->rules, memory_order_relaxed));
	return fault_describe(&now.conf, buf, size);
}

void link_fault_counters(const struct link_fault *lf, uint64_t out[LINK_FAULT_N_COUNTS])
{
	for (unsigned k = 0; k < LINK_FAULT_N_COUNTS; k++) {
		out[k] = 0;
		for (unsigned i = 0; i < lf->n_ports; i++)
			out[k] += atomic_load_explicit(&lf->port[i].count[k], memory_order_relaxed);
	}
}
