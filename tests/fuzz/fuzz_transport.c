/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responder and completer fed frames: raw ones, or composed ones that get past the parser. One
 * engine with an RC, a UC and a UD QP, work posted on all of them. Nothing outside a region may be
 * touched, no completion may be impossible, and every frame that the engine sends must be well
 * formed.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "tests/fuzz/input.h"
#include "tests/support/pair.h"
#include "tests/support/pktgen.h"

#define REQUIRE(cond) ((cond) ? (void)0 : abort())
#define STEPS         64

struct world {
	struct pair p;
	struct fake_cq *cq;
	struct fake_qp *qp[3];
	struct fake_region *r;
	struct pktgen gen;
};

static void post_work(struct world *w, struct fake_qp *qp)
{
	static const uint8_t op[] = { UROCE_WR_SEND, UROCE_WR_READ, UROCE_WR_FETCH_ADD,
				      UROCE_WR_WRITE, UROCE_WR_READ };

	for (unsigned i = 0; i < 5; i++) {
		uint32_t len = op[i] == UROCE_WR_FETCH_ADD ? 8 : 700 * i;
		struct fake_wr wr = { .wr_id = i,
				      .opcode = op[i],
				      .flags = UROCE_WQE_SIGNALED,
				      .n_sge = 1,
				      .sge = { fake_sge(w->r, 64, len) },
				      .remote_addr = 0x1000,
				      .rkey = 0x100,
				      .remote_qpn = 5 };

		if (qp->conf.type != UROCE_QPT_RC)
			wr.opcode = UROCE_WR_SEND;
		fake_post_send(qp, &wr);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct uroce_sge sge[2] = { fake_sge(w->r, 4096 + 64 * i, 100 * i),
					    fake_sge(w->r, 8192, 500) };

		fake_post_recv(qp, i, sge, 2);
	}
}

static void setup(struct world *w)
{
	static const uint32_t type[3] = { UROCE_QPT_RC, UROCE_QPT_UC, UROCE_QPT_UD };
	struct pair_conf conf = { .no_icrc_check = true };
	struct pair_rc rc = { .mtu = IBV_MTU_256,
			      .psn = { 100, 200 },
			      .rd_atomic = 4,
			      .rnr_retry = 2,
			      .retry_cnt = 2 };
	struct net_path path;

	pair_init(&w->p, &conf);
	path = pair_path(&w->p, 1);
	pktgen_init(&w->gen, &path);
	w->cq = fake_cq_new(&w->p.dev[0], 64);
	w->r = fake_reg(&w->p.dev[0], 16384, 0xf);
	for (unsigned i = 0; i < 3; i++) {
		struct fake_qp_conf qc = { .type = type[i], .send_cq = w->cq, .recv_cq = w->cq };

		w->qp[i] = fake_qp_new(&w->p.dev[0], &qc);
		if (!w->qp[i])
			continue;
		if (type[i] == UROCE_QPT_UD)
			continue;
		REQUIRE(!pair_to_rtr(&w->p, w->qp[i], 7, &rc));
		REQUIRE(!pair_to_rts(&w->p, w->qp[i], &rc));
		post_work(w, w->qp[i]);
	}
}

static const struct frame *compose(struct world *w, struct input *in)
{
	struct fake_qp *qp = w->qp[input_u8(in) % 3];
	struct engine_qp_info info = { 0 };
	struct packet pk = { .pkey = 0xffff, .opcode = input_u8(in) };
	uint8_t how = input_u8(in);

	if (qp) {
		engine_qp_info(w->p.dev[0].engine, qp->qpn, &info);
		pk.dest_qpn = qp->qpn;
	}
	if (!opcode_get(pk.opcode)->name)
		pk.opcode &= 0x0f;
	pk.psn = ((how & 1 ? info.epsn : info.una_psn) + (uint32_t)(int8_t)input_u8(in)) &
		 BTH_PSN_MASK;
	pk.ack_req = how & 2;
	pk.solicited = how & 4;
	pk.va = w->r->iova + (how & 8 ? input_u32(in) : input_u8(in) * 8u);
	pk.rkey = how & 16 ? input_u32(in) : w->r->key;
	pk.dma_len = how & 32 ? input_u32(in) : input_u8(in) * 16u;
	pk.syndrome = input_u8(in);
	pk.msn = input_u8(in);
	pk.imm = input_u32(in);
	if (opcode_get(pk.opcode)->flags & OPC_PAYLOAD)
		pk.payload_len = how & 64 ? 256 : input_u8(in) * (1u + (how >> 7) * 5);
	return pktgen_frame(&w->gen, &pk, NULL);
}

static void check(struct world *w)
{
	struct uroce_cqe c;
	int n;

	while ((n = fake_poll(w->cq, &c, 1)) > 0)
		REQUIRE(c.status <= UROCE_WC_GENERAL_ERR && c.queue <= UROCE_CQE_SRQ);
	REQUIRE(n == 0);
	REQUIRE(w->p.dev[0].mem.violations == 0);
	REQUIRE(w->p.link.malformed == 0);
}

static void step(struct world *w, struct input *in)
{
	uint8_t what = input_u8(in);
	uint8_t raw[512];
	struct frame f = { .head = raw };
	const struct frame *fp = &f;

	if (what == 0) {
		f.head_len = (uint32_t)input_take(in, raw, input_u8(in) * 2u);
	} else if (what < 32) {
		pair_turn(&w->p);
		pair_advance(&w->p, w->p.clock.now + ((uint64_t)what << 20));
		return;
	} else if (what < 40) {
		fake_dereg(&w->p.dev[0], w->r);
		w->r = fake_reg(&w->p.dev[0], 16384, what & 1 ? 0xf : what & 0x4);
		return;
	} else {
		fp = compose(w, in);
	}
	engine_rx(w->p.dev[0].engine, w->p.clock.now, &fp, 1);
}

/* Everything ends: a storm of frames at one moment would not. */
static bool is_storm(void *ctx)
{
	struct world *w = ctx;

	if (w->p.turns < 100000)
		return false;
	link_sim_dump(&w->p.link, stderr);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct input in = { data, size };

	memset(&w, 0, sizeof(w));
	setup(&w);
	for (unsigned i = 0; i < STEPS && in.left; i++) {
		step(&w, &in);
		check(&w);
	}
	pair_run(&w.p, w.p.clock.now + 20000000, is_storm, &w);
	check(&w);
	REQUIRE(fake_mem_guards_hold(&w.p.dev[0].mem));
	pair_free(&w.p);
	return 0;
}
