/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/report.h"

const struct argp_option report_options[] = {
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ "run-dir", 'r', "DIR", 0, "The daemon's run directory", 0 },
	{ 0 },
};

error_t report_parse(int key, char *arg, struct argp_state *state)
{
	struct report_args *a = state->input;

	switch (key) {
	case 'j':
		a->as_json = true;
		return 0;
	case 'r':
		a->run_dir = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected: %s", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
