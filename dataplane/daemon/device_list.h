/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices that a daemon has: daemon.device[0..n_devices). The control thread changes the list
 * and reads it freely; any other thread reads it, and what it finds there, between lock and unlock.
 */
#pragma once

struct daemon;
struct device;

void device_list_lock(void);
void device_list_unlock(void);

/* The lowest index that no device has, CONFIG_MAX_DEVICES: all are taken. */
unsigned device_list_free_index(const struct daemon *d);

/* The number of a node that no device has, as late as can be one that another had. */
unsigned device_list_take_node(struct daemon *d);

void device_list_add(struct daemon *d, struct device *dev);
/* Nobody finds it there any more once this returns. */
void device_list_del(struct daemon *d, struct device *dev);
