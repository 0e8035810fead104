/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine alone: two engines move `n` messages of one kind and hand each other their frames by
 * reference, as the switch does: open ones, without ICRC; with a fifth argument, "sealed" ones.
 * Under
 *   valgrind --tool=callgrind --toggle-collect=engine_rx --toggle-collect=engine_tx
 *            --toggle-collect=engine_doorbell
 * the instruction count divided by n is what a message costs the core, the same at every run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/transport/core.h"
#include "tests/support/pair.h"

#define BURST 32u
#define QUEUE 1024u

struct queue {
	struct frame *f[QUEUE];
	uint32_t in, out;
};

struct bench {
	struct queue to[2];
	bool is_sealed;
	struct pair pair;
	struct fake_qp *qp[2];
	struct fake_cq *cq[2];
	struct fake_region *mem[2];
	struct fake_wr wr;
	uint32_t posted, done, n, depth;
	bool is_send;
};

static void bench_refill(struct bench *b)
{
	while (b->posted < b->n && b->posted - b->done < b->depth) {
		struct uroce_sge sge = fake_sge(b->mem[1], 0, (uint32_t)b->mem[1]->len);

		if (b->is_send && !fake_post_recv(b->qp[1], b->posted, &sge, 1))
			return;
		if (!fake_post_send(b->qp[0], &b->wr))
			return;
		b->posted++;
	}
}

static void bench_reap(struct bench *b)
{
	struct uroce_cqe cqe[32];
	int n;

	while ((n = fake_poll(b->cq[1], cqe, 32)) > 0)
		;
	while ((n = fake_poll(b->cq[0], cqe, 32)) > 0) {
		for (int i = 0; i < n; i++) {
			if (cqe[i].status) {
				fprintf(stderr, "completion status %u\n", cqe[i].status);
				exit(1);
			}
		}
		b->done += (uint32_t)n;
	}
}

static void bench_make(struct bench *b, const char *op, uint32_t size)
{
	static uint8_t data[UROCE_MAX_INLINE];
	struct pair_conf conf = { 0 };
	struct pair_rc rc = { .mtu = 5 };
	bool is_read = !strcmp(op, "read");

	pair_init(&b->pair, &conf);
	for (unsigned i = 0; i < 2; i++)
		b->pair.dev[i].engine->ports.trace = NULL; /* as in the daemon */
	for (unsigned i = 0; i < 2; i++) {
		struct fake_dev *d = &b->pair.dev[i];

		b->cq[i] = fake_cq_new(d, 1024);
		b->qp[i] = fake_qp_new(d, &(struct fake_qp_conf){ .sq_depth = 128,
								  .rq_depth = 128,
								  .send_cq = b->cq[i],
								  .recv_cq = b->cq[i] });
		b->mem[i] = fake_reg(d, size ? size : 1, 0xf);
	}
	if (pair_connect(&b->pair, b->qp[0], b->qp[1], &rc))
		exit(1);
	b->is_send = !strcmp(op, "send");
	b->wr = (struct fake_wr){
		.opcode = is_read ? UROCE_WR_READ : b->is_send ? UROCE_WR_SEND : UROCE_WR_WRITE,
		.flags = UROCE_WQE_SIGNALED,
		.n_sge = 1,
		.sge = { fake_sge(b->mem[0], 0, size) },
		.rkey = b->mem[1]->key,
		.remote_addr = b->mem[1]->iova,
	};
	if (!is_read && size <= 64) {
		b->wr.flags |= UROCE_WQE_INLINE;
		b->wr.inline_data = data;
		b->wr.inline_len = size;
		b->wr.n_sge = 0;
	}
}

static void bench_rx(struct bench *b, unsigned i)
{
	struct queue *q = &b->to[i];
	struct frame *f[BURST];
	unsigned n = 0;

	while (n < BURST && q->out != q->in)
		f[n++] = q->f[q->out++ % QUEUE];
	if (n)
		engine_rx(b->pair.dev[i].engine, b->pair.clock.now, (const struct frame *const *)f,
			  n);
	for (unsigned k = 0; k < n; k++)
		link_sim_put(&b->pair.link, f[k]);
}

static void bench_tx(struct bench *b, unsigned i)
{
	struct engine *e = b->pair.dev[i].engine;
	struct queue *q = &b->to[!i];
	struct frame *f[BURST];
	unsigned n;

	if (!engine_tx_pending(e) || q->in - q->out > QUEUE - BURST)
		return;
	for (unsigned k = 0; k < BURST; k++) {
		f[k] = link_sim_alloc(&b->pair.link);
		f[k]->is_open = !b->is_sealed;
	}
	n = engine_tx(e, b->pair.clock.now, f, BURST);
	for (unsigned k = 0; k < BURST; k++) {
		if (k < n)
			q->f[q->in++ % QUEUE] = f[k];
		else
			link_sim_put(&b->pair.link, f[k]);
	}
}

/* One turn of a worker that has both devices. */
static void bench_turn(struct bench *b)
{
	for (unsigned i = 0; i < 2; i++)
		bench_rx(b, i);
	for (unsigned i = 0; i < 2; i++) {
		fake_dev_doorbells(&b->pair.dev[i], b->pair.clock.now);
		bench_tx(b, i);
	}
	b->pair.clock.now += 1000;
}

int main(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof(*b));
	uint32_t size;

	if (argc < 5 || !b) {
		fprintf(stderr, "usage: %s write|send|read SIZE COUNT DEPTH [sealed]\n", argv[0]);
		return 2;
	}
	b->is_sealed = argc > 5 && !strcmp(argv[5], "sealed");
	size = (uint32_t)strtoul(argv[2], NULL, 0);
	bench_make(b, argv[1], size);
	b->n = (uint32_t)strtoul(argv[3], NULL, 0);
	b->depth = (uint32_t)strtoul(argv[4], NULL, 0);
	while (b->done < b->n) {
		bench_refill(b);
		bench_turn(b);
		bench_reap(b);
	}
	printf("%s %u bytes: %u messages\n", argv[1], size, b->done);
	pair_free(&b->pair);
	free(b);
	return 0;
}
