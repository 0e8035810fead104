/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider.h"

#include <stdarg.h>
#include <stdio.h>

void uroce_complain(enum uroce_complaint kind, const char *fmt, ...)
{
	static atomic_flag is_said[COMPLAIN_N];
	char line[768];
	va_list args;

	if (atomic_flag_test_and_set(&is_said[kind]))
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "uroce: %s\n", line);
}
