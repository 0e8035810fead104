/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/scene.h"

#include <stdio.h>
#include <string.h>

static enum link_sim_act filter(void *ctx, unsigned from, const struct packet *pk)
{
	struct scene *s = ctx;
	uint8_t op = pk->opcode & 0x1f;

	s->sent[from][op]++;
	if (op == BTH_ACKNOWLEDGE)
		s->naks[from][pk->syndrome]++;
	s->last_tx[from] = s->p.clock.now;
	if (s->n_tx[from] < 64)
		s->first_tx[from][s->n_tx[from]] = s->p.clock.now;
	s->n_tx[from]++;
	for (unsigned i = 0; i < s->n_faults; i++) {
		struct scene_fault *f = &s->fault[i];

		if ((f->op != 0xff && f->op != op) || (f->from >= 0 && (unsigned)f->from != from))
			continue;
		f->seen++;
		if (!f->nth || f->nth == f->seen)
			return f->act;
	}
	return LINK_SIM_PASS;
}

void scene_init(struct scene *s, const struct scene_conf *conf)
{
	static const struct scene_conf none;
	const struct scene_conf *c = conf ? conf : &none;
	uint32_t mem = c->mem ? c->mem : SCENE_MEM;

	memset(s, 0, sizeof(*s));
	pair_init(&s->p, &c->pair);
	s->p.link.filter = filter;
	s->p.link.filter_ctx = s;
	for (unsigned i = 0; i < 2; i++) {
		struct fake_qp_conf qc = { .type = c->type,
					   .sq_depth = c->sq_depth,
					   .rq_depth = c->rq_depth };

		s->cq[i] = qc.send_cq = qc.recv_cq = fake_cq_new(&s->p.dev[i], 1024);
		s->qp[i] = fake_qp_new(&s->p.dev[i], &qc);
		ck_assert_ptr_nonnull(s->qp[i]);
		s->mem[i] = fake_reg(&s->p.dev[i], mem, 0xf);
		for (uint32_t k = 0; k < mem; k += 4)
			memcpy(s->mem[i]->mem + k, &(uint32_t) { k * 2654435761u + i }, 4);
	}
	ck_assert_int_eq(pair_connect(&s->p, s->qp[0], s->qp[1], &c->rc), 0);
}

void scene_free(struct scene *s)
{
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_msg(!s->p.dev[i].mem.violations, "%s", s->p.dev[i].mem.violation);
		ck_assert(fake_mem_guards_hold(&s->p.dev[i].mem));
	}
	ck_assert_uint_eq(s->p.link.malformed, 0);
	pair_free(&s->p);
}

void scene_fault(struct scene *s, int from, uint8_t op, uint32_t nth, enum link_sim_act act)
{
	ck_assert_uint_lt(s->n_faults, 4);
	s->fault[s->n_faults++] = (struct scene_fault) { op, from, nth, act, 0 };
}

void scene_post(struct scene *s, unsigned side, uint8_t opcode, uint32_t off, uint32_t len)
{
	struct fake_wr wr = { .wr_id = off,
			      .opcode = opcode,
			      .flags = UROCE_WQE_SIGNALED,
			      .n_sge = 1,
			      .sge = { fake_sge(s->mem[side], off, len) },
			      .imm = 0x01020304,
			      .remote_addr = s->mem[!side]->iova + off,
			      .rkey = s->mem[!side]->key,
			      .compare_add = 1 };

	ck_assert(fake_post_send(s->qp[side], &wr));
}

void scene_recv(struct scene *s, unsigned side, uint32_t off, uint32_t len)
{
	struct uroce_sge sge = fake_sge(s->mem[side], off, len);

	ck_assert(fake_post_recv(s->qp[side], off, &sge, 1));
}

struct uroce_cqe scene_wait(struct scene *s, unsigned side, uint32_t ms)
{
	struct uroce_cqe c = { 0 };

	if (!pair_wait(&s->p, s->cq[side], &c, s->p.clock.now + ms_ns(ms))) {
		link_sim_dump(&s->p.link, stdout);
		fflush(stdout);
		ck_abort_msg("no completion on %c within %u ms", 'A' + side, ms);
	}
	return c;
}

void scene_expect(struct scene *s, unsigned side, uint8_t status)
{
	struct uroce_cqe c = scene_wait(s, side, 60000);

	ck_assert_msg(c.status == status, "status %u, expected %u (verr %u)", c.status, status,
		      c.vendor_err);
}

void scene_silence(struct scene *s, unsigned side, uint32_t ms)
{
	struct uroce_cqe c;

	ck_assert(!pair_wait(&s->p, s->cq[side], &c, s->p.clock.now + ms_ns(ms)));
}

void scene_same(struct scene *s, uint32_t off, uint32_t len)
{
	ck_assert_mem_eq(s->mem[0]->mem + off, s->mem[1]->mem + off, len);
}

void scene_run_ms(struct scene *s, uint32_t ms)
{
	pair_run(&s->p, s->p.clock.now + ms_ns(ms), NULL, NULL);
}
