/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN on a wire that marks: 10 Gbit/s, 5 us one way, behind a port that queues 256 frames and
 * marks what waits longer than 50 us. The queue stays short and the wire busy.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/scene.h"

#define MSG   (1u << 20)
#define DEPTH 4u

static struct scene s;

static void start(bool congestion, uint64_t ecn_ns)
{
	struct scene_conf conf = {
		.pair = { .link = { .seed = 1,
				    .delay_ns = 5000,
				    .ns_per_kib = 819,
				    .ecn_ns = ecn_ns,
				    .tx_burst = 256 },
			  .engine = { .congestion = congestion } },
		.rc = { .mtu = IBV_MTU_4096, .timeout = 14 },
		.mem = MSG,
	};

	scene_init(&s, &conf);
}

/* n messages of 1 MiB; ns. */
static uint64_t transfer(uint8_t opcode, uint32_t n)
{
	uint64_t began = s.p.clock.now;

	for (uint32_t i = 0; i < DEPTH; i++)
		scene_post(&s, 0, opcode, 0, MSG);
	for (uint32_t i = 0; i < n; i++) {
		scene_expect(&s, 0, UROCE_WC_SUCCESS);
		if (i + DEPTH < n)
			scene_post(&s, 0, opcode, 0, MSG);
	}
	return s.p.clock.now - began;
}

static uint64_t counter(unsigned side, const char *name)
{
	return fake_counter(&s.p.dev[side], name);
}

static uint64_t mean_wait(unsigned from)
{
	return s.p.link.waited_ns[from] / s.p.link.n_sent[from];
}

static const struct {
	const char *name;
	uint8_t opcode;
	unsigned sender; /* of the data */
} cases[] = { { "WRITE", UROCE_WR_WRITE, 0 }, { "READ", UROCE_WR_READ, 1 } };

START_TEST(the_queue_stays_short_and_the_wire_busy)
{
	unsigned tx = cases[_i].sender;
	uint64_t ns, off, on;

	start(false, 50000);
	transfer(cases[_i].opcode, 128);
	off = mean_wait(tx);
	ck_assert_uint_eq(s.p.link.n_marked[tx], 0); /* not ECN-capable: nobody would react */
	ck_assert_uint_eq(counter(!tx, "np_cnp_sent"), 0);
	scene_free(&s);
	start(true, 50000);
	ns = transfer(cases[_i].opcode, 128);
	on = mean_wait(tx);
	printf("# %s: queue %" PRIu64 " us, without DCQCN %" PRIu64 " us; %.0f MB/s; %" PRIu64
	       " marked, %" PRIu64 " CNPs\n",
	       cases[_i].name, on / 1000, off / 1000, 128.0 * MSG * 1000 / (double)ns,
	       counter(!tx, "np_ecn_marked_roce_packets"), counter(!tx, "np_cnp_sent"));
	fflush(stdout);
	ck_assert_uint_lt(on, off / 2);
	ck_assert_uint_lt(128ull * MSG * 1000 / 1250, ns);
	ck_assert_uint_gt(128ull * MSG * 1000 / 1250, ns * 6 / 10);
	ck_assert_uint_eq(counter(!tx, "np_ecn_marked_roce_packets"), s.p.link.n_marked[tx]);
	ck_assert_uint_eq(counter(!tx, "np_cnp_sent"), counter(tx, "rp_cnp_handled"));
	/* One in 50 us at most. */
	ck_assert_uint_gt(counter(!tx, "np_cnp_sent"), 0);
	ck_assert_uint_le(counter(!tx, "np_cnp_sent"), ns / 50000 + 1);
	ck_assert_uint_eq(counter(tx, "local_ack_timeout_err"), 0);
	ck_assert_uint_le(counter(tx, "retransmitted_packets"), 2); /* probes of a slow QP */
	scene_free(&s);
}
END_TEST

START_TEST(without_marks_nothing_is_slowed_down)
{
	uint64_t with, without;

	start(false, 0);
	without = transfer(cases[_i].opcode, 16);
	scene_free(&s);
	start(true, 0);
	with = transfer(cases[_i].opcode, 16);
	ck_assert_uint_eq(with, without);
	scene_free(&s);
}
END_TEST

static void cnp(uint32_t qpn, uint8_t last_of_sgid)
{
	struct net_path path = pair_path(&s.p, 1);
	struct packet pk = { .opcode = BTH_CNP | 1, .pkey = 0xffff, .dest_qpn = qpn, .becn = true };
	struct frame *f = link_sim_alloc(&s.p.link);
	struct net_template t;

	path.sgid[15] ^= last_of_sgid;
	net_template_build(&t, &path);
	packet_build(&pk, &t, f);
	engine_rx(s.p.dev[0].engine, s.p.clock.now, (const struct frame *const *)&f, 1);
	link_sim_put(&s.p.link, f);
}

START_TEST(a_cnp_counts_only_from_the_peer_and_where_it_is_wanted)
{
	start(true, 0);
	cnp(s.qp[0]->qpn, 0);
	ck_assert_uint_eq(counter(0, "rp_cnp_handled"), 1);
	cnp(s.qp[0]->qpn, 1);
	cnp(0xabcdef, 0);
	ck_assert_uint_eq(counter(0, "rp_cnp_handled"), 1);
	ck_assert_uint_eq(counter(0, "rp_cnp_ignored"), 2);
	scene_free(&s);
	start(false, 0);
	cnp(s.qp[0]->qpn, 0);
	ck_assert_uint_eq(counter(0, "rp_cnp_handled"), 0);
	ck_assert_uint_eq(counter(0, "rp_cnp_ignored"), 1);
	scene_free(&s);
}
END_TEST

/* Held back as far as can be, and taken away: nothing of it is left. */
START_TEST(a_qp_that_is_held_back_can_go)
{
	start(true, 0);
	for (unsigned i = 0; i < 64; i++)
		cnp(s.qp[0]->qpn, 0);
	scene_post(&s, 0, UROCE_WR_WRITE, 0, MSG);
	scene_silence(&s, 0, 2); /* 10 Mbit/s, and a little more */
	ck_assert_int_eq(fake_qp_del(s.qp[0]), 0);
	ck_assert(!engine_tx_pending(s.p.dev[0].engine));
	ck_assert_uint_eq(engine_deadline(s.p.dev[0].engine), UINT64_MAX);
	scene_free(&s);
}
END_TEST

Suite *suite_make(void)
{
	Suite *suite = suite_create("sim/congestion");
	TCase *c = tcase_create("congestion");
	int n = (int)(sizeof(cases) / sizeof(cases[0]));

	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, the_queue_stays_short_and_the_wire_busy, 0, n);
	tcase_add_loop_test(c, without_marks_nothing_is_slowed_down, 0, n);
	tcase_add_test(c, a_cnp_counts_only_from_the_peer_and_where_it_is_wanted);
	tcase_add_test(c, a_qp_that_is_held_back_can_go);
	suite_add_tcase(suite, c);
	return suite;
}
