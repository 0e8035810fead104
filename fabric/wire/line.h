/* SPDX-License-Identifier: BSD-3-Clause */
/* Words put one after another into a line of a given size, and the smallest piece of reading one.
 */
#pragma once

#include <stdint.h>

struct line {
	char *buf;
	unsigned size, len; /* len: what it took, or would have taken had there been room */
};

/* Appends what fits; a line too long is cut. */
__attribute__((format(printf, 2, 3))) void line_put(struct line *l, const char *fmt, ...);

/* 0 to 15, or -1: no hexadecimal digit. */
int hex_digit(char c);
