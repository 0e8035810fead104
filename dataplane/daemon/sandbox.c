/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>

/* Refused with EPERM. */
static const int refused[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(ptrace),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(reboot),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(acct),
	SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime),
	SCMP_SYS(setns),
	SCMP_SYS(unshare),
	SCMP_SYS(open_by_handle_at),
};

static int add_rules(scmp_filter_ctx ctx)
{
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(refused) / sizeof(refused[0]); i++)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
	/* Threads, yes; processes, no. Of clone3 a filter cannot see the flags: libc takes clone.
	 */
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return err;
}

/* The leak check of a sanitizer makes a process at exit and traces us with it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

static bool is_entered;

bool sandbox_is_entered(void)
{
	return is_entered;
}

int sandbox_enter(void)
{
#ifdef IS_SANITIZED
	return -EOPNOTSUPP;
#endif
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!ctx)
		return -ENOMEM;
	err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!err)
		err = add_rules(ctx);
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	is_entered = !err;
	return err;
}
