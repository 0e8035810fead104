/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's class tree, as libibverbs would read it, and whether a process already sees it. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#define TREE_NAME_MAX 64
#define TREE_DEVS_MAX 256

struct tree_dev {
	char name[TREE_NAME_MAX];   /* uroce0 */
	char uverbs[TREE_NAME_MAX]; /* uverbs100 */
};

struct tree {
	unsigned n_devs;
	struct tree_dev devs[TREE_DEVS_MAX];
};

/*
 * Reads the devices below root ("/sys", or a daemon's run_dir/sys), sorted by uverbs name as
 * libibverbs lists them. 0, or a negative errno: no such tree.
 */
int tree_read(struct tree *t, const char *root);

const struct tree_dev *tree_find(const struct tree *t, const char *name);

/* Reads a small file to buf without its newline; false if that fails. */
bool tree_read_file(char *buf, unsigned size, const char *path);

/* "uroce0, uroce1" */
void tree_names(const struct tree *t, char *buf, unsigned size);
