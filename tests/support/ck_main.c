/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/ck_main.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_SEED 20240229u

uint64_t ck_seed(void)
{
	const char *text = getenv("UROCE_TEST_SEED");

	return text && *text ? strtoull(text, NULL, 0) : DEFAULT_SEED;
}

int main(void)
{
	SRunner *runner = srunner_create(suite_make());
	int failed;

	printf("# UROCE_TEST_SEED=%" PRIu64 "\n", ck_seed());
	fflush(stdout);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
