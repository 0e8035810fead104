/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/icrc_id.h"

#include <assert.h>
#include <stddef.h>

#include "fabric/wire/hdr.h"

/*
 * Registers of the reflected CRC-32 are polynomials over GF(2) modulo P, highest power in the
 * lowest bit. n more zero bytes multiply a register by x^(8n); P divides x^(2^32 - 1) - 1, so that
 * this can be undone.
 */
#define CRC32_P 0xedb88320u

/* x to the power of 8 * 2^k, and of -8 * 2^k. */
/* clang-format off */
static const uint32_t zeros[16] = {
	0x00800000, 0x00008000, 0xedb88320, 0xb1e6b092, 0xa06a2517, 0xed627dae, 0x88d14467, 0xd7bbfe6a,
	0xec447f11, 0x8e7ea170, 0x6427800e, 0x4d47bae0, 0x09fe548f, 0x83852d0f, 0x30362f1a, 0x7b5a9cc3,
};
static const uint32_t unzeros[16] = {
	0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12, 0xba340226,
	0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5,
};
/* clang-format on */

static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		product ^= -(a >> 31) & b;
		b = b >> 1 ^ (-(b & 1) & CRC32_P);
	}
	return product;
}

/* The register after n (below 2^16) factors of table[0]. */
static uint32_t shift(uint32_t reg, uint32_t n, const uint32_t table[16])
{
	for (unsigned k = 0; k < 16; k++)
		if (n >> k & 1)
			reg = multiply(table[k], reg);
	return reg;
}

/* Bytes from the identification, itself included, to the end. */
static uint32_t from_id(uint32_t covered)
{
	assert(covered >= sizeof(struct ipv4_hdr) && covered < 65536);
	return covered - (uint32_t)offsetof(struct ipv4_hdr, id);
}

/* On the wire the identification has its high byte first; a register takes its low byte first. */
uint32_t icrc_of_id_change(uint16_t id_change, uint32_t covered)
{
	return shift(__builtin_bswap16(id_change), from_id(covered), zeros);
}

bool icrc_explain_by_id(uint32_t difference, uint32_t covered, uint16_t *id_change)
{
	uint32_t reg = shift(difference, from_id(covered), unzeros);

	*id_change = __builtin_bswap16((uint16_t)reg);
	return reg >> 16 == 0;
}
