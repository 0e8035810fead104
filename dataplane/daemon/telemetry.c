/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/telemetry.h"

#include <errno.h>
#include <rte_telemetry.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/device_list.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/metrics.h"

/* The handlers' threads are DPDK's: they look at the list of devices under its lock. */
static const struct daemon *the_daemon;

static int list_devices(const char *cmd, const char *params, struct rte_tel_data *out)
{
	(void)cmd;
	(void)params;
	rte_tel_data_start_array(out, RTE_TEL_STRING_VAL);
	device_list_lock();
	for (unsigned i = 0; i < the_daemon->n_devices; i++)
		rte_tel_data_add_array_string(out, the_daemon->device[i]->name);
	device_list_unlock();
	return 0;
}

static int list_counters(const char *cmd, const char *params, struct rte_tel_data *out)
{
	const struct device *dev;

	(void)cmd;
	device_list_lock();
	dev = params ? daemon_device(the_daemon, params) : NULL;
	if (dev)
		rte_tel_data_start_dict(out);
	for (unsigned i = 0; dev && i < engine_n_counters(); i++)
		rte_tel_data_add_dict_u64(out, engine_counter_name(i), metrics_engine(dev, i));
	device_list_unlock();
	return dev ? 0 : -ENODEV;
}

void telemetry_register(const struct daemon *d)
{
	the_daemon = d;
	if (rte_telemetry_register_cmd("/uroce/devices", list_devices, "Names of the devices.") ||
	    rte_telemetry_register_cmd("/uroce/counters", list_counters,
				       "Counters of a device. Parameter: its name."))
		log_warning("no telemetry of our own");
}
