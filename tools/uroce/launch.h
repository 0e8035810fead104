/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a daemon where none answers. */
#pragma once

/*
 * Makes sure that a daemon of this version answers in run_dir. Two callers at once start one. The
 * daemon leaves this process's session and is nobody's child. 0, or a negative errno after a
 * sentence.
 */
int launch_ensure(const char *run_dir);
