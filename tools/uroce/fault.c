/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce fault: hands its words to the daemon, which knows what they mean. */
#include "tools/uroce/cmd.h"

#include "tools/uroce/client.h"
#include "tools/uroce/rundir.h"
#include "tools/uroce/say.h"

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fault_args {
	const char *run_dir;
	char text[UROCE_CTRL_MSG_MAX - sizeof(struct uroce_req)];
	unsigned n_words;
};

static void add_word(struct fault_args *a, const char *word, struct argp_state *state)
{
	size_t n = strlen(a->text);

	if ((size_t)snprintf(a->text + n, sizeof(a->text) - n, "%s%s", n ? " " : "", word) >=
	    sizeof(a->text) - n)
		argp_error(state, "that is too long");
	a->n_words++;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct fault_args *a = state->input;

	switch (key) {
	case 'r':
		a->run_dir = arg;
		return 0;
	case 'o':
		add_word(a, "--once", state);
		a->n_words--;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->n_words && strcmp(arg, "set") && strcmp(arg, "show") &&
		    strcmp(arg, "clear"))
			argp_error(state, "set, show or clear is expected, not %s", arg);
		add_word(a, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "set, show or clear is missing");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp fault_argp = {
	.options =
		(const struct argp_option[]) {
			{ "once", 'o', NULL, 0, "One rule for one packet", 0 },
			{ "run-dir", 'r', "DIR", 0, "The daemon's run directory", 0 },
			{ 0 } },
	.parser = parse,
	.args_doc = "set DEVICE NAME=VALUE...\nshow [DEVICE]\nclear [DEVICE]",
	.doc = "Damages, loses, delays or repeats packets on the switch, to see what programs make "
	       "of it.\vExample: uroce fault set uroce1 drop=1% reorder=0.1% seed=7",
};

/* The answer is JSON; its "error" is a sentence, anything else is shown as it is. */
static int show_answer(const char *text)
{
	json_t *root = json_loads(text, 0, NULL);
	json_t *error = root ? json_object_get(root, "error") : NULL;
	int code = UROCE_EXIT_OK;

	if (json_is_string(error)) {
		say_error("%s", json_string_value(error));
		code = UROCE_EXIT_FAIL;
	} else if (text[0]) {
		printf("%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
	}
	json_decref(root);
	return code;
}

int uroce_fault(int argc, char **argv)
{
	static struct fault_args args;
	char run_dir[PATH_MAX], *text = NULL;
	struct client c;
	int err, code;

	if (argp_parse(&fault_argp, argc, argv, ARGP_IN_ORDER, NULL, &args) ||
	    rundir_find(args.run_dir, run_dir))
		return UROCE_EXIT_USAGE;
	err = client_connect(&c, run_dir);
	if (err) {
		say_no_daemon(run_dir, err);
		return UROCE_EXIT_FAIL;
	}
	err = client_text(&c, UROCE_OP_ADMIN_FAULT, args.text, &text);
	client_close(&c);
	if (err == -EOPNOTSUPP || err == -ENOSYS)
		say_error("the daemon in %s cannot inject faults.", run_dir);
	else if (err && !text)
		say_error("the daemon did not take `%s`: %s.", args.text, strerror(-err));
	code = text ? show_answer(text) : UROCE_EXIT_FAIL;
	free(text);
	return err ? UROCE_EXIT_FAIL : code;
}
