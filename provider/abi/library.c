/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/abi/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef UROCE_PABI
#error "the build defines UROCE_PABI"
#endif

unsigned uroce_verbs_release_of(const char *file_name)
{
	const char *base = strrchr(file_name, '/');
	unsigned minor, release, patch;
	int end = 0;

	base = base ? base + 1 : file_name;
	if (sscanf(base, "libibverbs.so.1.%3u.%3u.%3u%n", &minor, &release, &patch, &end) != 3)
		return 0;
	return base[end] ? 0 : release;
}

static bool library_path(char path[PATH_MAX])
{
	Dl_info where;

	if (!dladdr((void *)(uintptr_t)verbs_set_ops, &where) || !where.dli_fname)
		return false;
	return realpath(where.dli_fname, path) != NULL;
}

bool uroce_verbs_library_find(struct verbs_library *lib)
{
	char path[PATH_MAX];

	memset(lib, 0, sizeof(*lib));
	if (!library_path(path)) {
		snprintf(lib->why, sizeof(lib->why),
			 "the libibverbs in use cannot be found as a file");
		return false;
	}
	lib->release = uroce_verbs_release_of(path);
	lib->layout = uroce_verbs_layout(lib->release);
	if (lib->layout && lib->layout->pabi == UROCE_PABI)
		return true;
	lib->layout = NULL;
	snprintf(lib->why, sizeof(lib->why),
		 "libibverbs %.150s is not a release this provider knows (rdma-core %u to %u)",
		 path, VERBS_RELEASE_MIN, VERBS_RELEASE_MAX);
	return false;
}
