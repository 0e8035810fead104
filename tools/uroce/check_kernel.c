/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of what the kernel and the container allow. */
#include "tools/uroce/check.h"

#include "tools/uroce/netlink_rule.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs try in a child process, so that whatever it changes is gone. Its int is the result. */
static int in_child(int (*try)(void))
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(-try() & 0xff);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int try_mount_ns(void)
{
	return unshare(CLONE_NEWNS) ? -errno : 0;
}

static int try_user_ns(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) ? -errno : 0;
}

static void cure_user_ns(struct check_result *r, int err)
{
	char text[32];

	if (tree_read_file(text, sizeof(text), "/proc/sys/kernel/unprivileged_userns_clone") &&
	    atoi(text) == 0)
		check_cure(r, "sysctl kernel.unprivileged_userns_clone=1");
	else if (tree_read_file(text, sizeof(text),
				"/proc/sys/kernel/apparmor_restrict_unprivileged_userns") &&
		 atoi(text) == 1)
		check_cure(r, "sysctl kernel.apparmor_restrict_unprivileged_userns=0");
	else if (tree_read_file(text, sizeof(text), "/proc/sys/user/max_user_namespaces") &&
		 atoi(text) == 0)
		check_cure(r, "sysctl user.max_user_namespaces=10000");
	else if (err == -EPERM)
		check_cure(r, "in a container: give it CAP_SYS_ADMIN or a seccomp profile that "
			      "allows unshare, or mount a directory at /dev/infiniband with links "
			      "to /dev/null named as below; `uroce run` then uses SYSFS_PATH");
	else
		check_cure(r, "a kernel with CONFIG_USER_NS is needed, or root");
}

void check_namespaces(struct check_world *w, struct check_result *r)
{
	struct view_error e;
	char missing[512];
	int err = in_child(try_mount_ns);
	const char *kind = err ? "user and mount" : "mount";

	if (err)
		err = in_child(try_user_ns);
	if (!err && w->has_tree && !view_is_current(&w->view)) {
		err = view_try(&w->view, &e);
		if (err) {
			check_bad(r, CHECK_FAIL, "%s fails: %s", e.step, strerror(-err));
			cure_user_ns(r, err);
			return;
		}
	}
	if (!err) {
		w->has_namespaces = true;
		check_ok(r, "%s namespaces are allowed", kind);
		return;
	}
	if (w->has_tree && view_has_nodes(&w->tree, NULL, missing, sizeof(missing)))
		check_bad(r, CHECK_WARN,
			  "refused (%s); SYSFS_PATH and the nodes in /dev/infiniband are used, but "
			  "programs that read /sys by themselves (UCX, ibstat) see no device",
			  strerror(-err));
	else
		check_bad(r, CHECK_FAIL, "refused: %s", strerror(-err));
	cure_user_ns(r, err);
}

void check_nodes(struct check_world *w, struct check_result *r)
{
	char missing[512];
	struct stat st;

	if (stat("/dev/null", &st) || !S_ISCHR(st.st_mode)) {
		check_bad(r, CHECK_FAIL, "/dev/null is no character device");
		check_cure(r, "repair /dev: mknod -m 666 /dev/null c 1 3");
		return;
	}
	if (!w->has_tree)
		check_ok(r, "not checked, since there is no device");
	else if (view_has_nodes(&w->tree, NULL, missing, sizeof(missing)))
		check_ok(r, "/dev/infiniband has them");
	else if (w->has_namespaces)
		check_ok(r, "`uroce run` makes them in a private /dev/infiniband");
	else {
		check_bad(r, CHECK_FAIL, "missing: %s", missing);
		check_cure(r, "mkdir -p /dev/infiniband; ln -s /dev/null %s%s", missing,
			   strchr(missing, ',') ? " (one for each)" : "");
	}
}

/* The socket call itself would load ib_core, where modprobe knows of it. */
static bool would_load_ib_core(void)
{
	struct utsname u;
	char path[PATH_MAX], line[512];
	bool found = false;
	FILE *f;

	uname(&u);
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.alias", u.release);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "net-pf-16-proto-20 ") != NULL;
	if (f)
		fclose(f);
	return found;
}

/* The kernel's own devices, which netlink tells of; "": none. */
static void kernel_devices(const struct tree *ours, char *names, size_t size)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *ent;
	size_t at = 0;

	names[0] = '\0';
	while (dir && (ent = readdir(dir)))
		if (ent->d_name[0] != '.' && !tree_find(ours, ent->d_name) && at < size)
			at += (size_t)snprintf(names + at, size - at, "%s%s", at ? ", " : "",
					       ent->d_name);
	if (dir)
		closedir(dir);
}

void check_netlink(struct check_world *w, struct check_result *r)
{
	char names[200];
	const char *cure = "start programs with `uroce run`, which refuses RDMA netlink to them; "
			   "elsewhere: a seccomp profile that does, or `modprobe -r ib_core`";

	kernel_devices(&w->tree, names, sizeof(names));
	if (access("/sys/module/ib_core", F_OK) && would_load_ib_core()) {
		check_bad(
			r, CHECK_WARN,
			"this kernel loads ib_core as soon as a verbs program starts; its netlink "
			"then hides every device it does not own");
		check_cure(r, "%s", cure);
	} else if (netlink_is_refused()) {
		check_ok(r, "not answered here%s%s", *names ? "; beside ours there is " : "",
			 names);
	} else {
		check_bad(r, CHECK_WARN,
			  "ib_core is loaded and answers with %s; a program that is not "
			  "started by `uroce run` sees %s",
			  *names ? names : "no device", *names ? "nothing else" : "none of uroce");
		check_cure(r, "%s", cure);
	}
}

static int try_rule(void)
{
	int err = netlink_rule_install();

	return err ? err : netlink_is_refused() ? 0 : -EINVAL;
}

void check_seccomp(struct check_world *w, struct check_result *r)
{
	int err = in_child(try_rule);

	w->has_seccomp = !err;
	if (!err) {
		check_ok(r, "`uroce run` can refuse RDMA netlink to a program");
		return;
	}
	check_bad(r, access("/sys/module/ib_core", F_OK) ? CHECK_WARN : CHECK_FAIL,
		  "no filter can be installed (%s), so RDMA netlink cannot be refused",
		  strerror(-err));
	check_cure(r, "a kernel with CONFIG_SECCOMP_FILTER is needed; or keep ib_core from "
		      "loading: echo 'alias net-pf-16-proto-20 off' > "
		      "/etc/modprobe.d/uroce.conf");
}

void check_yama(struct check_world *w, struct check_result *r)
{
	char text[16];
	int scope;

	(void)w;
	if (!tree_read_file(text, sizeof(text), "/proc/sys/kernel/yama/ptrace_scope")) {
		check_ok(r, "not in this kernel");
		return;
	}
	scope = atoi(text);
	if (scope < 2) {
		check_ok(r, "scope %d; a program lets its daemon in by itself", scope);
		return;
	}
	if (scope == 2 && !geteuid()) {
		check_ok(r, "scope 2, which a daemon of root's may pass");
		return;
	}
	check_bad(r, CHECK_FAIL, "scope %d forbids the daemon to reach programs' memory", scope);
	check_cure(r, scope == 2 ? "sysctl kernel.yama.ptrace_scope=1, or a daemon with "
				   "CAP_SYS_PTRACE"
				 : "boot with kernel.yama.ptrace_scope below 3; it cannot be "
				   "lowered while the system runs");
}
