/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_fault_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fabric/wire/line.h"
#include "fabric/wire/opcode.h"

#define CNP_OPCODE 0x81
#define BILLION    1000000000u
#define WORD_MAX   64u

static const char *const dir_name[] = {
	[FAULT_TX] = "tx", [FAULT_RX] = "rx", [FAULT_BOTH] = "both"
};

static const struct unit {
	const char *name;
	uint64_t scale;
} time_units[] = { { "s", 1000000000 },
		   { "ms", 1000000 },
		   { "us", 1000 },
		   { "ns", 1 },
		   { NULL, 0 } },
  rate_units[] = {
	  { "gbit", 1000000000 }, { "mbit", 1000000 }, { "kbit", 1000 }, { "bit", 1 }, { NULL, 0 }
  };

/* A decimal number of at most seven digits before the point and nine behind it, in billionths. */
static const char *parse_decimal(const char *s, uint64_t *billionths)
{
	uint64_t whole = 0, part = 0, scale = BILLION;
	unsigned digits = 0;

	for (; *s >= '0' && *s <= '9'; s++) {
		if (++digits > 7)
			return NULL;
		whole = whole * 10 + (uint64_t)(*s - '0');
	}
	if (!digits)
		return NULL;
	if (*s == '.') {
		for (s++; *s >= '0' && *s <= '9'; s++) {
			if (scale == 1)
				return NULL;
			scale /= 10;
			part += (uint64_t)(*s - '0') * scale;
		}
	}
	*billionths = whole * BILLION + part;
	return s;
}

/* "1%", "0.5", "0": parts of FAULT_CERTAIN. */
static bool parse_chance(const char *s, uint32_t *out)
{
	uint64_t v;

	s = parse_decimal(s, &v);
	if (!s)
		return false;
	if (*s == '%') {
		s++;
		v /= 100;
	}
	if (*s || v > FAULT_CERTAIN)
		return false;
	*out = (uint32_t)v;
	return true;
}

/* A number with a unit; "0" needs none. */
static bool parse_scaled(const char *s, const struct unit *unit, uint64_t *out)
{
	uint64_t v;

	s = parse_decimal(s, &v);
	if (!s)
		return false;
	if (!*s && v == 0) {
		*out = 0;
		return true;
	}
	for (; unit->name; unit++) {
		if (!strcmp(s, unit->name)) {
			*out = (uint64_t)((unsigned __int128)v * unit->scale / BILLION);
			return true;
		}
	}
	return false;
}

/* Decimal or 0x..., up to max. */
static bool parse_integer(const char *s, uint64_t max, uint64_t *out)
{
	int base = s[0] == '0' && s[1] == 'x' ? 16 : 10;
	uint64_t v = 0;

	if (base == 16)
		s += 2;
	if (!*s)
		return false;
	for (; *s; s++) {
		int d = hex_digit(*s);

		if (d < 0 || d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return false;
	}
	*out = v;
	return v <= max;
}

static bool parse_dir(const char *s, uint8_t *out)
{
	for (unsigned i = FAULT_TX; i <= FAULT_BOTH; i++) {
		if (!strcmp(s, dir_name[i])) {
			*out = (uint8_t)i;
			return true;
		}
	}
	return false;
}

static bool parse_action(const char *s, uint8_t *out)
{
	for (unsigned i = 0; i < FAULT_N_ACTIONS; i++) {
		if (!strcmp(s, fault_action_name[i])) {
			*out = (uint8_t)i;
			return true;
		}
	}
	return false;
}

/* The operation of that name, else all whose names go on after it with a dash. */
static uint64_t opcode_ops(const char *name)
{
	int exact = opcode_op_by_name(name);
	size_t n = strlen(name);
	uint64_t ops = 0;

	if (exact >= 0)
		return exact == CNP_OPCODE ? 1ull << 32 : 1ull << exact;
	for (uint8_t op = 0; op < 32; op++) {
		const char *full = opcode_op_name(op);

		if (opcode_op_by_name(full) == op && !strncmp(full, name, n) && full[n] == '-')
			ops |= 1ull << op;
	}
	return ops;
}

static bool parse_opcode(struct fault_once *r, const char *s)
{
	uint64_t ops = opcode_ops(s);

	if (!ops || strlen(s) >= FAULT_NAME_MAX)
		return false;
	r->ops = ops;
	strcpy(r->opcode, s);
	return true;
}

static bool parse_switch(const char *s, bool *out)
{
	*out = !strcmp(s, "on");
	return *out || !strcmp(s, "off");
}

/* What a name takes, for the sentence when it does not get it. NULL: there is no such name. */
static const char *set_value(struct fault_conf *c, const char *name, const char *s, bool *ok)
{
	for (unsigned a = 0; a < FAULT_DELAY; a++) {
		if (!strcmp(name, fault_action_name[a])) {
			*ok = parse_chance(s, &c->chance[a]);
			return "a chance from 0% to 100%";
		}
	}
	if (!strcmp(name, "delay") || !strcmp(name, "jitter") || !strcmp(name, "hold")) {
		uint64_t *to = *name == 'd'   ? &c->delay_ns
			       : *name == 'j' ? &c->jitter_ns
					      : &c->hold_ns;

		*ok = parse_scaled(s, time_units, to);
		return "a time like 20us (s, ms, us, ns)";
	}
	if (!strcmp(name, "rate")) {
		*ok = parse_scaled(s, rate_units, &c->rate_bps);
		return "a rate like 1gbit (gbit, mbit, kbit, bit), or 0";
	}
	if (!strcmp(name, "partition")) {
		*ok = parse_switch(s, &c->is_partition);
		return "on or off";
	}
	if (!strcmp(name, "dir")) {
		*ok = parse_dir(s, &c->dir);
		return "tx, rx or both";
	}
	if (!strcmp(name, "seed")) {
		*ok = parse_integer(s, UINT64_MAX, &c->seed);
		return "a number";
	}
	return NULL;
}

static const char *set_once_value(struct fault_once *r, const char *name, const char *s, bool *ok)
{
	uint64_t nth = 0;

	if (!strcmp(name, "opcode")) {
		*ok = parse_opcode(r, s);
		return "an operation like send-only, write or read-response-middle";
	}
	if (!strcmp(name, "qpn") || !strcmp(name, "psn")) {
		*ok = parse_integer(s, 0xffffff, *name == 'q' ? &r->qpn : &r->psn);
		return "a number below 2^24";
	}
	if (!strcmp(name, "nth")) {
		*ok = parse_integer(s, 1000000000, &nth) && nth > 0;
		r->nth = (uint32_t)nth;
		return "a number from 1 on";
	}
	if (!strcmp(name, "action")) {
		*ok = parse_action(s, &r->action);
		return "drop, dup, reorder, corrupt, mark or delay";
	}
	if (!strcmp(name, "dir")) {
		*ok = parse_dir(s, &r->dir);
		return "tx, rx or both";
	}
	if (!strcmp(name, "delay")) {
		*ok = parse_scaled(s, time_units, &r->delay_ns);
		return "a time like 1ms (s, ms, us, ns)";
	}
	return NULL;
}

static bool begin_once(struct fault_conf *c)
{
	if (c->n_once == FAULT_ONCE_MAX)
		return false;
	c->once[c->n_once++] = (struct fault_once) { .qpn = FAULT_ANY,
						     .psn = FAULT_ANY,
						     .nth = 1,
						     .dir = FAULT_BOTH,
						     .action = FAULT_DROP };
	return true;
}

/* word is cut in two at its '='. */
static int parse_word(struct fault_conf *c, char *word, bool in_once, char *err, unsigned err_size)
{
	char *value = strchr(word, '=');
	const char *takes;
	bool ok = false;

	if (!value) {
		snprintf(err, err_size, "\"%s\" is not of the form name=value", word);
		return -EINVAL;
	}
	*value++ = '\0';
	takes = in_once ? set_once_value(&c->once[c->n_once - 1], word, value, &ok)
			: set_value(c, word, value, &ok);
	if (!takes) {
		snprintf(err, err_size, "there is no fault \"%s\"%s", word,
			 in_once ? " behind --once" : "");
		return -EINVAL;
	}
	if (!ok)
		snprintf(err, err_size, "%s takes %s, not \"%s\"", word, takes, value);
	return ok ? 0 : -EINVAL;
}

/* Copies the next word; 0 at the end, -1 when it is too long. */
static int next_word(const char **text, char *word)
{
	size_t n;

	*text += strspn(*text, " ,\t\n");
	n = strcspn(*text, " ,\t\n");
	if (n >= WORD_MAX)
		return -1;
	memcpy(word, *text, n);
	word[n] = '\0';
	*text += n;
	return n > 0;
}

int fault_parse(struct fault_conf *c, const char *text, char *err, unsigned err_size)
{
	struct fault_conf next = *c;
	bool in_once = false;
	char word[WORD_MAX];
	int more;

	while ((more = next_word(&text, word)) > 0) {
		if (!strcmp(word, "--once")) {
			in_once = true;
			if (!begin_once(&next)) {
				snprintf(err, err_size, "there are already %u one-shot rules",
					 FAULT_ONCE_MAX);
				return -EINVAL;
			}
		} else if (parse_word(&next, word, in_once, err, err_size) != 0) {
			return -EINVAL;
		}
	}
	if (more < 0) {
		snprintf(err, err_size, "a word is longer than %u letters", WORD_MAX - 1);
		return -EINVAL;
	}
	*c = next;
	return 0;
}

/* v billionths without trailing zeros. */
static void put_decimal(struct line *l, uint64_t v)
{
	char frac[11];
	int n = snprintf(frac, sizeof(frac), ".%09" PRIu64, v % BILLION);

	while (n > 0 && (frac[n - 1] == '0' || frac[n - 1] == '.'))
		frac[--n] = '\0';
	line_put(l, "%" PRIu64 "%s", v / BILLION, frac);
}

/* In the largest unit that divides v. */
static void put_scaled(struct line *l, const char *name, uint64_t v, const struct unit *unit)
{
	while (v % unit->scale || (v && v / unit->scale == 0))
		unit++;
	line_put(l, " %s=%" PRIu64 "%s", name, v / unit->scale, unit->name);
}

static void put_once(struct line *l, const struct fault_once *r)
{
	line_put(l, " --once");
	if (r->opcode[0])
		line_put(l, " opcode=%s", r->opcode);
	if (r->qpn != FAULT_ANY)
		line_put(l, " qpn=%" PRIu64, r->qpn);
	if (r->psn != FAULT_ANY)
		line_put(l, " psn=%" PRIu64, r->psn);
	if (r->dir != FAULT_BOTH)
		line_put(l, " dir=%s", dir_name[r->dir]);
	line_put(l, " nth=%" PRIu32 " action=%s", r->nth, fault_action_name[r->action]);
	if (r->delay_ns)
		put_scaled(l, "delay", r->delay_ns, time_units);
}

const char *fault_describe(const struct fault_conf *c, char *buf, unsigned size)
{
	struct line l = { buf, size, 0 };

	if (size)
		buf[0] = '\0';
	for (unsigned a = 0; a < FAULT_DELAY; a++) {
		if (c->chance[a]) {
			line_put(&l, " %s=", fault_action_name[a]);
			put_decimal(&l, (uint64_t)c->chance[a] * 100);
			line_put(&l, "%%");
		}
	}
	if (c->delay_ns)
		put_scaled(&l, "delay", c->delay_ns, time_units);
	if (c->jitter_ns)
		put_scaled(&l, "jitter", c->jitter_ns, time_units);
	if (c->hold_ns != FAULT_HOLD_NS)
		put_scaled(&l, "hold", c->hold_ns, time_units);
	if (c->rate_bps)
		put_scaled(&l, "rate", c->rate_bps, rate_units);
	if (c->is_partition)
		line_put(&l, " partition=on");
	if (c->dir != FAULT_BOTH)
		line_put(&l, " dir=%s", dir_name[c->dir]);
	if (c->seed)
		line_put(&l, " seed=%" PRIu64, c->seed);
	for (unsigned i = 0; i < c->n_once; i++)
		put_once(&l, &c->once[i]);
	if (size && buf[0] == ' ')
		memmove(buf, buf + 1, strlen(buf));
	return buf;
}
