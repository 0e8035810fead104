/* SPDX-License-Identifier: BSD-3-Clause */
/* A fuzzer's bytes as a stream of numbers; past the end it reads zeros. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
	const uint8_t *at;
	size_t left;
};

static inline size_t input_take(struct input *in, void *out, size_t n)
{
	size_t k = n < in->left ? n : in->left;

	memset(out, 0, n);
	memcpy(out, in->at, k);
	in->at += k;
	in->left -= k;
	return k;
}

static inline uint8_t input_u8(struct input *in)
{
	uint8_t v;

	input_take(in, &v, sizeof(v));
	return v;
}

static inline uint32_t input_u32(struct input *in)
{
	uint32_t v;

	input_take(in, &v, sizeof(v));
	return v;
}

static inline uint64_t input_u64(struct input *in)
{
	uint64_t v;

	input_take(in, &v, sizeof(v));
	return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
