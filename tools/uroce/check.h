/* SPDX-License-Identifier: BSD-3-Clause */
/* One thing that can keep a device from showing up, and what was found about it. */
#pragma once

#include "tools/uroce/view.h"

enum check_level { CHECK_OK, CHECK_WARN, CHECK_FAIL };

/* What the checks share: filled as they go, in the order of check_table. */
struct check_world {
	const char *run_dir;
	struct view view;
	struct tree tree;
	bool has_daemon, has_tree, has_namespaces, has_seccomp;
};

struct check_result {
	enum check_level level;
	char text[1024]; /* what is so, and what it means */
	char cure[1024]; /* what to do; empty for CHECK_OK */
};

struct check {
	const char *name;
	void (*look)(struct check_world *w, struct check_result *r);
};

extern const struct check check_table[];
extern const unsigned check_n;

#define CHECK_FMT(a, b) __attribute__((format(printf, a, b)))

void check_ok(struct check_result *r, const char *fmt, ...) CHECK_FMT(2, 3);
void check_bad(struct check_result *r, enum check_level level, const char *fmt, ...)
	CHECK_FMT(3, 4);
void check_cure(struct check_result *r, const char *fmt, ...) CHECK_FMT(2, 3);

/* check_kernel.c: what the kernel and the container allow. */
void check_namespaces(struct check_world *w, struct check_result *r);
void check_nodes(struct check_world *w, struct check_result *r);
void check_netlink(struct check_world *w, struct check_result *r);
void check_seccomp(struct check_world *w, struct check_result *r);
void check_yama(struct check_world *w, struct check_result *r);

/* check_verbs.c: libibverbs and the provider. */
void check_provider(struct check_world *w, struct check_result *r);
void check_seen(struct check_world *w, struct check_result *r);
