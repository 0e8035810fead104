/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/dcqcn.h"

#include <string.h>

#define STEPS_MAX 4096u /* a QP that was quiet for so many starts at line rate again */
#define BURST_NS  20000u
#define BURST_MAX 32u

/* The divisions are here, at a change of the rate, not where packets leave. */
static void set_rate(struct dcqcn *d, uint32_t rc, uint32_t mtu)
{
	uint64_t burst;

	d->rc = rc < DCQCN_MIN_MBPS ? DCQCN_MIN_MBPS : rc;
	d->ns_per_kib = 8192000u / d->rc;
	burst = (uint64_t)d->rc * BURST_NS / 8000 / mtu;
	d->burst = burst < 1 ? 1 : burst > BURST_MAX ? BURST_MAX : (uint32_t)burst;
	if (d->rc >= DCQCN_LINE_MBPS)
		memset(d, 0, sizeof(*d));
}

/* Cut the rate (paper, equation 1), and begin to recover. */
void dcqcn_cnp(struct dcqcn *d, uint64_t now, uint32_t mtu)
{
	dcqcn_run(d, now, mtu);
	if (!d->is_limiting) {
		d->is_limiting = true;
		d->rc = DCQCN_LINE_MBPS;
		d->alpha = DCQCN_ONE;
		d->next_at = now;
	}
	d->rt = d->rc;
	d->alpha_at = now + DCQCN_K_NS;
	d->t_at = now + DCQCN_T_NS;
	d->b_left = DCQCN_B_BYTES;
	d->t_steps = d->b_steps = 0;
	set_rate(d, d->rc - (uint32_t)((uint64_t)d->rc * d->alpha / (2 * DCQCN_ONE)), mtu);
	d->alpha += (DCQCN_ONE - d->alpha) >> DCQCN_G_SHIFT;
}

/* Fast recovery, additive increase, hyper increase (paper, equations 3 and 4, and figure 7). */
static void increase(struct dcqcn *d, uint32_t mtu)
{
	uint32_t most = d->t_steps > d->b_steps ? d->t_steps : d->b_steps;
	uint32_t least = d->t_steps < d->b_steps ? d->t_steps : d->b_steps;

	if (least > DCQCN_F)
		d->rt += (least - DCQCN_F) * DCQCN_RHAI_MBPS;
	else if (most > DCQCN_F)
		d->rt += DCQCN_RAI_MBPS;
	if (d->rt > DCQCN_LINE_MBPS)
		d->rt = DCQCN_LINE_MBPS;
	/* Rounded up, or the line rate would never be reached. */
	set_rate(d, (d->rt + d->rc + 1) / 2, mtu);
}

void dcqcn_run(struct dcqcn *d, uint64_t now, uint32_t mtu)
{
	if (!d->is_limiting)
		return;
	if (now - d->t_at < UINT64_MAX / 2 && now - d->t_at > (uint64_t)STEPS_MAX * DCQCN_T_NS) {
		memset(d, 0, sizeof(*d));
		return;
	}
	for (; d->alpha_at <= now; d->alpha_at += DCQCN_K_NS)
		d->alpha -= d->alpha >> DCQCN_G_SHIFT;
	while (d->is_limiting && d->t_at <= now) {
		d->t_at += DCQCN_T_NS;
		d->t_steps++;
		increase(d, mtu);
	}
}

void dcqcn_sent(struct dcqcn *d, uint64_t now, uint32_t bytes, uint32_t mtu)
{
	uint64_t ns = ((uint64_t)bytes * d->ns_per_kib) >> 10;

	if (!d->is_limiting)
		return;
	d->next_at = (d->next_at < now ? now : d->next_at) + ns;
	if (bytes < d->b_left) {
		d->b_left -= bytes;
		return;
	}
	d->b_left = DCQCN_B_BYTES;
	d->b_steps++;
	increase(d, mtu);
}
