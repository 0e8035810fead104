/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/raw.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "tests/support/ck_main.h"

static struct net_path path_to(const struct fake_dev *d, bool inbound)
{
	struct net_path p = {
		.vlan = NET_NO_VLAN, .udp_sport = 0xc123, .is_ipv4 = 1, .hop_limit = 64
	};
	uint8_t peer_gid[16], peer_mac[6] = { 2, 0, 0, 0, 0, 9 };

	memcpy(peer_gid, d->gid, 16);
	peer_gid[15] = 200;
	memcpy(inbound ? p.sgid : p.dgid, peer_gid, 16);
	memcpy(inbound ? p.dgid : p.sgid, d->gid, 16);
	memcpy(inbound ? p.smac : p.dmac, peer_mac, 6);
	memcpy(inbound ? p.dmac : p.smac, d->mac, 6);
	return p;
}

static void connect(struct raw *r, const struct raw_conf *c)
{
	bool rc = r->qp->conf.type == UROCE_QPT_RC;
	struct net_path path = path_to(&r->dev, false);
	struct uroce_qp_attr a = {
		.qp_state = UROCE_QPS_INIT,
		.port_num = 1,
		.access = c->access ? c->access : 0xe,
		.path_mtu = c->mtu ? c->mtu : IBV_MTU_1024,
		.dest_qp_num = RAW_PEER_QPN,
		.rq_psn = c->rq_psn,
		.sq_psn = c->sq_psn,
		.max_dest_rd_atomic = c->dest_rd_atomic == 0xff ? 0
				      : c->dest_rd_atomic       ? c->dest_rd_atomic
								: 8,
		.max_rd_atomic = 8,
		.min_rnr_timer = c->min_rnr_timer ? c->min_rnr_timer : 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	ck_assert_int_eq(
		fake_qp_modify(r->qp, &a,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			       NULL),
		0);
	a.qp_state = UROCE_QPS_RTR;
	ck_assert_int_eq(
		fake_qp_modify(r->qp, &a,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN |
				       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0),
			       &path),
		0);
	a.qp_state = UROCE_QPS_RTS;
	ck_assert_int_eq(
		fake_qp_modify(r->qp, &a,
			       IBV_QP_STATE | IBV_QP_SQ_PSN |
				       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
							IBV_QP_MAX_QP_RD_ATOMIC
					   : 0),
			       NULL),
		0);
}

void raw_init(struct raw *r, const struct raw_conf *conf)
{
	static const struct raw_conf none;
	const struct raw_conf *c = conf ? conf : &none;
	struct fake_qp_conf qc = { .type = c->type, .sq_sig_all = c->sq_sig_all };
	struct engine_conf ec = { .check_icrc = true, .window = c->window };

	memset(r, 0, sizeof(*r));
	fake_dev_init(&r->dev, 1, &ec);
	r->now = r->dev.now = 1000;
	r->cq = qc.send_cq = qc.recv_cq = fake_cq_new(&r->dev, c->cq_depth ? c->cq_depth : 256);
	r->qp = fake_qp_new(&r->dev, &qc);
	ck_assert_ptr_nonnull(r->qp);
	r->mem = fake_reg(&r->dev, c->mem ? c->mem : 65536, 0xf);
	r->inbound = path_to(&r->dev, true);
	pktgen_init(&r->gen, &r->inbound);
	connect(r, c);
}

void raw_free(struct raw *r)
{
	ck_assert_msg(!r->dev.mem.violations, "%s", r->dev.mem.violation);
	ck_assert(fake_mem_guards_hold(&r->dev.mem));
	fake_dev_free(&r->dev);
}

void raw_clear(struct raw *r)
{
	r->n_answers = 0;
}

static void keep(struct raw *r, const struct frame *f)
{
	struct packet *pk = &r->answer[r->n_answers];
	uint32_t at = 0;

	ck_assert_uint_lt(r->n_answers, RAW_ANSWERS);
	ck_assert_int_eq(packet_parse(pk, f, true), PACKET_OK);
	ck_assert_uint_eq(pk->dest_qpn, RAW_PEER_QPN);
	for (uint32_t i = 0; i < pk->n_segs; i++)
		for (uint32_t k = 0; k < pk->seg[i].len && at < 64; k++)
			r->payload[r->n_answers][at++] = pk->seg[i].base[k];
	r->n_answers++;
}

void raw_pull(struct raw *r)
{
	static uint8_t mem[8][FRAME_HEADROOM + FRAME_PAYLOAD + 64] __attribute__((aligned(64)));
	struct frame f[8], *fp[8];
	unsigned n;

	fake_dev_doorbells(&r->dev, r->now);
	do {
		for (unsigned i = 0; i < 8; i++) {
			f[i] = (struct frame) { .buf = mem[i] + FRAME_HEADROOM,
						.room = FRAME_PAYLOAD };
			fp[i] = &f[i];
		}
		n = engine_tx(r->dev.engine, r->now, fp, 8);
		for (unsigned i = 0; i < n; i++)
			keep(r, &f[i]);
	} while (n);
}

void raw_frame(struct raw *r, const struct frame *f)
{
	r->dev.now = r->now;
	engine_rx(r->dev.engine, r->now, &f, 1);
	raw_pull(r);
}

void raw_send(struct raw *r, const struct packet *pk, const void *payload)
{
	struct packet full = *pk;

	full.dest_qpn = r->qp->qpn;
	full.pkey = 0xffff;
	raw_frame(r, pktgen_frame(&r->gen, &full, payload));
}

void raw_write(struct raw *r, uint8_t op, uint32_t psn, uint64_t off, uint32_t dma_len,
	       uint32_t len)
{
	struct packet pk = { .opcode = op,
			     .psn = psn & BTH_PSN_MASK,
			     .va = r->mem->iova + off,
			     .rkey = r->mem->key,
			     .dma_len = dma_len,
			     .payload_len = len,
			     .ack_req = true };

	raw_send(r, &pk, NULL);
}

void raw_read(struct raw *r, uint32_t psn, uint64_t off, uint32_t len)
{
	struct packet pk = { .opcode = BTH_READ_REQUEST,
			     .psn = psn & BTH_PSN_MASK,
			     .va = r->mem->iova + off,
			     .rkey = r->mem->key,
			     .dma_len = len,
			     .ack_req = true };

	raw_send(r, &pk, NULL);
}

void raw_op(struct raw *r, uint8_t op, uint32_t psn, uint32_t len)
{
	struct packet pk = { .opcode = op,
			     .psn = psn & BTH_PSN_MASK,
			     .payload_len = len,
			     .ack_req = true,
			     .imm = 0x11223344 };

	raw_send(r, &pk, NULL);
}

void raw_atomic(struct raw *r, uint8_t op, uint32_t psn, uint64_t off, uint64_t operand,
		uint64_t compare)
{
	struct packet pk = { .opcode = op,
			     .psn = psn & BTH_PSN_MASK,
			     .va = r->mem->iova + off,
			     .rkey = r->mem->key,
			     .swap_add = operand,
			     .compare = compare,
			     .ack_req = true };

	raw_send(r, &pk, NULL);
}

void raw_expect_ack(struct raw *r, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	ck_assert_uint_eq(r->n_answers, 1);
	ck_assert_uint_eq(r->answer[0].opcode, BTH_ACKNOWLEDGE);
	ck_assert_msg(r->answer[0].syndrome == syndrome &&
			      r->answer[0].psn == (psn & BTH_PSN_MASK) && r->answer[0].msn == msn,
		      "syndrome 0x%x psn %06x msn %u, expected 0x%x %06x %u", r->answer[0].syndrome,
		      r->answer[0].psn, r->answer[0].msn, syndrome, psn & BTH_PSN_MASK, msn);
	raw_clear(r);
}

void raw_expect_none(struct raw *r)
{
	ck_assert_uint_eq(r->n_answers, 0);
}

void raw_ack(struct raw *r, uint8_t syndrome, uint32_t psn)
{
	struct packet pk = { .opcode = BTH_ACKNOWLEDGE,
			     .psn = psn & BTH_PSN_MASK,
			     .syndrome = syndrome };

	raw_send(r, &pk, NULL);
}

void raw_read_resp(struct raw *r, uint8_t op, uint32_t psn, uint32_t len)
{
	struct packet pk = {
		.opcode = op, .psn = psn & BTH_PSN_MASK, .syndrome = 0x1f, .payload_len = len
	};

	raw_send(r, &pk, NULL);
}

void raw_post(struct raw *r, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags)
{
	struct fake_wr wr = { .wr_id = off,
			      .opcode = opcode,
			      .flags = flags | UROCE_WQE_SIGNALED,
			      .n_sge = 1,
			      .sge = { fake_sge(r->mem, off, len) },
			      .imm = 0x44332211,
			      .remote_addr = 0x10000,
			      .rkey = 0x77,
			      .compare_add = 3,
			      .swap = 4 };

	ck_assert(fake_post_send(r->qp, &wr));
}

void raw_expect_cqe(struct raw *r, uint64_t wr_id, uint8_t status)
{
	struct uroce_cqe c;

	ck_assert_int_eq(fake_poll(r->cq, &c, 1), 1);
	ck_assert_uint_eq(c.wr_id, wr_id);
	ck_assert_msg(c.status == status, "status %u, expected %u (verr %u)", c.status, status,
		      c.vendor_err);
}

void raw_expect_no_cqe(struct raw *r)
{
	struct uroce_cqe c;

	ck_assert_int_eq(fake_poll(r->cq, &c, 1), 0);
}
