/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The class tree of one device under dir; SYSFS_PATH shows it. */
void fake_tree(const char *dir);
void fake_tree_remove(const char *dir);
