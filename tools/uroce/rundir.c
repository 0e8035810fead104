/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/rundir.h"

#include "tools/uroce/say.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_own_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static void default_dir(char buf[PATH_MAX])
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");

	if (!geteuid())
		snprintf(buf, PATH_MAX, "/run/uroce");
	else if (xdg && xdg[0] == '/' && is_own_dir(xdg))
		snprintf(buf, PATH_MAX, "%s/uroce", xdg);
	else
		snprintf(buf, PATH_MAX, "/tmp/uroce-%u", geteuid());
}

int rundir_find(const char *given, char buf[PATH_MAX])
{
	const char *want = given ? given : getenv("UROCE_RUN_DIR");
	char cwd[PATH_MAX];
	int n = 0;

	if (!want || !want[0]) {
		default_dir(buf);
		return 0;
	}
	if (want[0] == '/')
		n = snprintf(buf, PATH_MAX, "%s", want);
	else if (getcwd(cwd, sizeof(cwd)))
		n = snprintf(buf, PATH_MAX, "%s/%s", cwd, want);
	if (n <= 0 || n >= PATH_MAX) {
		say_error("the run directory %s has no usable absolute path.", want);
		return -ENAMETOOLONG;
	}
	while (n > 1 && buf[n - 1] == '/')
		buf[--n] = '\0';
	return 0;
}

int rundir_make(const char *run_dir)
{
	/* Root's daemon may serve other users; everyone else's is private. */
	mode_t mode = !geteuid() && !strcmp(run_dir, "/run/uroce") ? 0755 : 0700;
	struct stat st;
	int err;

	if (mkdir(run_dir, mode) && errno != EEXIST) {
		err = errno;
		say_error("the run directory %s cannot be made: %s. Name another one with "
			  "--run-dir or UROCE_RUN_DIR.",
			  run_dir, strerror(err));
		return -err;
	}
	if (lstat(run_dir, &st) || !S_ISDIR(st.st_mode)) {
		say_error("%s is not a directory, so no daemon can run there. Remove it, or name "
			  "another one with --run-dir.",
			  run_dir);
		return -ENOTDIR;
	}
	if (st.st_uid != geteuid() && geteuid()) {
		say_error("the run directory %s belongs to user %u, not to you, so no daemon of "
			  "yours can run there. Name another one with --run-dir.",
			  run_dir, st.st_uid);
		return -EACCES;
	}
	return 0;
}
