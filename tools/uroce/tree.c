/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/uroce/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tree_read_file(char *buf, unsigned size, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

/* By length first, so that uverbs9 stands before uverbs10. */
static int by_uverbs(const void *a, const void *b)
{
	const struct tree_dev *x = a, *y = b;
	size_t nx = strlen(x->uverbs), ny = strlen(y->uverbs);

	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x->uverbs, y->uverbs);
}

int tree_read(struct tree *t, const char *root)
{
	char path[PATH_MAX];
	struct dirent *ent;
	DIR *dir;
	int n;

	t->n_devs = 0;
	n = snprintf(path, sizeof(path), "%s/class/infiniband_verbs", root);
	dir = n < PATH_MAX ? opendir(path) : NULL;
	if (!dir)
		return -ENOENT;
	while ((ent = readdir(dir)) && t->n_devs < TREE_DEVS_MAX) {
		struct tree_dev *dev = &t->devs[t->n_devs];

		if (strncmp(ent->d_name, "uverbs", 6) || strlen(ent->d_name) >= TREE_NAME_MAX)
			continue;
		n = snprintf(path, sizeof(path), "%s/class/infiniband_verbs/%s/ibdev", root,
			     ent->d_name);
		if (n >= PATH_MAX || !tree_read_file(dev->name, sizeof(dev->name), path))
			continue;
		strcpy(dev->uverbs, ent->d_name);
		t->n_devs++;
	}
	closedir(dir);
	qsort(t->devs, t->n_devs, sizeof(*t->devs), by_uverbs);
	return 0;
}

const struct tree_dev *tree_find(const struct tree *t, const char *name)
{
	for (unsigned i = 0; i < t->n_devs; i++)
		if (!strcmp(t->devs[i].name, name))
			return &t->devs[i];
	return NULL;
}

void tree_names(const struct tree *t, char *buf, unsigned size)
{
	unsigned at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < t->n_devs && at < size; i++)
		at += (unsigned)snprintf(buf + at, size - at, "%s%s", i ? ", " : "",
					 t->devs[i].name);
}
