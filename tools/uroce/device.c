/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce device: devices that come, go, and have their port set up or down while the daemon runs. */
#include "tools/uroce/cmd.h"

#include "tools/uroce/client.h"
#include "tools/uroce/rundir.h"
#include "tools/uroce/say.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 16

struct device_args {
	const char *run_dir;
	bool as_json;
	char *word[MAX_WORDS];
	unsigned n_words;
};

static const struct {
	const char *name;
	unsigned min, max; /* words behind it */
	const char *usage;
} verb[] = {
	{ "add", 1, MAX_WORDS - 1, "add KEY=VALUE..." },
	{ "del", 1, 1, "del NAME" },
	{ "set", 2, 2, "set NAME up|down" },
	{ "show", 0, 1, "show [NAME]" },
};
#define N_VERBS (sizeof(verb) / sizeof(verb[0]))

static void check_words(const struct device_args *a, struct argp_state *state)
{
	for (unsigned i = 0; a->n_words && i < N_VERBS; i++) {
		if (strcmp(a->word[0], verb[i].name))
			continue;
		if (a->n_words - 1 < verb[i].min || a->n_words - 1 > verb[i].max)
			argp_error(state, "%s is expected", verb[i].usage);
		return;
	}
	argp_error(state, "add, del, set or show is expected%s%s", a->n_words ? ", not " : "",
		   a->n_words ? a->word[0] : "");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct device_args *a = state->input;

	switch (key) {
	case 'r':
		a->run_dir = arg;
		return 0;
	case 'j':
		a->as_json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->n_words == MAX_WORDS)
			argp_error(state, "that is too long");
		a->word[a->n_words++] = arg;
		return 0;
	case ARGP_KEY_END:
		check_words(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp device_argp = {
	.options = (const struct argp_option[]) { { "json", 'j', NULL, 0, "Print JSON", 0 },
						  { "run-dir", 'r', "DIR", 0,
						    "The daemon's run directory", 0 },
						  { 0 } },
	.parser = parse,
	.args_doc = "add KEY=VALUE...\ndel NAME\nset NAME up|down\nshow [NAME]",
	.doc = "Adds and removes devices while the daemon runs, and sets their ports up or down."
	       "\vThe keys are those of uroced's --device: name, link, uplink, addr, interface, "
	       "mtu, vlan, congestion, devargs. Examples:\n"
	       "  uroce device add name=lan0 link=udp interface=eth0\n"
	       "  uroce device set uroce0 down     # programs get IBV_EVENT_PORT_ERR\n"
	       "  uroce device del lan0            # programs get IBV_EVENT_DEVICE_FATAL",
};

/* The words as the daemon reads them; those behind "add" are one list. */
static int join(const struct device_args *a, char *line, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < a->n_words; i++) {
		const char *gap = !i ? "" : i > 1 && !strcmp(a->word[0], "add") ? "," : " ";
		int n = snprintf(line + at, size - at, "%s%s", gap, a->word[i]);

		if (n < 0 || (size_t)n >= size - at)
			return -E2BIG;
		at += (size_t)n;
	}
	return 0;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

static void print(const json_t *d)
{
	const json_t *gids = json_object_get(d, "gids"), *g;
	const char *uplink = json_string_value(json_object_get(d, "uplink"));
	size_t i;

	printf("%s: %s, link %s%s%s, mtu %" PRId64 ", %s\n", text(d, "name"), text(d, "state"),
	       text(d, "link"), uplink ? " with uplink " : "", uplink ? uplink : "",
	       (int64_t)json_integer_value(json_object_get(d, "mtu")), text(d, "mac"));
	json_array_foreach(gids, i, g) printf("    %s\n", json_string_value(g));
}

/* The devices of the daemon's status, or the one that is asked for. */
static int show(const struct device_args *a, const char *status)
{
	json_t *root = json_loads(status, 0, NULL), *chosen = json_array(), *d;
	int code = UROCE_EXIT_OK;
	size_t i;

	json_array_foreach(json_object_get(root, "devices"), i, d)
	{
		if (a->n_words == 1 || !strcmp(text(d, "name"), a->word[1]))
			json_array_append(chosen, d);
	}
	if (a->n_words > 1 && !json_array_size(chosen)) {
		say_error("there is no device %s.", a->word[1]);
		code = UROCE_EXIT_FAIL;
	} else if (a->as_json) {
		json_dumpf(chosen, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		json_array_foreach(chosen, i, d) print(d);
	}
	json_decref(chosen);
	json_decref(root);
	return code;
}

static int tell(const struct device_args *a, const char *answer)
{
	json_t *root = json_loads(answer, 0, NULL);
	const char *error = json_string_value(json_object_get(root, "error"));
	int code = UROCE_EXIT_OK;

	if (error) {
		say_error("%s.", error);
		code = UROCE_EXIT_FAIL;
	} else if (a->as_json) {
		printf("%s\n", answer);
	} else if (!strcmp(a->word[0], "add")) {
		printf("%s\n", text(root, "device"));
	}
	json_decref(root);
	return code;
}

static int ask(const struct device_args *a, struct client *c, const char *run_dir)
{
	bool is_show = !strcmp(a->word[0], "show");
	char line[2048], *answer = NULL;
	int err = join(a, line, sizeof(line)), code = UROCE_EXIT_FAIL;

	if (!err)
		err = is_show ? client_text(c, UROCE_OP_ADMIN_STATUS, NULL, &answer)
			      : client_text(c, UROCE_OP_ADMIN_DEVICE, line, &answer);
	if (err == -EPERM)
		say_error("the daemon in %s belongs to another user, who alone may do that.",
			  run_dir);
	else if (err)
		say_error("the daemon in %s did not do that: %s.", run_dir, strerror(-err));
	else
		code = is_show ? show(a, answer) : tell(a, answer);
	free(answer);
	return code;
}

int uroce_device(int argc, char **argv)
{
	struct device_args args = { 0 };
	char run_dir[PATH_MAX];
	struct client c;
	int err, code;

	if (argp_parse(&device_argp, argc, argv, 0, NULL, &args) ||
	    rundir_find(args.run_dir, run_dir))
		return UROCE_EXIT_USAGE;
	err = client_connect(&c, run_dir);
	if (err) {
		say_no_daemon(run_dir, err);
		return UROCE_EXIT_FAIL;
	}
	code = ask(&args, &c, run_dir);
	client_close(&c);
	return code;
}
