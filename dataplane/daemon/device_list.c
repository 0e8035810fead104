/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/device_list.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void device_list_lock(void)
{
	pthread_mutex_lock(&lock);
}

void device_list_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool is_taken(const struct daemon *d, unsigned index)
{
	for (unsigned i = 0; i < d->n_devices; i++)
		if (d->device[i]->index == index)
			return true;
	return false;
}

unsigned device_list_free_index(const struct daemon *d)
{
	unsigned index = 0;

	while (index < CONFIG_MAX_DEVICES && is_taken(d, index))
		index++;
	return index;
}

static bool has_node(const struct daemon *d, unsigned number)
{
	for (unsigned i = 0; i < d->n_devices; i++)
		if (d->device[i]->uverbs == number)
			return true;
	return false;
}

unsigned device_list_take_node(struct daemon *d)
{
	unsigned number;

	static_assert(UROCE_N_NODES > CONFIG_MAX_DEVICES, "there is always one");
	do
		number = d->last_uverbs++ % UROCE_N_NODES;
	while (has_node(d, number));
	return number;
}

void device_list_add(struct daemon *d, struct device *dev)
{
	device_list_lock();
	d->device[d->n_devices++] = dev;
	device_list_unlock();
}

void device_list_del(struct daemon *d, struct device *dev)
{
	unsigned at = 0;

	device_list_lock();
	while (at < d->n_devices && d->device[at] != dev)
		at++;
	if (at < d->n_devices) {
		d->n_devices--;
		memmove(d->device + at, d->device + at + 1,
			(d->n_devices - at) * sizeof(d->device[0]));
	}
	device_list_unlock();
}
