/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the truth table where L, or the library that writes its queues, does something wrong. */
#include "dataplane/abi/ring.h"
#include "tests/sim/truth.h"

static void bad_lkey(struct truth *t, uint8_t opcode)
{
	struct fake_wr wr = truth_wr(t, opcode, 64);

	wr.sge[0].lkey ^= 0x5500;
	truth_post(t, wr);
}

static void send_lkey(struct truth *t)
{
	bad_lkey(t, UROCE_WR_SEND);
}

static void write_lkey(struct truth *t)
{
	bad_lkey(t, UROCE_WR_WRITE);
}

static void read_lkey(struct truth *t)
{
	bad_lkey(t, UROCE_WR_READ);
}

static void write_nothing_lkey(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_WRITE, 0);

	wr.sge[0].lkey ^= 0x5500;
	truth_post(t, wr);
}

static void from_region(struct truth *t, uint8_t opcode, uint32_t access, uint32_t pd, bool is_gone)
{
	struct fake_region *m = fake_reg_pd(&t->s.p.dev[0], 4096, access, pd);
	struct fake_wr wr = truth_wr(t, opcode, 64);

	wr.sge[0] = fake_sge(m, 0, 64);
	if (is_gone)
		ck_assert_int_eq(fake_dereg(&t->s.p.dev[0], m), 0);
	truth_post(t, wr);
}

static void lkey_pd(struct truth *t)
{
	from_region(t, UROCE_WR_SEND, 0xf, 2, false);
}

static void lkey_gone(struct truth *t)
{
	from_region(t, UROCE_WR_SEND, 0xf, 1, true);
}

static void read_readonly(struct truth *t)
{
	from_region(t, UROCE_WR_READ, 0, 1, false);
}

static void write_readonly(struct truth *t)
{
	from_region(t, UROCE_WR_WRITE, 0, 1, false);
}

static void send_at(struct truth *t, uint64_t addr)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, 64);

	wr.sge[0].addr = addr;
	truth_post(t, wr);
}

static void send_past(struct truth *t)
{
	send_at(t, t->s.mem[0]->iova + t->s.mem[0]->len - 63);
}

static void send_before(struct truth *t)
{
	send_at(t, t->s.mem[0]->iova - 1);
}

static void own_memory_gone(struct truth *t)
{
	struct fake_region *m = fake_reg(&t->s.p.dev[0], 4096, 0xf);
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, 64);

	m->broken = true;
	wr.sge[0] = fake_sge(m, 0, 64);
	truth_post(t, wr);
}

static void read_into_gone(struct truth *t)
{
	struct fake_region *m = fake_reg(&t->s.p.dev[0], 4096, 0xf);
	struct fake_wr wr = truth_wr(t, UROCE_WR_READ, 64);

	m->broken = true;
	wr.sge[0] = fake_sge(m, 0, 64);
	truth_post(t, wr);
}

static void opcode_unknown(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, 200, 64);

	truth_post(t, wr);
}

static void too_many_entries(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, 64);

	wr.n_sge = t->s.qp[0]->cap.max_send_sge + 1;
	truth_post(t, wr);
}

static void too_long(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_WRITE, 64);

	wr.n_sge = 2;
	wr.sge[1] = wr.sge[0];
	wr.sge[1].length = 0x80000000u;
	truth_post(t, wr);
}

static void inline_too_long(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, 0);

	wr.flags |= UROCE_WQE_INLINE;
	wr.inline_len = t->s.qp[0]->cap.max_inline + 1;
	truth_post(t, wr);
}

static void read_inline(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_READ, 0);

	wr.flags |= UROCE_WQE_INLINE;
	wr.inline_len = 8;
	truth_post(t, wr);
}

static void atomic_length(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_FETCH_ADD, 4);

	truth_post(t, wr);
}

static void do_read(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_READ, 64);

	truth_post(t, wr);
}

/* More published than the queue holds: the library, or who plays it, is broken. */
static void sq_index(struct truth *t)
{
	scene_run_ms(&t->s, 1);
	uroce_ring_publish(&t->s.qp[0]->page->sq, t->s.qp[0]->sq_prod + 65);
	t->s.qp[0]->rung = true;
}

static void rq_index(struct truth *t)
{
	struct fake_wr wr = truth_wr(t, UROCE_WR_SEND, 64);

	uroce_ring_publish(&t->s.qp[1]->page->rq, 1000);
	truth_post(t, wr);
}

/* L's completions get a CQ of four; eight are due. */
static void small_cq(struct truth *t)
{
	struct fake_qp_conf conf = { .recv_cq = t->s.cq[0],
				     .send_cq = fake_cq_new(&t->s.p.dev[0], 4) };

	t->send_cq = conf.send_cq;
	truth_new_qp(t, 0, &conf);
	truth_new_qp(t, 1, &(struct fake_qp_conf) { .send_cq = t->s.cq[1], .recv_cq = t->s.cq[1] });
	ck_assert_int_eq(
		pair_connect(&t->s.p, t->s.qp[0], t->s.qp[1], &(struct pair_rc) { .timeout = 6 }),
		0);
}

static void fill_cq(struct truth *t)
{
	for (unsigned i = 0; i < 8; i++) {
		struct fake_wr wr = truth_wr(t, UROCE_WR_WRITE, 64);

		truth_post(t, wr);
	}
}

#define PLAIN(name, run) { (name), NULL, (run), 0, { .rc = { .timeout = 6, .retry_cnt = 2 } } }

/* clang-format off */
static const struct truth_case cases[] = {
	PLAIN("SEND, lkey unknown", send_lkey),
	PLAIN("WRITE, lkey unknown", write_lkey),
	PLAIN("READ, lkey unknown", read_lkey),
	PLAIN("SEND, lkey of another PD", lkey_pd),
	PLAIN("SEND, local region deregistered", lkey_gone),
	PLAIN("SEND past the local region", send_past),
	PLAIN("SEND before the local region", send_before),
	PLAIN("READ into a region without local write", read_readonly),
	PLAIN("WRITE from a region without local write", write_readonly),
	PLAIN("WRITE of zero bytes, lkey unknown", write_nothing_lkey),
	PLAIN("SEND, own memory gone", own_memory_gone),
	PLAIN("READ, own memory gone", read_into_gone),
	PLAIN("opcode unknown", opcode_unknown),
	PLAIN("SEND, more entries than max_send_sge", too_many_entries),
	PLAIN("SEND, more inline data than max_inline_data", inline_too_long),
	PLAIN("READ, inline", read_inline),
	PLAIN("WRITE of more than 2 GiB", too_long),
	PLAIN("atomic, local buffer not of 8 bytes", atomic_length),
	{ "READ, max_rd_atomic 0", NULL, do_read, 0, { .rc = { .rd_atomic = 0xff, .dest_rd_atomic = 8 } } },
	{ "SQ index impossible", NULL, sq_index, TRUTH_LAST, { .rc = { .timeout = 6 } } },
	{ "SEND, RQ index of R impossible", NULL, rq_index, TRUTH_NO_RECV, { .rc = { .timeout = 6 } } },
	{ "CQ of L overrun", small_cq, fill_cq, TRUTH_ALONE | TRUTH_LAST, { .rc = { .timeout = 6 } } },
};
/* clang-format on */

const struct truth_list truth_local = { cases, sizeof(cases) / sizeof(cases[0]) };
