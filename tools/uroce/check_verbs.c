/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of libibverbs and the provider; the library is loaded only for them. */
#include "tools/uroce/check.h"

#include "tools/uroce/driver.h"
#include "tools/uroce/place.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The private ABI of the installed libibverbs, which names the provider file; 0: unknown. */
static unsigned find_pabi(void *lib)
{
	char symbol[64];

	for (unsigned i = 0; place_pabis[i]; i++) {
		snprintf(symbol, sizeof(symbol), "verbs_register_driver_%u", place_pabis[i]);
		if (dlsym(lib, symbol))
			return place_pabis[i];
	}
	return 0;
}

static void judge_provider(unsigned pabi, struct check_result *r)
{
	char so[PATH_MAX], file[PATH_MAX], driver[PATH_MAX];

	if (!place_find_provider(pabi, so)) {
		check_bad(r, CHECK_FAIL,
			  "liburoce-rdmav%u.so, which this libibverbs asks for, is "
			  "not there",
			  pabi);
		check_cure(r, "build or install uroce completely: meson install -C build");
	} else if (place_find_driver(driver)) {
		check_ok(r, "%s, named by `uroce run` in RDMAV_DRIVERS", so);
	} else if (!place_find_driver_file(file)) {
		check_bad(r, CHECK_FAIL, "%s is missing, so libibverbs does not load %s", file, so);
		check_cure(r, "install uroce completely: meson install -C build");
	} else {
		check_ok(r, "%s, named by %s", so, file);
	}
}

void check_provider(struct check_world *w, struct check_result *r)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	unsigned pabi;

	(void)w;
	if (!lib) {
		check_bad(r, CHECK_FAIL, "libibverbs.so.1 is not installed");
		check_cure(r, "apt-get install libibverbs1");
		return;
	}
	pabi = find_pabi(lib);
	dlclose(lib);
	if (pabi) {
		judge_provider(pabi, r);
		return;
	}
	check_bad(r, CHECK_FAIL,
		  "this libibverbs is older than v34 or newer than any this uroce "
		  "knows");
	check_cure(r, "install rdma-core 34 to 65, or a newer uroce");
}

/* In a child that has entered the view: writes the names that libibverbs lists to fd. */
static int list_devices(const struct view *v, int fd)
{
	struct view_error e;
	void **list;
	void *lib;
	void **(*get_list)(int *);
	const char *(*get_name)(void *);
	int n = 0;

	driver_name();
	if (!view_is_current(v) && view_enter(v, &e))
		return 1;
	lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return 1;
	get_list = (void **(*)(int *))dlsym(lib, "ibv_get_device_list");
	get_name = (const char *(*)(void *))dlsym(lib, "ibv_get_device_name");
	if (!get_list || !get_name)
		return 1;
	list = get_list(&n);
	for (int i = 0; list && i < n; i++)
		dprintf(fd, "%s%s", i ? " " : "", get_name(list[i]));
	return 0;
}

static void read_list(const struct view *v, char *names, unsigned size)
{
	int fds[2];
	unsigned have = 0;
	pid_t pid;
	ssize_t n;

	names[0] = '\0';
	if (pipe(fds))
		return;
	pid = fork();
	if (!pid)
		_exit(list_devices(v, fds[1]));
	close(fds[1]);
	while (pid > 0 && have + 1 < size && (n = read(fds[0], names + have, size - 1 - have)) > 0)
		have += (unsigned)n;
	names[have] = '\0';
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += n)
		if ((at == text || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

void check_seen(struct check_world *w, struct check_result *r)
{
	char names[1024];

	if (!w->has_tree || !w->has_namespaces) {
		check_ok(r, "not checked, since %s",
			 w->has_tree ? "namespaces are refused" : "there is no device");
		return;
	}
	read_list(&w->view, names, sizeof(names));
	for (unsigned i = 0; i < w->tree.n_devs; i++) {
		if (has_word(names, w->tree.devs[i].name))
			continue;
		check_bad(r, CHECK_FAIL, "libibverbs lists %s below `uroce run`, but not %s",
			  names[0] ? names : "nothing", w->tree.devs[i].name);
		check_cure(r, "see the lines above; if all are ok, run "
			      "`uroce run -- ibv_devices` for libibverbs' own words");
		return;
	}
	check_ok(r, "below `uroce run`, libibverbs lists %s", names);
}
