/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of the commands that only report: --json and --run-dir. */
#pragma once

#include <argp.h>
#include <stdbool.h>

struct report_args {
	const char *run_dir;
	bool as_json;
};

extern const struct argp_option report_options[];
error_t report_parse(int key, char *arg, struct argp_state *state); /* input: report_args */
