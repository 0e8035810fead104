/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"

static metrics_link_fn *link_fn;

void metrics_set_link(metrics_link_fn *fn)
{
	link_fn = fn;
}

void metrics_port(const struct device *dev, struct metrics_port *out)
{
	memset(out, 0, sizeof(*out));
	if (link_fn)
		link_fn(dev, out);
}

uint64_t metrics_engine(const struct device *dev, unsigned i)
{
	uint64_t sum = 0;

	/* Each is written by its worker only; a value that is a moment old will do. */
	for (unsigned w = 0; w < dev->daemon->n_workers; w++)
		sum += __atomic_load_n(&engine_counters(dev->engine[w])[i], __ATOMIC_RELAXED);
	return sum;
}

/* Standard port counters (IBA 16.1.3.5 and Linux): data in words of 4 bytes. What cannot happen is
 * 0. */
enum source { ZERO, TX_WORDS, RX_WORDS, TX_PACKETS, RX_PACKETS, DROPS };
static const struct {
	const char *name;
	enum source source;
} port_file[] = {
	/* clang-format off */
	{ "port_xmit_data", TX_WORDS },            { "port_rcv_data", RX_WORDS },
	{ "port_xmit_packets", TX_PACKETS },       { "port_rcv_packets", RX_PACKETS },
	{ "unicast_xmit_packets", TX_PACKETS },    { "unicast_rcv_packets", RX_PACKETS },
	{ "multicast_xmit_packets", ZERO },        { "multicast_rcv_packets", ZERO },
	{ "port_xmit_discards", DROPS },           { "port_xmit_wait", ZERO },
	{ "port_rcv_errors", ZERO },               { "port_rcv_constraint_errors", ZERO },
	{ "port_xmit_constraint_errors", ZERO },   { "port_rcv_remote_physical_errors", ZERO },
	{ "port_rcv_switch_relay_errors", ZERO },  { "symbol_error", ZERO },
	{ "link_downed", ZERO },                   { "link_error_recovery", ZERO },
	{ "local_link_integrity_errors", ZERO },   { "excessive_buffer_overrun_errors", ZERO },
	{ "VL15_dropped", ZERO },
	/* clang-format on */
};
#define N_PORT_FILES ((unsigned)(sizeof(port_file) / sizeof(port_file[0])))

unsigned metrics_n_port_files(void)
{
	return N_PORT_FILES;
}

const char *metrics_port_file(unsigned i, const struct metrics_port *m, uint64_t *value)
{
	switch (port_file[i].source) {
	case ZERO:
		*value = 0;
		break;
	case TX_WORDS:
		*value = m->tx_bytes / 4;
		break;
	case RX_WORDS:
		*value = m->rx_bytes / 4;
		break;
	case TX_PACKETS:
		*value = m->tx_packets;
		break;
	case RX_PACKETS:
		*value = m->rx_packets;
		break;
	case DROPS:
		*value = m->drops;
		break;
	}
	return port_file[i].name;
}

/*
 * In place, not by rename: the tree may be the lower layer of an overlay, which would go on showing
 * a file that was renamed away. A value only grows, so one write of one line leaves nothing behind.
 */
static void write_value(const struct daemon *d, const struct device *dev, const char *folder,
			const char *name, uint64_t value)
{
	char path[256], text[24];
	int fd, n = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);

	snprintf(path, sizeof(path), RUNDIR_SYS "/class/infiniband/%s/ports/1/%s/%s", dev->name,
		 folder, name);
	fd = openat(d->dir.fd, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, text, (size_t)n) != n) {
		/* Out of memory: the old value stays. */
	}
	close(fd);
}

static uint64_t *last; /* what the files say: per device, port files, then engine counters */

static bool refresh_device(const struct daemon *d, const struct device *dev, uint64_t *old)
{
	unsigned n = engine_n_counters();
	struct metrics_port m;
	bool changed = false;

	metrics_port(dev, &m);
	for (unsigned i = 0; i < N_PORT_FILES + n; i++) {
		const char *name;
		uint64_t v;

		if (i < N_PORT_FILES) {
			name = metrics_port_file(i, &m, &v);
		} else {
			name = engine_counter_name(i - N_PORT_FILES);
			v = metrics_engine(dev, i - N_PORT_FILES);
		}
		if (v == old[i])
			continue;
		write_value(d, dev, i < N_PORT_FILES ? "counters" : "hw_counters", name, v);
		old[i] = v;
		changed = true;
	}
	return changed;
}

bool metrics_refresh(struct daemon *d)
{
	unsigned n = N_PORT_FILES + engine_n_counters();
	bool changed = false;

	if (!last)
		last = calloc(CONFIG_MAX_DEVICES * n, sizeof(*last));
	for (unsigned i = 0; last && i < d->n_devices; i++)
		changed |= refresh_device(d, d->device[i], last + d->device[i]->index * n);
	return changed;
}

void metrics_forget(const struct device *dev)
{
	unsigned n = N_PORT_FILES + engine_n_counters();

	if (last)
		memset(last + dev->index * n, 0, n * sizeof(*last));
}

void metrics_free(void)
{
	free(last);
	last = NULL;
}
