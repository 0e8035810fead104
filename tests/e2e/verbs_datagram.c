/* SPDX-License-Identifier: BSD-3-Clause */
/* UD: the GRH area, who may talk to whom, and multicast groups. */
#include "tests/e2e/verbs_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QKEY 0x1234567u
#define ROOM 4096u
#define N_RQ 16u
#define GRH  40u

/* A UD QP in RTS with a buffer for each receive; the last slot is for sending. */
struct dg {
	struct vport *port;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;
};

static uint8_t *slot(const struct dg *d, unsigned i)
{
	return d->mem + i * (GRH + ROOM);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN;
	MUST(!ibv_modify_qp(qp, &attr, mask), "to state %d: %s", state, strerror(errno));
}

static void receive(struct dg *d, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)slot(d, i), GRH + ROOM, d->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_recv(d->qp, &wr, &bad), "post_recv: %s", strerror(errno));
}

static struct dg *open_dg(struct dg *d, const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 16, N_RQ, 2, 2, 64 } };
	size_t size = (N_RQ + 1) * (size_t)(GRH + ROOM);

	d->port = vport_get(device);
	d->cq = ibv_create_cq(d->port->ctx, 64, NULL, NULL, 0);
	MUST(d->cq, "no CQ: %s", strerror(errno));
	init.send_cq = init.recv_cq = d->cq;
	d->qp = ibv_create_qp(d->port->pd, &init);
	MUST(d->qp, "no UD QP: %s", strerror(errno));
	d->mem = calloc(1, size);
	d->mr = vreg(d->port, d->mem, size, IBV_ACCESS_LOCAL_WRITE);
	to_state(d->qp, IBV_QPS_INIT);
	to_state(d->qp, IBV_QPS_RTR);
	to_state(d->qp, IBV_QPS_RTS);
	return d;
}

static void close_dg(struct dg *d)
{
	MUST(!ibv_destroy_qp(d->qp), "destroy_qp: %s", strerror(errno));
	MUST(!ibv_dereg_mr(d->mr), "dereg_mr: %s", strerror(errno));
	MUST(!ibv_destroy_cq(d->cq), "destroy_cq: %s", strerror(errno));
	free(d->mem);
}

static struct ibv_ah *ah_to(struct ibv_pd *pd, const union ibv_gid *gid, uint8_t sgid_index)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;

	attr.grh.dgid = *gid;
	attr.grh.sgid_index = sgid_index;
	attr.grh.hop_limit = 64;
	ah = ibv_create_ah(pd, &attr);
	MUST(ah, "no AH: %s", strerror(errno));
	return ah;
}

static void try_send(struct dg *d, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)slot(d, N_RQ), len, d->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 100,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = 0x01020304,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	pattern_fill(slot(d, N_RQ), len, qpn, 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	MUST(!ibv_post_send(d->qp, &wr, &bad), "post_send: %s", strerror(errno));
}

/* A send completes once it has left, whatever becomes of it. */
static void send_one(struct dg *d, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, uint32_t len)
{
	try_send(d, ah, qpn, qkey, len);
	vcq_expect(d->cq, IBV_WC_SUCCESS);
}

static void must_be_silent(struct dg *d, const char *why)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(d->cq, 1, &wc);

	MUST(n == 0, "%s: a completion came (%d)", why, n);
}

static void arrives(unsigned gid_index)
{
	struct dg a, b;
	union ibv_gid gid;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	bool is_v4 = gid_index == 1;

	open_dg(&a, "uroce0");
	open_dg(&b, "uroce1");
	MUST(!ibv_query_gid(b.port->ctx, 1, (int)gid_index, &gid), "no GID: %s", strerror(errno));
	ah = ah_to(a.port->pd, &gid, (uint8_t)gid_index);
	receive(&b, 0);
	send_one(&a, ah, b.qp->qp_num, QKEY, ROOM);
	wc = vcq_expect(b.cq, IBV_WC_SUCCESS);
	MUST(wc.byte_len == GRH + ROOM, "byte_len %u", wc.byte_len);
	MUST(wc.src_qp == a.qp->qp_num, "src_qp %x, not %x", wc.src_qp, a.qp->qp_num);
	MUST(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM), "wc_flags %x", wc.wc_flags);
	MUST(wc.imm_data == 0x01020304 && wc.opcode == IBV_WC_RECV, "immediate or opcode");
	MUST(wc.sl == (is_v4 ? 0xa : 0x9) && wc.pkey_index == 0, "sl %x", wc.sl);
	MUST(pattern_differs(slot(&b, 0) + GRH, ROOM, b.qp->qp_num, 0) == ROOM, "other data");
	if (is_v4)
		MUST(slot(&b, 0)[20] == 0x45 && !memcmp(slot(&b, 0) + 36, gid.raw + 12, 4),
		     "no IPv4 header in the last 20 bytes of the GRH area");
	else
		MUST(slot(&b, 0)[0] >> 4 == 6 && !memcmp(slot(&b, 0) + 24, gid.raw, 16),
		     "no IPv6 header in the GRH area");
	ibv_destroy_ah(ah);
	close_dg(&a);
	close_dg(&b);
}

static void arrives_v4(void)
{
	arrives(1);
}

static void arrives_v6(void)
{
	arrives(0);
}

static void answers(void)
{
	struct dg a, b;
	struct ibv_ah *ah, *back;
	struct ibv_wc wc;

	open_dg(&a, "uroce0");
	open_dg(&b, "uroce1");
	ah = ah_to(a.port->pd, &b.port->gid, 1);
	receive(&a, 0);
	receive(&b, 0);
	send_one(&a, ah, b.qp->qp_num, QKEY, 100);
	wc = vcq_expect(b.cq, IBV_WC_SUCCESS);
	back = ibv_create_ah_from_wc(b.port->pd, &wc, (struct ibv_grh *)slot(&b, 0), 1);
	MUST(back, "create_ah_from_wc: %s", strerror(errno));
	send_one(&b, back, wc.src_qp, QKEY, 50);
	wc = vcq_expect(a.cq, IBV_WC_SUCCESS);
	MUST(wc.byte_len == GRH + 50 && wc.src_qp == b.qp->qp_num, "not the answer");
	ibv_destroy_ah(ah);
	ibv_destroy_ah(back);
	close_dg(&a);
	close_dg(&b);
}

/* What comes with another Q_Key or finds no receive is dropped; the next is not. */
static void drops(void)
{
	struct dg a, b;
	struct ibv_ah *ah;

	open_dg(&a, "uroce0");
	open_dg(&b, "uroce1");
	ah = ah_to(a.port->pd, &b.port->gid, 1);
	send_one(&a, ah, b.qp->qp_num, QKEY, 1);
	/* The packet is still on its way; what follows on the same way tells that it is through. */
	receive(&b, 0);
	send_one(&a, ah, b.qp->qp_num, QKEY + 1, 2);
	send_one(&a, ah, b.qp->qp_num, QKEY, 3);
	for (;;) {
		struct ibv_wc wc = vcq_expect(b.cq, IBV_WC_SUCCESS);

		MUST(wc.byte_len != GRH + 2, "a datagram with another Q_Key arrived");
		if (wc.byte_len == GRH + 3)
			break;
		receive(&b, 0); /* the first came late enough to find the receive */
		send_one(&a, ah, b.qp->qp_num, QKEY, 3);
	}
	must_be_silent(&b, "dropped datagrams");
	ibv_destroy_ah(ah);
	close_dg(&a);
	close_dg(&b);
}

static void short_receive(void)
{
	struct dg a, b;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_ah *ah;

	open_dg(&a, "uroce0");
	open_dg(&b, "uroce1");
	ah = ah_to(a.port->pd, &b.port->gid, 1);
	sge = (struct ibv_sge) { (uintptr_t)b.mem, GRH + 9, b.mr->lkey };
	MUST(!ibv_post_recv(b.qp, &wr, &bad), "post_recv: %s", strerror(errno));
	send_one(&a, ah, b.qp->qp_num, QKEY, 10);
	vcq_expect(b.cq, IBV_WC_LOC_LEN_ERR);
	ibv_destroy_ah(ah);
	close_dg(&a);
	close_dg(&b);
}

static void too_long(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct dg a, b;
	struct ibv_ah *ah;

	open_dg(&a, "uroce0");
	open_dg(&b, "uroce1");
	ah = ah_to(a.port->pd, &b.port->gid, 1);
	receive(&b, 0);
	try_send(&a, ah, b.qp->qp_num, QKEY, ROOM + 1);
	vcq_expect(a.cq, IBV_WC_LOC_LEN_ERR);
	MUST(!ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init), "query_qp: %s", strerror(errno));
	MUST(attr.qp_state == IBV_QPS_SQE, "state %d, not SQE", attr.qp_state);
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS };
	MUST(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), "SQE to RTS: %s", strerror(errno));
	send_one(&a, ah, b.qp->qp_num, QKEY, ROOM);
	vcq_expect(b.cq, IBV_WC_SUCCESS);
	ibv_destroy_ah(ah);
	close_dg(&a);
	close_dg(&b);
}

static void foreign_ah(void)
{
	struct dg a;
	struct ibv_pd *other;
	struct ibv_ah *ah;

	open_dg(&a, "uroce0");
	other = ibv_alloc_pd(a.port->ctx);
	MUST(other, "no PD: %s", strerror(errno));
	ah = ah_to(other, &a.port->gid, 1);
	MUST(ibv_dealloc_pd(other) == EBUSY, "a PD with an AH was freed");
	receive(&a, 0);
	try_send(&a, ah, a.qp->qp_num, QKEY, 8);
	vcq_expect(a.cq, IBV_WC_LOC_QP_OP_ERR);
	must_be_silent(&a, "through another PD's AH");
	MUST(!ibv_destroy_ah(ah) && !ibv_dealloc_pd(other), "clean up: %s", strerror(errno));
	close_dg(&a);
}

static void bad_ahs(void)
{
	struct vport *p = vport_get("uroce0");
	struct ibv_ah_attr good = { .is_global = 1, .port_num = 1 }, attr;

	good.grh.dgid = p->gid;
	good.grh.sgid_index = 1;
	attr = good;
	attr.is_global = 0;
	MUST(!ibv_create_ah(p->pd, &attr), "an AH without a GRH");
	attr = good;
	attr.port_num = 2;
	MUST(!ibv_create_ah(p->pd, &attr), "an AH of port 2");
	attr = good;
	attr.grh.sgid_index = 9;
	MUST(!ibv_create_ah(p->pd, &attr), "an AH from an empty GID");
	attr = good;
	attr.grh.dgid.raw[15] = 200;
	MUST(!ibv_create_ah(p->pd, &attr), "an AH to a GID nobody has");
	attr = good;
	attr.grh.sgid_index = 0;
	MUST(!ibv_create_ah(p->pd, &attr), "an AH from IPv6 to IPv4");
}

static const union ibv_gid group4 = { .raw = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 239, 1, 2,
					       3 } };
static const union ibv_gid group6 = { .raw = { 0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,
					       7 } };

static void attach(struct dg *d, const union ibv_gid *group)
{
	int err = ibv_attach_mcast(d->qp, group, 0);

	MUST(!err, "attach_mcast: %s", strerror(err));
}

static void detach(struct dg *d, const union ibv_gid *group)
{
	int err = ibv_detach_mcast(d->qp, group, 0);

	MUST(!err, "detach_mcast: %s", strerror(err));
}

/*
 * What a member sends comes to itself as well. The datagram before may have been on its way to its
 * worker when it became a member.
 */
static void expect_own(struct dg *d, uint32_t len)
{
	bool was_sent = false, came = false;

	while (!was_sent || !came) {
		struct ibv_wc wc = vcq_expect(d->cq, IBV_WC_SUCCESS);

		if (wc.opcode == IBV_WC_SEND)
			was_sent = true;
		else if (wc.byte_len == GRH + len)
			came = true;
		else
			MUST(wc.byte_len == GRH + len - 1, "the sender as a member");
	}
}

/* Three members on two devices, one of them the sender's; and one that is not. */
static void multicast(const union ibv_gid *group, uint8_t sgid_index)
{
	struct dg a, b, c, outside;
	struct ibv_ah *ah;

	open_dg(&a, "uroce0");
	open_dg(&b, "uroce0");
	open_dg(&c, "uroce1");
	open_dg(&outside, "uroce1");
	ah = ah_to(a.port->pd, group, sgid_index);
	attach(&b, group);
	attach(&b, group); /* once */
	attach(&c, group);
	for (unsigned i = 0; i < 2; i++) {
		receive(&a, i);
		receive(&b, i);
		receive(&c, i);
		receive(&outside, i);
	}
	send_one(&a, ah, 0xffffff, QKEY, 300);
	MUST(vcq_expect(b.cq, IBV_WC_SUCCESS).byte_len == GRH + 300, "the own device's member");
	MUST(vcq_expect(c.cq, IBV_WC_SUCCESS).src_qp == a.qp->qp_num, "the other device's member");
	detach(&b, group);
	send_one(&a, ah, 0xffffff, QKEY, 301);
	MUST(vcq_expect(c.cq, IBV_WC_SUCCESS).byte_len == GRH + 301, "the member that stays");
	attach(&a, group);
	receive(&c, 0);
	try_send(&a, ah, 0xffffff, QKEY, 302);
	expect_own(&a, 302);
	MUST(vcq_expect(c.cq, IBV_WC_SUCCESS).byte_len == GRH + 302, "the member that stays");
	must_be_silent(&b, "detached");
	must_be_silent(&outside, "never attached");
	detach(&a, group);
	MUST(ibv_destroy_qp(c.qp) == EBUSY, "an attached QP was destroyed");
	detach(&c, group);
	MUST(ibv_detach_mcast(c.qp, group, 0) == EINVAL, "detached twice");
	ibv_destroy_ah(ah);
	close_dg(&a);
	close_dg(&b);
	close_dg(&c);
	close_dg(&outside);
}

static void multicast_v4(void)
{
	multicast(&group4, 1);
}

static void multicast_v6(void)
{
	multicast(&group6, 0);
}

static void bad_groups(void)
{
	struct ibv_device_attr attr;
	struct vqp rc;
	struct dg d;

	open_dg(&d, "uroce0");
	vqp_make(&rc, d.port, &vqp_usual, NULL, NULL);
	MUST(ibv_attach_mcast(d.qp, &d.port->gid, 0) == EINVAL, "a unicast GID as a group");
	MUST(ibv_attach_mcast(rc.qp, &group6, 0) == EINVAL, "an RC QP in a group");
	MUST(ibv_detach_mcast(d.qp, &group6, 0) == EINVAL, "detached what was not attached");
	MUST(!ibv_query_device(d.port->ctx, &attr), "query_device: %s", strerror(errno));
	MUST(attr.max_mcast_grp > 0 && attr.max_mcast_qp_attach > 0, "no groups are offered");
	vqp_close(&rc);
	close_dg(&d);
}

static union ibv_gid numbered_group(unsigned i)
{
	union ibv_gid g = group6;

	g.raw[14] = (uint8_t)(i >> 8);
	g.raw[15] = (uint8_t)i;
	return g;
}

/* One program must not take what others need. */
static void as_many_groups_as_announced(void)
{
	struct ibv_device_attr attr;
	union ibv_gid g;
	unsigned n;
	struct dg d;
	int err;

	open_dg(&d, "uroce0");
	MUST(!ibv_query_device(d.port->ctx, &attr), "query_device: %s", strerror(errno));
	n = (unsigned)attr.max_mcast_grp;
	for (unsigned i = 0; i < n; i++) {
		g = numbered_group(i);
		attach(&d, &g);
	}
	g = numbered_group(n);
	err = ibv_attach_mcast(d.qp, &g, 0);
	MUST(err == ENOMEM, "one group more than the %u announced: %s", n, strerror(err));
	g = numbered_group(0);
	detach(&d, &g);
	g = numbered_group(n);
	attach(&d, &g);
	for (unsigned i = 1; i <= n; i++) {
		g = numbered_group(i);
		detach(&d, &g);
	}
	close_dg(&d);
}

static const struct tap_case cases[] = {
	{ "a datagram over IPv4: GRH area, source QP, immediate, packet type", arrives_v4, 0 },
	{ "a datagram over IPv6: GRH area, source QP, immediate, packet type", arrives_v6, 0 },
	{ "ibv_create_ah_from_wc leads back to the sender", answers, 0 },
	{ "another Q_Key, or no receive: dropped", drops, 0 },
	{ "a receive without room for GRH and data: LOC_LEN_ERR", short_receive, 0 },
	{ "a message longer than the MTU: LOC_LEN_ERR, SQE, and on after SQE to RTS", too_long, 0 },
	{ "another PD's address handle: LOC_QP_OP_ERR", foreign_ah, 0 },
	{ "address vectors that lead nowhere are refused", bad_ahs, 0 },
	{ "an IPv4 group: members of both devices, once each, until they detach", multicast_v4, 0 },
	{ "an IPv6 group: members of both devices, once each, until they detach", multicast_v6, 0 },
	{ "what cannot be a group, or in one, is refused", bad_groups, 0 },
	{ "no more groups than the device announces", as_many_groups_as_announced, 0 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
