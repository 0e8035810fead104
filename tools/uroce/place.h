/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the parts of uroce lie: beside this command in a build tree, else where it is installed. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* PABIs of the libibverbs releases that the provider is built for, oldest first; 0 ends it. */
extern const unsigned place_pabis[];

/* The uroced that belongs to this command. False if there is none. */
bool place_find_daemon(char buf[PATH_MAX]);

/*
 * The value that RDMAV_DRIVERS needs an entry of, for a provider that libibverbs does not find by
 * itself: "/path/liburoce". False: nothing is needed, or no provider is there at all.
 */
bool place_find_driver(char buf[PATH_MAX]);

/* The provider file for this PABI. */
bool place_find_provider(unsigned pabi, char buf[PATH_MAX]);

/* The file that tells an installed libibverbs of the provider; true if it is there. */
bool place_find_driver_file(char buf[PATH_MAX]);

bool place_is_build_tree(void);
