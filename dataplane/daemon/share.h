/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts that share objects. A program hands its command descriptor to another, which shows it
 * here and may then import PDs, regions and device memory by their handles. Who has the descriptor
 * has the right, as with a kernel's.
 */
#pragma once

struct daemon;
struct dm;
struct session;

/* Whose command descriptor is fd? -EINVAL: nobody's; -EOPNOTSUPP: there is no way to know. */
int share_find(const struct daemon *d, int fd, struct session **origin);

/* A session is going; those that imported from it keep what they have, and get no more. */
void share_forget(const struct session *s);

void dm_free(struct dm *dm);
