/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile shared memory: the queues and indices that a process may write to are filled from the
 * fuzzer's bytes, also while work is in flight. The engine may fail that QP and no other, touches
 * no byte outside a region, and what it sends is well formed.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "dataplane/abi/ring.h"
#include "tests/fuzz/input.h"
#include "tests/support/pair.h"

#define REQUIRE(cond) ((cond) ? (void)0 : abort())
#define STEPS         48

struct world {
	struct pair p;
	struct fake_cq *cq[2];
	struct fake_qp *a, *b;
	struct fake_region *r[2];
};

static void setup(struct world *w, uint32_t type)
{
	static const struct pair_conf conf;
	struct pair_rc rc = { .mtu = IBV_MTU_256,
			      .psn = { 0xfffff0, 200 },
			      .rd_atomic = 4,
			      .timeout = 4,
			      .rnr_retry = 2,
			      .retry_cnt = 2 };

	pair_init(&w->p, &conf);
	for (unsigned i = 0; i < 2; i++) {
		struct fake_qp_conf qc = {
			.type = type, .sq_depth = 8, .rq_depth = 8, .max_inline = 64
		};

		w->cq[i] = fake_cq_new(&w->p.dev[i], 32);
		w->r[i] = fake_reg(&w->p.dev[i], 8192, 0xf);
		qc.send_cq = qc.recv_cq = w->cq[i];
		*(i ? &w->b : &w->a) = fake_qp_new(&w->p.dev[i], &qc);
	}
	REQUIRE(w->a && w->b && !pair_connect(&w->p, w->a, w->b, &rc));
	for (unsigned i = 0; i < 4; i++) {
		struct uroce_sge sge = fake_sge(w->r[1], 1024 * i, 700);

		fake_post_recv(w->b, i, &sge, 1);
	}
}

/* A WQE that is right but for what the input spoils. */
static void good_wqe(struct world *w, struct input *in)
{
	uint8_t flags = input_u8(in);
	struct fake_wr wr = { .wr_id = 1,
			      .opcode = input_u8(in) % 20,
			      .flags = flags & 0x0f,
			      .n_sge = flags >> 6,
			      .remote_addr = w->r[1]->iova + input_u8(in) * 8u,
			      .rkey = w->r[1]->key,
			      .inline_data = in->at,
			      .remote_qpn = w->b->qpn };

	wr.inline_len = flags & UROCE_WQE_INLINE ? input_u8(in) : 0;
	if (wr.inline_len > in->left)
		wr.inline_data = NULL;
	for (unsigned i = 0; i < wr.n_sge; i++)
		wr.sge[i] = fake_sge(w->r[0], input_u8(in) * 16u,
				     input_u8(in) * (flags & 32 ? 32u : 1u));
	fake_post_send(w->a, &wr);
}

static void step(struct world *w, struct input *in)
{
	struct uroce_cqe c;
	uint32_t at;

	switch (input_u8(in) % 10) {
	case 0:
	case 1:
	case 2:
		good_wqe(w, in);
		break;
	case 3: /* scribble over the SQ */
		at = (uint32_t)(input_u8(in) * 8u);
		input_take(in, w->a->sq + at % (8 * w->a->sq_stride - 64), input_u8(in) % 64);
		break;
	case 4: /* scribble over the RQ */
		at = (uint32_t)(input_u8(in) * 4u);
		input_take(in, w->b->rq + at % (8 * w->b->rq_stride - 32), input_u8(in) % 32);
		break;
	case 5: /* an index of one's own choice */
		at = input_u8(in);
		uroce_ring_publish(at & 1 ? &w->a->page->sq : &w->b->page->rq,
				   at & 2 ? input_u32(in) : w->a->sq_prod + (at >> 2));
		w->a->rung = w->b->rung = true;
		break;
	case 6: /* and of the CQ */
		uroce_ring_consume(w->cq[0]->ring, input_u32(in));
		w->cq[0]->ring->prod = input_u32(in);
		break;
	case 7:
		fake_poll(w->cq[1], &c, 1);
		break;
	case 8:
		input_take(in, w->a->page, input_u8(in) % (sizeof(*w->a->page) + 1));
		w->a->rung = true;
		break;
	default:
		pair_turn(&w->p);
		pair_advance(&w->p, w->p.clock.now + ((uint64_t)input_u8(in) << 12));
	}
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
	setup(&w, input_u8(&in) & 1 ? UROCE_QPT_UC : UROCE_QPT_RC);
	for (unsigned i = 0; i < STEPS && in.left; i++)
		step(&w, &in);
	pair_run(&w.p, w.p.clock.now + 20000000, is_storm, &w);
	for (unsigned i = 0; i < 2; i++) {
		REQUIRE(w.p.dev[i].mem.violations == 0);
		REQUIRE(fake_mem_guards_hold(&w.p.dev[i].mem));
	}
	REQUIRE(w.p.link.malformed == 0);
	pair_free(&w.p);
	return 0;
}
