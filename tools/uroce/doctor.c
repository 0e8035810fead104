/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: runs the checks in order and says what to do about each that is not ok. */
#include "tools/uroce/check.h"
#include "tools/uroce/cmd.h"

#include "tools/uroce/client.h"
#include "tools/uroce/report.h"
#include "tools/uroce/rundir.h"
#include "tools/uroce/say.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

void check_ok(struct check_result *r, const char *fmt, ...)
{
	va_list ap;

	r->level = CHECK_OK;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

void check_bad(struct check_result *r, enum check_level level, const char *fmt, ...)
{
	va_list ap;

	r->level = level;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

void check_cure(struct check_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->cure, sizeof(r->cure), fmt, ap);
	va_end(ap);
}

static void check_run_dir(struct check_world *w, struct check_result *r)
{
	struct stat st;

	if (lstat(w->run_dir, &st)) {
		check_ok(r, "%s does not exist yet; `uroce run` makes it", w->run_dir);
	} else if (!S_ISDIR(st.st_mode)) {
		check_bad(r, CHECK_FAIL, "%s is not a directory", w->run_dir);
		check_cure(r, "remove it, or name another one with --run-dir or UROCE_RUN_DIR");
	} else if (st.st_uid != geteuid() && geteuid() && st.st_uid) {
		check_bad(r, CHECK_FAIL, "%s belongs to user %u", w->run_dir, st.st_uid);
		check_cure(r, "name another one with --run-dir or UROCE_RUN_DIR");
	} else {
		check_ok(r, "%s", w->run_dir);
	}
}

static void check_daemon(struct check_world *w, struct check_result *r)
{
	struct client c;
	int err = client_connect(&c, w->run_dir);

	if (!err) {
		w->has_daemon = true;
		check_ok(r, "uroced %.32s answers, pid %d", c.hello.daemon_version, c.daemon_pid);
		client_close(&c);
	} else if (err == -ENOENT || err == -ECONNREFUSED) {
		check_bad(r, CHECK_WARN, "no daemon runs in %s", w->run_dir);
		check_cure(r, "`uroce run` starts one; run the doctor below it to check the rest: "
			      "uroce run -- uroce doctor");
	} else if (err == -EPROTO) {
		check_bad(r, CHECK_FAIL, "the daemon is of another version than this command");
		check_cure(r, "`uroce stop`, then start again");
	} else {
		check_bad(r, CHECK_FAIL, "the daemon does not answer: %s", strerror(-err));
		check_cure(r, "see %s/uroced.log; `uroce stop` ends it", w->run_dir);
	}
}

static void check_tree(struct check_world *w, struct check_result *r)
{
	char root[PATH_MAX], path[PATH_MAX + 128], text[64], names[512];

	snprintf(root, sizeof(root), "%s/sys", w->run_dir);
	if (!w->has_daemon) {
		check_ok(r, "not checked, since there is no daemon");
		return;
	}
	w->has_tree = !tree_read(&w->tree, root) && w->tree.n_devs;
	if (!w->has_tree) {
		check_bad(r, CHECK_FAIL, "%s shows no device", root);
		check_cure(r, "something removed it while the daemon ran: `uroce stop`, then start "
			      "again");
		return;
	}
	for (unsigned i = 0; i < w->tree.n_devs; i++) {
		snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/1/state", root,
			 w->tree.devs[i].name);
		if (tree_read_file(text, sizeof(text), path))
			continue;
		check_bad(r, CHECK_FAIL, "%s is missing", path);
		check_cure(r, "something removed it while the daemon ran: `uroce stop`, then start "
			      "again");
		return;
	}
	tree_names(&w->tree, names, sizeof(names));
	check_ok(r, "%s: %s", root, names);
}

/* The daemon tries to read and write a variable of ours, as it must with any program's memory. */
static int probe_memory(const char *run_dir, const char *device, bool *is_refused)
{
	static uint64_t variable = 1;
	struct uroce_hello hello = { .magic = UROCE_ABI_MAGIC,
				     .version = UROCE_ABI_VERSION,
				     .probe_addr = (uintptr_t)&variable,
				     .client_pid = (uint32_t)getpid() };
	struct uroce_hello_rep rep = { 0 };
	struct client c;
	int err = client_open(&c, run_dir);

	*is_refused = false;
	if (err)
		return err;
	snprintf(hello.device, sizeof(hello.device), "%s", device);
	err = client_call(&c, UROCE_OP_HELLO, &hello, sizeof(hello), &rep, sizeof(rep), NULL);
	if (!err) {
		if (rep.daemon_pid)
			prctl(PR_SET_PTRACER, rep.daemon_pid, 0, 0, 0);
		err = client_call(&c, UROCE_OP_PROBE_MEMORY, NULL, 0, NULL, 0, NULL);
		*is_refused = err != 0;
	}
	client_close(&c);
	return err;
}

static void check_memory(struct check_world *w, struct check_result *r)
{
	bool is_refused;
	int err;

	if (!w->has_daemon || !w->has_tree) {
		check_ok(r, "not checked, since there is no device to open");
		return;
	}
	err = probe_memory(w->run_dir, w->tree.devs[0].name, &is_refused);
	if (!err) {
		check_ok(r, "the daemon can read and write this user's memory");
	} else if (is_refused) {
		check_bad(r, CHECK_FAIL, "the daemon cannot reach this user's memory: %s",
			  strerror(-err));
		check_cure(r, "run the daemon as this user and in the same container or pid "
			      "namespace, or give it CAP_SYS_PTRACE; see the check of Yama");
	} else {
		check_bad(r, CHECK_FAIL, "%s cannot be opened: %s", w->tree.devs[0].name,
			  strerror(-err));
		check_cure(r, "see %s/uroced.log", w->run_dir);
	}
}

const struct check check_table[] = {
	{ "run directory", check_run_dir },  { "daemon", check_daemon },
	{ "class tree", check_tree },        { "namespaces", check_namespaces },
	{ "device nodes", check_nodes },     { "RDMA netlink", check_netlink },
	{ "seccomp", check_seccomp },        { "Yama", check_yama },
	{ "memory access", check_memory },   { "provider", check_provider },
	{ "what programs see", check_seen },
};
const unsigned check_n = sizeof(check_table) / sizeof(*check_table);

static const struct argp doctor_argp = {
	.options = report_options,
	.parser = report_parse,
	.doc = "Checks everything that can keep a device from showing up, and says what to do.\v"
	       "Changes nothing. Exits with 1 if a check failed; a warning is no failure.",
};

static const char *const level_name[] = {
	[CHECK_OK] = "ok",
	[CHECK_WARN] = "warn",
	[CHECK_FAIL] = "fail",
};

static void print(const struct check *check, const struct check_result *r)
{
	printf("%-4s  %-18s %s\n", level_name[r->level], check->name, r->text);
	if (r->cure[0])
		printf("%24s -> %s\n", "", r->cure);
}

int uroce_doctor(int argc, char **argv)
{
	struct report_args args = { 0 };
	static struct check_world world;
	enum check_level worst = CHECK_OK;
	char run_dir[PATH_MAX];
	json_t *list = json_array();

	if (argp_parse(&doctor_argp, argc, argv, 0, NULL, &args) ||
	    rundir_find(args.run_dir, run_dir))
		return UROCE_EXIT_USAGE;
	world.run_dir = world.view.run_dir = run_dir;
	for (unsigned i = 0; i < check_n; i++) {
		struct check_result r = { .level = CHECK_OK };

		check_table[i].look(&world, &r);
		if (r.level > worst)
			worst = r.level;
		if (!args.as_json)
			print(&check_table[i], &r);
		json_array_append_new(list, json_pack("{ssssssss}", "check", check_table[i].name,
						      "result", level_name[r.level], "text", r.text,
						      "cure", r.cure));
	}
	if (args.as_json) {
		json_dumpf(list, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(list);
	return worst == CHECK_FAIL ? UROCE_EXIT_FAIL : UROCE_EXIT_OK;
}
