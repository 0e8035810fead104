/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const unsigned place_pabis[] = { 34, 57, 59, 64, 65, 0 };

/*
 * Paths relative to the directory of this executable, so that an installation can be moved and a
 * DESTDIR be tried in place. In a build tree the executable lies in tools/uroce/, and a link to it
 * at the top.
 */
static const char *const daemon_at[] = {
	"uroced",
	"../../dataplane/daemon/uroced",
	"dataplane/daemon/uroced",
	UROCE_BIN_TO_SBIN "/uroced",
	UROCE_BIN_TO_LIBEXEC "/uroced",
};

static const char *const build_provider_at[] = { "../../provider", "provider" };

static bool exe_dir(char buf[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", buf, PATH_MAX - 1);
	char *slash;

	if (n <= 0)
		return false;
	buf[n] = '\0';
	slash = strrchr(buf, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

static bool join(char buf[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(buf, PATH_MAX, "%s/%s", dir, name);

	return n > 0 && n < PATH_MAX;
}

static bool find_in_path(char buf[PATH_MAX], const char *name)
{
	const char *path = getenv("PATH");
	char *copy, *rest, *dir;
	bool found = false;

	copy = rest = strdup(path ? path : "/usr/local/sbin:/usr/sbin:/usr/bin");
	while (copy && !found && (dir = strsep(&rest, ":")))
		found = dir[0] && join(buf, dir, name) && !access(buf, X_OK);
	free(copy);
	return found || (join(buf, "/usr/sbin", name) && !access(buf, X_OK));
}

bool place_find_daemon(char buf[PATH_MAX])
{
	char dir[PATH_MAX], joined[PATH_MAX];

	for (unsigned i = 0; i < sizeof(daemon_at) / sizeof(*daemon_at) && exe_dir(dir); i++)
		if (join(joined, dir, daemon_at[i]) && !access(joined, X_OK) &&
		    realpath(joined, buf))
			return true;
	return find_in_path(buf, "uroced");
}

static bool provider_in(const char *dir, unsigned pabi, char buf[PATH_MAX])
{
	int n = snprintf(buf, PATH_MAX, "%s/liburoce-rdmav%u.so", dir, pabi);

	return n > 0 && n < PATH_MAX && !access(buf, R_OK);
}

static bool any_provider_in(const char *dir)
{
	char so[PATH_MAX];

	for (unsigned i = 0; place_pabis[i]; i++)
		if (provider_in(dir, place_pabis[i], so))
			return true;
	return false;
}

static bool build_provider_dir(char buf[PATH_MAX])
{
	char dir[PATH_MAX], joined[PATH_MAX];

	if (!exe_dir(dir))
		return false;
	for (unsigned i = 0; i < sizeof(build_provider_at) / sizeof(*build_provider_at); i++)
		if (join(joined, dir, build_provider_at[i]) && realpath(joined, buf) &&
		    any_provider_in(buf))
			return true;
	return false;
}

static bool installed_provider_dir(char buf[PATH_MAX])
{
	char dir[PATH_MAX], joined[PATH_MAX];

	return exe_dir(dir) && join(joined, dir, UROCE_BIN_TO_PROVIDER) && realpath(joined, buf) &&
	       any_provider_in(buf);
}

bool place_is_build_tree(void)
{
	char dir[PATH_MAX];

	return build_provider_dir(dir);
}

bool place_find_driver_file(char buf[PATH_MAX])
{
	snprintf(buf, PATH_MAX, "/etc/libibverbs.d/uroce.driver");
	return !access(buf, R_OK);
}

bool place_find_driver(char buf[PATH_MAX])
{
	char dir[PATH_MAX], file[PATH_MAX];

	if (build_provider_dir(dir))
		return join(buf, dir, "liburoce");
	if (!installed_provider_dir(dir))
		return false;
	/* Where libibverbs looks by itself, nothing is to be added. */
	if (place_find_driver_file(file) && !strncmp(dir, "/usr/lib/", 9))
		return false;
	return join(buf, dir, "liburoce");
}

bool place_find_provider(unsigned pabi, char buf[PATH_MAX])
{
	char dir[PATH_MAX];

	return (build_provider_dir(dir) && provider_in(dir, pabi, buf)) ||
	       (installed_provider_dir(dir) && provider_in(dir, pabi, buf)) ||
	       provider_in(UROCE_PROVIDER_DIR, pabi, buf);
}
