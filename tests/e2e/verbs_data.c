/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves patterned bytes with every opcode, in awkward lengths and from awkward places, and compares
 * both memories byte by byte with what a plain copy would have made of them. The bytes around each
 * region are guard bytes: they must keep their pattern.
 */
#include "tests/e2e/verbs_lib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 4096u
#define MAX   ((1u << 20) + 8192u)
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static const uint32_t lengths[] = {
	0,
	1,
	2,
	3,
	4,
	63,
	64,
	65,
	255,
	256,
	257,
	511,
	512,
	513,
	1023,
	1024,
	1025,
	2047,
	2048,
	2049,
	4095,
	4096,
	4097,
	8191,
	8192,
	8193,
	9999,
	16383,
	65535,
	65536,
	65537,
	(1u << 20) - 1,
	(1u << 20) + 3,
};
static const uint32_t offsets[] = { 0, 1, 3, 63, 4095 };

#define N(array) (sizeof(array) / sizeof(*(array)))

/* A registered buffer with guard bytes around it, and the copy that says what must be in it. */
struct arena {
	uint8_t *mem, *model, *buf; /* buf: behind the guard */
	size_t size;                /* of mem and model */
	struct ibv_mr *mr;
};

static void arena_make(struct arena *a, struct vport *port, size_t size, uint32_t seed)
{
	a->size = size + 2 * GUARD;
	a->mem = aligned_alloc(4096, a->size);
	a->model = malloc(a->size);
	MUST(a->mem && a->model, "no memory");
	pattern_fill(a->mem, a->size, seed, 0);
	memcpy(a->model, a->mem, a->size);
	a->buf = a->mem + GUARD;
	a->mr = vreg(port, a->buf, size, ALL);
}

static void arena_free(struct arena *a)
{
	MUST(!ibv_dereg_mr(a->mr), "dereg_mr: %s", strerror(errno));
	free(a->mem);
	free(a->model);
}

/* Compares the window of length bytes at offset and a guard's width around it; length 0: all. */
static void arena_check(const struct arena *a, size_t offset, size_t length, const char *what)
{
	size_t from = length ? offset : 0, to = length ? offset + length + 2 * GUARD : a->size;

	if (to > a->size)
		to = a->size;
	if (!memcmp(a->mem + from, a->model + from, to - from))
		return;
	while (a->mem[from] == a->model[from])
		from++;
	MUST(0, "%s: the byte at offset %zd of the region is %02x instead of %02x", what,
	     (ssize_t)from - (ssize_t)GUARD, a->mem[from], a->model[from]);
}

static void model_copy(struct arena *to, size_t at, const struct arena *from, size_t off, size_t n)
{
	memcpy(to->model + GUARD + at, from->model + GUARD + off, n);
}

static void send_one(struct vqp *v, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(v->qp, wr, &bad);

	MUST(!err, "post_send: %s", strerror(err));
	if (wr->send_flags & IBV_SEND_SIGNALED)
		vcq_expect(v->scq, IBV_WC_SUCCESS);
}

static void recv_list(struct vqp *v, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = sge, .num_sge = n }, *bad;
	int err = ibv_post_recv(v->qp, &wr, &bad);

	MUST(!err, "post_recv: %s", strerror(err));
}

/* One message, between l's [lo, lo + n) and r's [ro, ro + n), and its effect on the models. */
static void one_message(struct vqp *l, struct vqp *r, struct arena *la, struct arena *ra,
			enum ibv_wr_opcode opcode, uint32_t n, uint32_t lo, uint32_t ro)
{
	struct ibv_sge here = { (uintptr_t)la->buf + lo, n, la->mr->lkey };
	struct ibv_sge there = { (uintptr_t)ra->buf + ro, n, ra->mr->lkey };
	bool is_send = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
	bool has_imm = opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_send_wr wr = { .sg_list = &here,
				  .num_sge = n ? 1 : 0,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(0xa5000000u + n) };

	if (!is_send) {
		wr.wr.rdma.remote_addr = there.addr;
		wr.wr.rdma.rkey = ra->mr->rkey;
	}
	if (is_send || has_imm)
		recv_list(r, &there, is_send && n ? 1 : 0);
	send_one(l, &wr);
	if (is_send || has_imm) {
		struct ibv_wc wc = vcq_expect(r->rcq, IBV_WC_SUCCESS);

		MUST(wc.byte_len == n, "byte_len is %u instead of %u", wc.byte_len, n);
		MUST(wc.opcode == (is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM), "wc.opcode");
		MUST(wc.qp_num == r->qp->qp_num, "wc.qp_num");
		MUST(!(wc.wc_flags & IBV_WC_WITH_IMM) == !has_imm, "wc_flags is %x", wc.wc_flags);
		MUST(!has_imm || wc.imm_data == wr.imm_data, "imm_data is %x", ntohl(wc.imm_data));
	}
	if (opcode == IBV_WR_RDMA_READ)
		model_copy(la, lo, ra, ro, n);
	else
		model_copy(ra, ro, la, lo, n);
}

static void all_lengths(struct vport *pl, struct vport *pr, enum ibv_wr_opcode opcode)
{
	struct arena la, ra;
	struct vqp l, r;

	vqp_pair(&l, pl, &r, pr, &vqp_usual);
	arena_make(&la, pl, MAX, 11);
	arena_make(&ra, pr, MAX, 22);
	for (unsigned i = 0; i < N(lengths); i++)
		for (unsigned j = 0; j < N(offsets); j++) {
			uint32_t n = lengths[i], lo = offsets[j];
			uint32_t ro = offsets[(j * 2 + i) % N(offsets)];
			char what[96];

			snprintf(what, sizeof(what), "%u bytes from offset %u to %u", n, lo, ro);
			one_message(&l, &r, &la, &ra, opcode, n, lo, ro);
			arena_check(&la, lo, n, what);
			arena_check(&ra, ro, n, what);
		}
	arena_check(&la, 0, 0, "afterwards, local");
	arena_check(&ra, 0, 0, "afterwards, remote");
	vqp_close(&l);
	vqp_close(&r);
	arena_free(&la);
	arena_free(&ra);
}

#define LENGTHS_CASE(name, opcode)                                             \
	static void name(void)                                                 \
	{                                                                      \
		all_lengths(vport_get("uroce0"), vport_get("uroce1"), opcode); \
	}                                                                      \
	static void name##_loopback(void)                                      \
	{                                                                      \
		all_lengths(vport_get("uroce0"), vport_get("uroce0"), opcode); \
	}
LENGTHS_CASE(do_send, IBV_WR_SEND)
LENGTHS_CASE(do_send_imm, IBV_WR_SEND_WITH_IMM)
LENGTHS_CASE(do_write, IBV_WR_RDMA_WRITE)
LENGTHS_CASE(do_write_imm, IBV_WR_RDMA_WRITE_WITH_IMM)
LENGTHS_CASE(do_read, IBV_WR_RDMA_READ)

static const enum ibv_wr_opcode movers[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
					     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ };

/* Lengths around multiples of each path MTU, with every opcode. */
static void every_mtu(void)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	struct arena la, ra;

	arena_make(&la, pl, 64u << 10, 31);
	arena_make(&ra, pr, 64u << 10, 32);
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		uint32_t bytes = 128u << mtu;
		struct vqp_conf conf = vqp_usual;
		struct vqp l, r;

		conf.mtu = mtu;
		vqp_pair(&l, pl, &r, pr, &conf);
		for (unsigned i = 0; i < N(movers); i++)
			for (uint32_t k = 1; k <= 3; k++)
				for (uint32_t n = k * bytes - 1; n <= k * bytes + 1; n++)
					one_message(&l, &r, &la, &ra, movers[i], n, 7 * k, n % 13);
		arena_check(&la, 0, 0, "local");
		arena_check(&ra, 0, 0, "remote");
		vqp_close(&l);
		vqp_close(&r);
	}
	arena_free(&la);
	arena_free(&ra);
}

/* A small generator; the same on every run. */
static uint32_t dice(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(*state >> 8) * n) >> 24);
}

/* Splits [at, at + total) into n pieces, some of them adjacent, none empty. */
static void split(struct ibv_sge *sge, unsigned n, const struct arena *a, uint32_t at,
		  uint32_t total, uint32_t *state)
{
	uint32_t left = total;

	for (unsigned i = 0; i < n; i++) {
		uint32_t room = left - (n - 1 - i);
		uint32_t len = i == n - 1 ? left : 1 + dice(state, room < 4000 ? room : 4000);

		sge[i] = (struct ibv_sge) { (uintptr_t)a->buf + at, len, a->mr->lkey };
		at += len;
		left -= len;
	}
}

/* From 1..32 pieces to 1..32 pieces: gathered pieces lie in reverse order in memory. */
static void gather_scatter(void)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	uint32_t state = 4711;
	struct arena la, ra;
	struct vqp l, r;

	vqp_pair(&l, pl, &r, pr, &vqp_usual);
	arena_make(&la, pl, 256u << 10, 41);
	arena_make(&ra, pr, 256u << 10, 42);
	for (unsigned n = 1; n <= 32; n++)
		for (unsigned op = 0; op < N(movers); op++) {
			unsigned m = 1 + dice(&state, 32);
			uint32_t total = 32 + dice(&state, 60000), at = dice(&state, 100);
			bool is_send =
				movers[op] <= IBV_WR_SEND_WITH_IMM && movers[op] >= IBV_WR_SEND;
			struct ibv_sge here[32], there[32];
			struct ibv_send_wr wr = { .sg_list = here,
						  .num_sge = (int)n,
						  .opcode = movers[op],
						  .send_flags = IBV_SEND_SIGNALED };
			uint32_t done = 0;

			split(here, n, &la, at, total, &state);
			for (unsigned i = 0; i < n / 2; i++) {
				struct ibv_sge swap = here[i];

				here[i] = here[n - 1 - i];
				here[n - 1 - i] = swap;
			}
			split(there, m, &ra, 77, total, &state);
			wr.wr.rdma.remote_addr = (uintptr_t)ra.buf + 77;
			wr.wr.rdma.rkey = ra.mr->rkey;
			if (is_send || movers[op] == IBV_WR_RDMA_WRITE_WITH_IMM)
				recv_list(&r, there, is_send ? (int)m : 0);
			send_one(&l, &wr);
			if (is_send || movers[op] == IBV_WR_RDMA_WRITE_WITH_IMM)
				vcq_expect(r.rcq, IBV_WC_SUCCESS);
			for (unsigned i = 0; i < n; i++) {
				size_t off = here[i].addr - (uintptr_t)la.buf;

				if (movers[op] == IBV_WR_RDMA_READ)
					model_copy(&la, off, &ra, 77 + done, here[i].length);
				else
					model_copy(&ra, 77 + done, &la, off, here[i].length);
				done += here[i].length;
			}
			arena_check(&la, 0, 0, "local");
			arena_check(&ra, 0, 0, "remote");
		}
	vqp_close(&l);
	vqp_close(&r);
	arena_free(&la);
	arena_free(&ra);
}

/* Inline data is taken at the call: the buffer is overwritten right after it. */
static void inline_data(void)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct arena ra;
	struct vqp l, r;
	uint8_t bytes[4096];

	vqp_pair(&l, pl, &r, pr, &vqp_usual);
	MUST(!ibv_query_qp(l.qp, &attr, IBV_QP_CAP, &init), "query_qp: %s", strerror(errno));
	MUST(init.cap.max_inline_data >= vqp_usual.max_inline && init.cap.max_inline_data <= 4096,
	     "max_inline_data is %u", init.cap.max_inline_data);
	arena_make(&ra, pr, 65536, 52);
	for (uint32_t n = 0; n <= init.cap.max_inline_data; n++) {
		struct ibv_sge here[2] = { { (uintptr_t)bytes, n / 3, 0 },
					   { (uintptr_t)bytes + n / 3, n - n / 3, 0 } };
		struct ibv_sge there = { (uintptr_t)ra.buf + n % 5, n, ra.mr->lkey };
		struct ibv_send_wr wr = { .sg_list = here,
					  .num_sge = 2,
					  .opcode = n % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_INLINE };
		struct ibv_send_wr *bad;

		pattern_fill(bytes, sizeof(bytes), n, 0);
		memcpy(ra.model + GUARD + n % 5, bytes, n);
		wr.wr.rdma.remote_addr = there.addr;
		wr.wr.rdma.rkey = ra.mr->rkey;
		if (n % 2)
			recv_list(&r, &there, 1);
		wr.send_flags |= IBV_SEND_SIGNALED;
		MUST(!ibv_post_send(l.qp, &wr, &bad), "post_send of %u inline bytes", n);
		memset(bytes, 0xee, sizeof(bytes));
		vcq_expect(l.scq, IBV_WC_SUCCESS);
		if (n % 2)
			vcq_expect(r.rcq, IBV_WC_SUCCESS);
		arena_check(&ra, n % 5, n, "inline");
	}
	vqp_close(&l);
	vqp_close(&r);
	arena_free(&ra);
}

/* Old values come back, new ones arrive, and neighbours stay; the result may lie anywhere. */
static void atomics(void)
{
	struct vport *pl = vport_get("uroce0"), *pr = vport_get("uroce1");
	uint32_t state = 99;
	struct arena la, ra;
	struct vqp l, r;

	vqp_pair(&l, pl, &r, pr, &vqp_usual);
	arena_make(&la, pl, 8192, 61);
	arena_make(&ra, pr, 8192, 62);
	for (unsigned i = 0; i < 400; i++) {
		uint32_t lo = dice(&state, 4096), ro = 8 * dice(&state, 1023);
		bool is_swap = i % 2, is_hit = i % 4 == 1;
		uint64_t old, new, add = 0x0102030405060708ull * (i + 1);
		struct ibv_sge here = { (uintptr_t)la.buf + lo, 8, la.mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &here,
					  .num_sge = 1,
					  .opcode = is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP
							    : IBV_WR_ATOMIC_FETCH_AND_ADD,
					  .send_flags = IBV_SEND_SIGNALED };

		memcpy(&old, ra.model + GUARD + ro, 8);
		new = is_swap ? (is_hit ? add : old) : old + add;
		wr.wr.atomic.remote_addr = (uintptr_t)ra.buf + ro;
		wr.wr.atomic.rkey = ra.mr->rkey;
		wr.wr.atomic.compare_add = is_swap ? old + !is_hit : add;
		wr.wr.atomic.swap = add;
		send_one(&l, &wr);
		memcpy(la.model + GUARD + lo, &old, 8);
		memcpy(ra.model + GUARD + ro, &new, 8);
		arena_check(&la, 0, 0, "the old value");
		arena_check(&ra, 0, 0, "the new value");
	}
	vqp_close(&l);
	vqp_close(&r);
	arena_free(&la);
	arena_free(&ra);
}

static const struct tap_case cases[] = {
	{ "SEND: every length, from and to every alignment", do_send, 0 },
	{ "SEND with immediate: every length and alignment", do_send_imm, 0 },
	{ "RDMA WRITE: every length and alignment", do_write, 0 },
	{ "RDMA WRITE with immediate: every length and alignment", do_write_imm, 0 },
	{ "RDMA READ: every length and alignment", do_read, 0 },
	{ "SEND to the own device", do_send_loopback, 0 },
	{ "SEND with immediate to the own device", do_send_imm_loopback, 0 },
	{ "RDMA WRITE to the own device", do_write_loopback, 0 },
	{ "RDMA WRITE with immediate to the own device", do_write_imm_loopback, 0 },
	{ "RDMA READ from the own device", do_read_loopback, 0 },
	{ "path MTU 256 to 4096, lengths around its multiples", every_mtu, 0 },
	{ "gathering from and scattering to 1 to 32 pieces", gather_scatter, 0 },
	{ "inline data of every length is taken at the call", inline_data, 0 },
	{ "CMP_SWAP and FETCH_ADD return the old value and store the new one", atomics, 0 },
};

int main(int argc, char **argv)
{
	return tap_run(cases, N(cases), argc, argv);
}
