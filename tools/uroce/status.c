/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce status: what the daemon says of itself, as tables or as the JSON it sent. */
#include "tools/uroce/cmd.h"

#include "tools/uroce/client.h"
#include "tools/uroce/report.h"
#include "tools/uroce/rundir.h"
#include "tools/uroce/say.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct argp status_argp = {
	.options = report_options,
	.parser = report_parse,
	.doc = "Shows the daemon, its devices, their clients and queue pairs.",
};

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

static int64_t number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void show_daemon(const json_t *root)
{
	const json_t *workers = json_object_get(root, "workers"), *w;
	int64_t up = number(root, "uptime_s");
	size_t i;

	printf("uroced %s, pid %" PRId64 ", up %" PRId64 ":%02" PRId64 ":%02" PRId64 ", in %s\n",
	       text(root, "version"), number(root, "pid"), up / 3600, up / 60 % 60, up % 60,
	       text(root, "run_dir"));
	json_array_foreach(workers, i, w)
		printf("worker %" PRId64 ": %s, %" PRId64 " turns, %" PRId64 " sleeps\n",
		       number(w, "id"), text(w, "state"), number(w, "turns"), number(w, "sleeps"));
}

/* Counters that are not zero, on one line each. */
static void show_counters(const json_t *device)
{
	json_t *value;
	const char *key;

	json_object_foreach(json_object_get(device, "counters"), key,
			    value) if (json_integer_value(value))
		printf("    %-24s %" PRId64 "\n", key, (int64_t)json_integer_value(value));
}

static void show_devices(const json_t *root)
{
	const json_t *devices = json_object_get(root, "devices"), *d, *g;
	size_t i, j;

	json_array_foreach(devices, i, d)
	{
		printf("\n%s: %s, %s, mtu %" PRId64 ", link %s, guid %s\n", text(d, "name"),
		       text(d, "state"), text(d, "mac"), number(d, "mtu"), text(d, "link"),
		       text(d, "node_guid"));
		json_array_foreach(json_object_get(d, "gids"), j, g) printf(
			"    gid %zu: %s\n", j, json_string_value(g) ? json_string_value(g) : "-");
		show_counters(d);
	}
}

static void show_clients(const json_t *root)
{
	const json_t *clients = json_object_get(root, "clients"), *c;
	size_t i;

	if (!json_array_size(clients)) {
		printf("\nno clients\n");
		return;
	}
	printf("\n%-8s %-6s %-16s %-10s %4s %4s %4s %4s\n", "PID", "UID", "PROGRAM", "DEVICE",
	       "PDS", "MRS", "CQS", "QPS");
	json_array_foreach(clients, i, c)
		printf("%-8" PRId64 " %-6" PRId64 " %-16s %-10s %4" PRId64 " %4" PRId64 " %4" PRId64
		       " %4" PRId64 "\n",
		       number(c, "pid"), number(c, "uid"), text(c, "comm"), text(c, "device"),
		       number(c, "pds"), number(c, "mrs"), number(c, "cqs"), number(c, "qps"));
}

static void show_qps(const json_t *root)
{
	const json_t *qps = json_object_get(root, "qps"), *q;
	size_t i;

	if (!json_array_size(qps))
		return;
	printf("\n%-10s %-8s %-4s %-6s %-8s %-16s %-8s %5s %8s %8s %8s %5s %5s\n", "DEVICE", "QPN",
	       "TYPE", "STATE", "PID", "PROGRAM", "REMOTE", "MTU", "NXTPSN", "UNAPSN", "EPSN", "SQ",
	       "RETRY");
	json_array_foreach(qps, i, q) printf(
		"%-10s 0x%06" PRIx64 " %-4s %-6s %-8" PRId64 " %-16s 0x%06" PRIx64 " %5" PRId64
		" %8" PRId64 " %8" PRId64 " %8" PRId64 " %5" PRId64 " %5" PRId64 "\n",
		text(q, "device"), number(q, "qpn"), text(q, "type"), text(q, "state"),
		number(q, "pid"), text(q, "comm"), number(q, "remote_qpn"), number(q, "mtu"),
		number(q, "nxt_psn"), number(q, "una_psn"), number(q, "epsn"),
		number(q, "sq_pending"), number(q, "retries"));
}

static int show(const char *json, bool as_json)
{
	json_error_t why;
	json_t *root = json_loads(json, 0, &why);

	if (!root) {
		say_error("the daemon's status is not JSON (%s); this is a bug.", why.text);
		return UROCE_EXIT_FAIL;
	}
	if (as_json) {
		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		show_daemon(root);
		show_devices(root);
		show_clients(root);
		show_qps(root);
	}
	json_decref(root);
	return UROCE_EXIT_OK;
}

int uroce_status(int argc, char **argv)
{
	struct report_args args = { 0 };
	char run_dir[PATH_MAX], *json = NULL;
	struct client c;
	int err, code = UROCE_EXIT_FAIL;

	if (argp_parse(&status_argp, argc, argv, 0, NULL, &args) ||
	    rundir_find(args.run_dir, run_dir))
		return UROCE_EXIT_USAGE;
	err = client_connect(&c, run_dir);
	if (!err) {
		err = client_text(&c, UROCE_OP_ADMIN_STATUS, NULL, &json);
		client_close(&c);
	}
	if (err)
		say_no_daemon(run_dir, err);
	else
		code = show(json, args.as_json);
	free(json);
	return code;
}
