/* SPDX-License-Identifier: BSD-3-Clause */
/* A device of the switch and the real link behind it. */
#include <errno.h>
#include <string.h>

#include "fabric/link/switch_port.h"
#include "fabric/wire/icrc.h"

struct frame_pool *link_switch_pool(const struct link_switch *sw)
{
	return sw->pool;
}

void link_switch_set_uplink(struct link_port *const *ports, struct link_port *const *uplink,
			    bool loops_groups)
{
	const struct link_switch *sw = to_switch_port(ports[0])->sw;

	for (unsigned w = 0; w < sw->n_workers; w++) {
		struct switch_port *sp = to_switch_port(ports[w]);

		sp->uplink = uplink[w];
		sp->uplink_loops_groups = loops_groups;
	}
}

int link_switch_set_mtu(struct link_switch *sw, const uint8_t mac[6], uint16_t mtu)
{
	unsigned i = switch_find(sw, mac);

	if (i == sw->max_devices)
		return -ENOENT;
	atomic_store_explicit(&sw->dev[i].key, switch_mac_key(mac) | mtu, memory_order_release);
	return 0;
}

void switch_uplink_tx(struct switch_port *sp, uint64_t now, struct frame *const *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		icrc_seal(f[i]);
	sp->uplink->ops->tx(sp->uplink, now, f, n);
}

/* A driver that sees all of an interface also sees what other devices of this daemon send there. */
static bool is_reflected(const struct switch_port *sp, const struct frame *f)
{
	return switch_is_group(f->head) && switch_find(sp->sw, f->head + 6) != sp->sw->max_devices;
}

unsigned switch_uplink_rx(struct switch_port *sp, uint64_t now, struct frame **f, unsigned n)
{
	unsigned got = sp->uplink->ops->rx(sp->uplink, now, f, n), kept = 0;

	for (unsigned i = 0; i < got; i++) {
		if (is_reflected(sp, f[i]))
			switch_drop(sp, f[i], LINK_DROP_REFLECTED);
		else
			f[kept++] = f[i];
	}
	return kept;
}

void switch_uplink_count(const struct switch_port *sp, struct link_counters *out)
{
	struct link_counters more;

	sp->uplink->ops->counters(sp->uplink, &more);
	out->tx_packets += more.tx_packets;
	out->tx_bytes += more.tx_bytes;
	out->rx_packets += more.rx_packets;
	out->rx_bytes += more.rx_bytes;
	for (unsigned i = 0; i < LINK_N_DROPS; i++)
		out->drop[i] += more.drop[i];
}
