/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Follows the kernel's interfaces (rtnetlink): link up and down, addresses that come and go, for
 * the devices that stand on one. On the control thread.
 */
#pragma once

struct daemon;
struct links;
struct portwatch;

/* Control must exist. 0 or a negative errno, logged. */
int portwatch_open(struct portwatch **out, struct daemon *d, struct links *l);
void portwatch_close(struct portwatch *p);
