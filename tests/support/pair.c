/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/pair.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"

#define BURST_MAX 64u

void pair_init(struct pair *p, const struct pair_conf *conf)
{
	memset(p, 0, sizeof(*p));
	p->clock.now = 1000; /* not 0: nobody may take "never" for it */
	link_sim_init(&p->link, &conf->link);
	for (unsigned i = 0; i < 2; i++) {
		struct engine_conf ec = conf->engine;

		ec.check_icrc = !conf->no_icrc_check;
		ec.seed += i;
		fake_dev_init(&p->dev[i], i, &ec);
		p->dev[i].now = p->clock.now;
	}
}

void pair_free(struct pair *p)
{
	for (unsigned i = 0; i < 2; i++)
		fake_dev_free(&p->dev[i]);
	link_sim_free(&p->link);
}

struct net_path pair_path(const struct pair *p, unsigned i)
{
	struct net_path path = {
		.vlan = NET_NO_VLAN, .udp_sport = 0xc000 + i, .is_ipv4 = 1, .hop_limit = 64
	};

	memcpy(path.dmac, p->dev[!i].mac, 6);
	memcpy(path.smac, p->dev[i].mac, 6);
	memcpy(path.dgid, p->dev[!i].gid, 16);
	memcpy(path.sgid, p->dev[i].gid, 16);
	return path;
}

static unsigned side_of(const struct pair *p, const struct fake_qp *qp)
{
	return qp->dev == &p->dev[1];
}

static struct pair_rc with_defaults(const struct pair_rc *in)
{
	struct pair_rc rc = *in;

	rc.mtu = rc.mtu ? rc.mtu : IBV_MTU_1024;
	rc.access = rc.access ? rc.access
			      : UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ |
					UROCE_ACCESS_REMOTE_ATOMIC;
	rc.rd_atomic = rc.rd_atomic ? rc.rd_atomic : 8;
	rc.dest_rd_atomic = rc.dest_rd_atomic ? rc.dest_rd_atomic : rc.rd_atomic;
	rc.rd_atomic = rc.rd_atomic == 0xff ? 0 : rc.rd_atomic;
	rc.dest_rd_atomic = rc.dest_rd_atomic == 0xff ? 0 : rc.dest_rd_atomic;
	rc.timeout = rc.timeout == 0xff ? 0 : rc.timeout ? rc.timeout : 8;
	rc.retry_cnt = rc.retry_cnt == 0xff ? 0 : rc.retry_cnt ? rc.retry_cnt : 7;
	rc.rnr_retry = rc.rnr_retry == 0xff ? 0 : rc.rnr_retry ? rc.rnr_retry : 7;
	rc.min_rnr_timer = rc.min_rnr_timer == 0xff ? 0 : rc.min_rnr_timer ? rc.min_rnr_timer : 1;
	return rc;
}

/* The engine leaves aside what the one half of XRC has no use for. */
static bool is_reliable(const struct fake_qp *qp)
{
	return qp->conf.type != UROCE_QPT_UC && qp->conf.type != UROCE_QPT_UD;
}

static int to_init(struct fake_qp *qp, const struct pair_rc *rc)
{
	struct uroce_qp_attr a = { .qp_state = UROCE_QPS_INIT,
				   .port_num = 1,
				   .access = rc->access };
	uint32_t mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	return fake_qp_modify(qp, &a, mask, NULL);
}

int pair_to_rtr(struct pair *p, struct fake_qp *qp, uint32_t dest_qpn, const struct pair_rc *in)
{
	struct pair_rc rc = with_defaults(in);
	unsigned side = side_of(p, qp);
	struct net_path path = pair_path(p, side);
	struct uroce_qp_attr a = { .qp_state = UROCE_QPS_RTR,
				   .path_mtu = rc.mtu,
				   .dest_qp_num = dest_qpn,
				   .rq_psn = rc.psn[!side],
				   .max_dest_rd_atomic = rc.dest_rd_atomic,
				   .min_rnr_timer = rc.min_rnr_timer };
	uint32_t mask =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int err = 0;

	a.ah.is_global = 1;
	a.ah.port_num = 1;
	a.ah.sgid_index = 1;
	a.ah.hop_limit = 64;
	memcpy(a.ah.dgid, p->dev[!side].gid, 16);
	if (is_reliable(qp))
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (fake_qp_state(qp) == UROCE_QPS_RESET)
		err = to_init(qp, &rc);
	return err ? err : fake_qp_modify(qp, &a, mask, &path);
}

int pair_to_rts(struct pair *p, struct fake_qp *qp, const struct pair_rc *in)
{
	struct pair_rc rc = with_defaults(in);
	struct uroce_qp_attr a = { .qp_state = UROCE_QPS_RTS,
				   .sq_psn = rc.psn[side_of(p, qp)],
				   .max_rd_atomic = rc.rd_atomic,
				   .timeout = rc.timeout,
				   .retry_cnt = rc.retry_cnt,
				   .rnr_retry = rc.rnr_retry };
	uint32_t mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (is_reliable(qp))
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return fake_qp_modify(qp, &a, mask, NULL);
}

int pair_connect(struct pair *p, struct fake_qp *a, struct fake_qp *b, const struct pair_rc *rc)
{
	int err = pair_to_rtr(p, a, b->qpn, rc);

	err = err ? err : pair_to_rtr(p, b, a->qpn, rc);
	err = err ? err : pair_to_rts(p, a, rc);
	return err ? err : pair_to_rts(p, b, rc);
}

static unsigned turn_rx(struct pair *p, unsigned i)
{
	struct frame *f[BURST_MAX];
	unsigned n = link_sim_rx(&p->link, i, p->clock.now, f, BURST_MAX);

	if (n)
		engine_rx(p->dev[i].engine, p->clock.now, (const struct frame *const *)f, n);
	for (unsigned k = 0; k < n; k++)
		link_sim_put(&p->link, f[k]);
	return n;
}

static unsigned turn_tx(struct pair *p, unsigned i)
{
	struct frame *f[BURST_MAX];
	unsigned want = p->tx_burst ? p->tx_burst : 32, room, n;

	room = link_sim_room(&p->link, i, p->clock.now);
	want = want < room ? want : room;
	if (!want || !engine_tx_pending(p->dev[i].engine))
		return 0;
	for (unsigned k = 0; k < want; k++)
		f[k] = link_sim_alloc(&p->link);
	n = engine_tx(p->dev[i].engine, p->clock.now, f, want);
	link_sim_tx(&p->link, i, p->clock.now, f, n);
	for (unsigned k = n; k < want; k++)
		link_sim_put(&p->link, f[k]);
	return n;
}

bool pair_turn(struct pair *p)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct fake_dev *d = &p->dev[i];

		d->now = p->clock.now;
		moved += turn_rx(p, i);
		fake_dev_doorbells(d, p->clock.now);
		if (engine_deadline(d->engine) <= p->clock.now) {
			engine_expire(d->engine, p->clock.now);
			moved++;
		}
		moved += turn_tx(p, i);
		if (p->after_turn)
			p->after_turn(p->after_ctx);
	}
	p->turns++;
	return moved;
}

bool pair_advance(struct pair *p, uint64_t until)
{
	uint64_t t = link_sim_deadline(&p->link, p->clock.now);

	for (unsigned i = 0; i < 2; i++)
		t = vclock_sooner(t, engine_deadline(p->dev[i].engine));
	if (t > until || t == VCLOCK_NEVER) {
		if (until != VCLOCK_NEVER && until > p->clock.now)
			vclock_set(&p->clock, until);
		return false;
	}
	if (t > p->clock.now)
		vclock_set(&p->clock, t);
	return true;
}

bool pair_run(struct pair *p, uint64_t until, bool (*done)(void *ctx), void *ctx)
{
	for (;;) {
		bool moved = pair_turn(p);

		if (done && done(ctx))
			return true;
		if (!moved && !pair_advance(p, until))
			return false;
	}
}

struct wait {
	struct fake_cq *cq;
	struct uroce_cqe *out;
};

static bool wait_done(void *ctx)
{
	struct wait *w = ctx;
	int n = fake_poll(w->cq, w->out, 1);

	ck_assert_int_ge(n, 0);
	return n > 0;
}

bool pair_wait(struct pair *p, struct fake_cq *cq, struct uroce_cqe *out, uint64_t until)
{
	struct wait w = { cq, out };

	return wait_done(&w) || pair_run(p, until, wait_done, &w);
}
