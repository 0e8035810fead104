/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * One command line: "add KEY=VALUE,...", "del NAME" or "set NAME up|down". *json: malloc'ed reply;
 * an "error" in it says what was wrong. ctx: struct links. 0 or a negative errno.
 */
int plug_command(void *ctx, const char *line, char **json);
