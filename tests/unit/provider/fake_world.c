/* SPDX-License-Identifier: BSD-3-Clause */
/* What libibverbs wants to find in the file system, in namespaces of the test's own. */
#include "tests/unit/provider/fake_world.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/provider/fake_daemon.h"

/* A kernel whose ib_core answers this socket would hide the class tree from libibverbs. */
static int refuse_rdma_netlink(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_RDMA, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* A /dev that holds null and infiniband/uverbs100 -> null, seen by this process only. */
static int private_dev(void)
{
	char path[64];
	int null = open("/dev/null", O_PATH | O_CLOEXEC);
	int fd, err;

	if (null < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev", "tmpfs", 0, NULL))
		return -1;
	fd = open("/dev/null", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", null);
	err = mount(path, "/dev/null", NULL, MS_BIND, NULL) || mkdir("/dev/infiniband", 0755) ||
	      symlink("/dev/null", "/dev/infiniband/uverbs100");
	close(null);
	return err;
}

bool fake_world(void)
{
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	return !private_dev() && !refuse_rdma_netlink();
}

static void put_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0755);
		*p = '/';
	}
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

void fake_tree(const char *dir)
{
	static const char *const files[][2] = {
		{ "class/infiniband_verbs/abi_version", "6\n" },
		{ "class/infiniband_verbs/uverbs100/ibdev", "uroce0\n" },
		{ "class/infiniband_verbs/uverbs100/dev", "1:3\n" },
		{ "class/infiniband_verbs/uverbs100/abi_version", "1\n" },
		{ "class/infiniband/uroce0/node_type", "1: CA\n" },
		{ "class/infiniband/uroce0/node_guid", "0255:52ff:fe4f:0001\n" },
		{ "class/infiniband/uroce0/device/modalias", "uroce:v1\n" },
		{ "class/infiniband/uroce0/ports/1/gids/0",
		  "fe80:0000:0000:0000:0055:52ff:fe4f:0001\n" },
		{ "class/infiniband/uroce0/ports/1/gid_attrs/types/0", "RoCE v2\n" },
		{ "class/infiniband/uroce0/ports/1/pkeys/0", "0xffff\n" },
	};
	char path[256];

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		put_file(dir, files[i][0], files[i][1]);
	snprintf(path, sizeof(path), "%s/control.sock\n", dir);
	put_file(dir, "class/infiniband/uroce0/device/uroce_socket", path);
	setenv("SYSFS_PATH", dir, 1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void fake_tree_remove(const char *dir)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
