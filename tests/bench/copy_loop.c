/* SPDX-License-Identifier: BSD-3-Clause */
/* One core's memcpy of SIZE bytes, again and again: what moving bytes costs at the least. */
#include <string.h>

#include "tests/bench/timing.h"

int main(int argc, char **argv)
{
	uint32_t size, n;
	uint64_t start;
	uint8_t *mem;

	if (argc != 3) {
		fprintf(stderr, "usage: %s SIZE COUNT\n", argv[0]);
		return 2;
	}
	size = timing_number(argv[1]);
	n = timing_number(argv[2]);
	mem = aligned_alloc(4096, 2 * (((size_t)size + 4095) & ~(size_t)4095));
	if (!mem)
		return 1;
	memset(mem, 1, 2 * (size_t)size);
	start = timing_now();
	for (uint32_t i = 0; i < n; i++) {
		memcpy(mem, mem + size, size);
		__asm__ volatile("" : : "r"(mem) : "memory");
	}
	printf("gbit_per_s %.3f\n", 8.0 * size * n / (double)(timing_now() - start));
	free(mem);
	return 0;
}
