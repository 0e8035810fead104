/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Big-endian scalars of external layouts: byte arrays, so a struct of them has no padding and may
 * lie at any address. They do no arithmetic; read them into a host integer first.
 */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <string.h>

typedef struct {
	uint8_t b[2];
} be16;

typedef struct {
	uint8_t b[4];
} be32;

typedef struct {
	uint8_t b[8];
} be64;

static_assert(sizeof(be16) == 2 && _Alignof(be16) == 1, "be16 lies at any address");
static_assert(sizeof(be32) == 4 && _Alignof(be32) == 1, "be32 lies at any address");
static_assert(sizeof(be64) == 8 && _Alignof(be64) == 1, "be64 lies at any address");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE_SWAP(bits, v) __builtin_bswap##bits(v)
#else
#define BE_SWAP(bits, v) (v)
#endif

static inline uint16_t be16_get(be16 x)
{
	uint16_t v;

	memcpy(&v, x.b, sizeof(v));
	return BE_SWAP(16, v);
}

static inline uint32_t be32_get(be32 x)
{
	uint32_t v;

	memcpy(&v, x.b, sizeof(v));
	return BE_SWAP(32, v);
}

static inline uint64_t be64_get(be64 x)
{
	uint64_t v;

	memcpy(&v, x.b, sizeof(v));
	return BE_SWAP(64, v);
}

static inline be16 be16_make(uint16_t v)
{
	be16 x;

	v = BE_SWAP(16, v);
	memcpy(x.b, &v, sizeof(v));
	return x;
}

static inline be32 be32_make(uint32_t v)
{
	be32 x;

	v = BE_SWAP(32, v);
	memcpy(x.b, &v, sizeof(v));
	return x;
}

static inline be64 be64_make(uint64_t v)
{
	be64 x;

	v = BE_SWAP(64, v);
	memcpy(x.b, &v, sizeof(v));
	return x;
}
