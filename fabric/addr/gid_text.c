/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/gid.h"

#include <errno.h>
#include <string.h>

#include "fabric/wire/line.h"

const char *gid_format(const uint8_t gid[GID_LEN], char buf[GID_TEXT_LEN])
{
	static const char digit[] = "0123456789abcdef";
	char *p = buf;

	for (unsigned i = 0; i < GID_LEN; i++) {
		if (i && i % 2 == 0)
			*p++ = ':';
		*p++ = digit[gid[i] >> 4];
		*p++ = digit[gid[i] & 0xf];
	}
	*p = '\0';
	return buf;
}

/* Four decimal numbers below 256, no leading zeros, up to the end of the text. */
static bool parse_ipv4(const char *s, uint8_t out[4])
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned v = 0, digits = 0;

		if (i && *s++ != '.')
			return false;
		for (; *s >= '0' && *s <= '9'; s++) {
			if (++digits > 3 || (digits == 2 && v == 0))
				return false;
			v = v * 10 + (unsigned)(*s - '0');
		}
		if (!digits || v > 255)
			return false;
		out[i] = (uint8_t)v;
	}
	return *s == '\0';
}

/* What is read of an IPv6 address: the bytes so far, and how many of them came before "::". */
struct v6 {
	uint8_t b[GID_LEN];
	unsigned n;
	int gap; /* -1: none yet */
};

/* One group of up to four hex digits, or the IPv4 address at the end; moves *s behind it. */
static bool parse_group(struct v6 *a, const char **s)
{
	unsigned v = 0, digits = 0;
	const char *p = *s;

	for (; hex_digit(*p) >= 0; p++) {
		if (++digits > 4)
			return false;
		v = v << 4 | (unsigned)hex_digit(*p);
	}
	if (*p == '.') {
		if (a->n > 12 || !parse_ipv4(*s, a->b + a->n))
			return false;
		a->n += 4;
		*s += strlen(*s);
		return true;
	}
	if (!digits || a->n > 14)
		return false;
	a->b[a->n++] = (uint8_t)(v >> 8);
	a->b[a->n++] = (uint8_t)v;
	*s = p;
	return true;
}

/* "::" stands for at least one group of zeros. */
static bool fill_gap(const struct v6 *a, uint8_t gid[GID_LEN])
{
	unsigned before = a->gap < 0 ? a->n : (unsigned)a->gap;

	if (a->gap < 0 ? a->n != GID_LEN : a->n > GID_LEN - 2)
		return false;
	memset(gid, 0, GID_LEN);
	memcpy(gid, a->b, before);
	memcpy(gid + GID_LEN - (a->n - before), a->b + before, a->n - before);
	return true;
}

static bool parse_ipv6(const char *s, uint8_t gid[GID_LEN])
{
	struct v6 a = { .gap = -1 };

	if (s[0] == ':' && s[1] != ':')
		return false;
	for (;;) {
		if (s[0] == ':' && s[1] == ':') {
			if (a.gap >= 0)
				return false;
			a.gap = (int)a.n;
			s += 2;
			if (*s == '\0')
				break;
		} else if (s[0] == ':') {
			s++;
		}
		if (!parse_group(&a, &s))
			return false;
		if (*s == '\0')
			break;
		if (*s != ':')
			return false;
	}
	return fill_gap(&a, gid);
}

int gid_parse(const char *text, uint8_t gid[GID_LEN])
{
	uint8_t v4[4];

	if (parse_ipv4(text, v4)) {
		gid_from_ipv4(gid, v4);
		return 0;
	}
	return parse_ipv6(text, gid) ? 0 : -EINVAL;
}
