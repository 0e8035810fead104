/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_fault_rules.h"

#include <string.h>

#include "fabric/wire/hdr.h"
#include "tests/unit/wire/sample.h"

#define N_PACKETS 100000u

static struct fault_conf conf;
static atomic_uint seen[FAULT_ONCE_MAX];

static void rules(const char *text)
{
	char err[128];

	fault_conf_init(&conf);
	memset(seen, 0, sizeof(seen));
	ck_assert_msg(fault_parse(&conf, text, err, sizeof(err)) == 0, "%s: %s", text, err);
}

static struct fault_stream stream(enum fault_dir dir, unsigned port)
{
	struct fault_stream s = { 0 };

	fault_stream_seed(&s, &conf, dir, port);
	return s;
}

static struct fault_verdict judge(struct fault_stream *s, uint64_t now, uint8_t opcode,
				  uint32_t qpn, uint32_t psn)
{
	struct fault_packet p = {
		.len = 1000, .has_bth = true, .opcode = opcode, .qpn = qpn, .psn = psn
	};

	return fault_judge(s, &conf, seen, now, &p);
}

struct tally {
	uint32_t lost, dup, reordered, corrupt, marked;
	uint64_t mark; /* mixes which packets it hit and when they arrive */
};

static struct tally run(struct fault_stream *s)
{
	struct tally t = { 0 };

	for (uint32_t i = 0; i < N_PACKETS; i++) {
		struct fault_verdict v = judge(s, 1000ull * i, BTH_SEND_ONLY, 2, i & 0xffffff);

		t.lost += v.fate == FAULT_LOST;
		t.dup += v.is_dup;
		t.reordered += v.is_reordered;
		t.corrupt += v.is_corrupt;
		t.marked += v.is_marked;
		t.mark = t.mark * 31 + (uint64_t)v.fate + 2u * v.is_dup + 4u * v.is_corrupt + v.due;
	}
	return t;
}

/* With a fixed seed these are facts, not estimates. */
static const struct {
	const char *text;
	enum fault_dir dir;
	unsigned port;
	uint32_t lost, dup, reordered, corrupt, marked;
} tallies[] = {
	{ "drop=1% seed=7", FAULT_TX, 0, 965, 0, 0, 0 },
	{ "drop=1% seed=7", FAULT_RX, 0, 1007, 0, 0, 0 },
	{ "drop=1% seed=7", FAULT_TX, 1, 1034, 0, 0, 0 },
	{ "drop=1% reorder=0.1% seed=8", FAULT_TX, 0, 1020, 0, 100, 0 },
	{ "dup=50% corrupt=0.01%", FAULT_TX, 0, 0, 50267, 0, 14 },
	{ "drop=5% dup=5% reorder=5% corrupt=5% jitter=1us seed=1", FAULT_RX, 3, 5003, 5089, 5064,
	  5045 },
	{ "drop=1% mark=10% seed=7", FAULT_TX, 0, 965, 0, 0, 0, 9818 },
};

START_TEST(one_seed_gives_one_outcome)
{
	struct fault_stream s;
	struct tally t;

	rules(tallies[_i].text);
	s = stream(tallies[_i].dir, tallies[_i].port);
	t = run(&s);
	ck_assert_msg(t.lost == tallies[_i].lost && t.dup == tallies[_i].dup &&
			      t.reordered == tallies[_i].reordered &&
			      t.corrupt == tallies[_i].corrupt && t.marked == tallies[_i].marked,
		      "%s: lost %u dup %u reordered %u corrupt %u marked %u", tallies[_i].text,
		      t.lost, t.dup, t.reordered, t.corrupt, t.marked);
}
END_TEST

START_TEST(the_same_run_twice_is_the_same_packet_for_packet)
{
	struct fault_stream a, b;

	rules("drop=3% dup=2% reorder=4% corrupt=1% jitter=9us delay=3us rate=10gbit seed=99");
	a = stream(FAULT_TX, 0);
	b = stream(FAULT_TX, 0);
	ck_assert_uint_eq(run(&a).mark, run(&b).mark);
}
END_TEST

START_TEST(directions_ports_and_seeds_have_sequences_of_their_own)
{
	struct fault_stream s[4];
	uint64_t mark[4];

	rules("drop=10% seed=5");
	s[0] = stream(FAULT_TX, 0);
	s[1] = stream(FAULT_RX, 0);
	s[2] = stream(FAULT_TX, 1);
	conf.seed = 6;
	s[3] = stream(FAULT_TX, 0);
	for (unsigned i = 0; i < 4; i++) {
		mark[i] = run(&s[i]).mark;
		for (unsigned k = 0; k < i; k++)
			ck_assert_uint_ne(mark[i], mark[k]);
	}
}
END_TEST

/* So that "drop=1%" loses the same packets when duplication is added. */
START_TEST(one_chance_does_not_move_another)
{
	struct fault_stream a, b;
	bool lost[1000];

	rules("drop=5% seed=3");
	a = stream(FAULT_TX, 0);
	for (uint32_t i = 0; i < 1000; i++)
		lost[i] = judge(&a, i, BTH_SEND_ONLY, 2, i).fate == FAULT_LOST;
	rules("drop=5% dup=50% corrupt=50% jitter=1ms seed=3");
	b = stream(FAULT_TX, 0);
	for (uint32_t i = 0; i < 1000; i++)
		ck_assert_int_eq(judge(&b, i, BTH_SEND_ONLY, 2, i).fate == FAULT_LOST, lost[i]);
}
END_TEST

START_TEST(certainty_is_certain_and_never_is_never)
{
	struct fault_stream s;
	struct tally t;

	rules("drop=100% dup=0");
	s = stream(FAULT_TX, 0);
	t = run(&s);
	ck_assert_uint_eq(t.lost, N_PACKETS);
	ck_assert_uint_eq(t.dup, 0);
}
END_TEST

START_TEST(delay_jitter_and_hold_add_up)
{
	struct fault_stream s;

	rules("delay=20us");
	s = stream(FAULT_RX, 0);
	ck_assert_uint_eq(judge(&s, 500, BTH_SEND_ONLY, 2, 0).due, 20500);
	rules("delay=20us reorder=100% hold=7us");
	s = stream(FAULT_RX, 0);
	ck_assert_uint_eq(judge(&s, 500, BTH_SEND_ONLY, 2, 0).due, 27500);
	rules("jitter=10ns seed=1");
	s = stream(FAULT_RX, 0);
	bool hit[11] = { 0 };
	for (int i = 0; i < 1000; i++) {
		uint64_t due = judge(&s, 500, BTH_SEND_ONLY, 2, 0).due;

		ck_assert_uint_ge(due, 500);
		ck_assert_uint_le(due, 510);
		hit[due - 500] = true;
	}
	for (int i = 0; i < 11; i++)
		ck_assert(hit[i]);
}
END_TEST

/* 1000 bytes at 1 Gbit/s take 8 us; the wire is free again between slow packets. */
START_TEST(a_rate_spaces_packets_by_their_length)
{
	struct fault_stream s;

	rules("rate=1gbit");
	s = stream(FAULT_TX, 0);
	ck_assert_uint_eq(judge(&s, 0, BTH_SEND_ONLY, 2, 0).due, 8000);
	ck_assert_uint_eq(judge(&s, 0, BTH_SEND_ONLY, 2, 1).due, 16000);
	ck_assert_uint_eq(judge(&s, 1000, BTH_SEND_ONLY, 2, 2).due, 24000);
	ck_assert_uint_eq(judge(&s, 100000, BTH_SEND_ONLY, 2, 3).due, 108000);
}
END_TEST

START_TEST(a_partition_stops_all_in_its_direction)
{
	struct fault_stream tx, rx;

	rules("partition=on dir=tx");
	tx = stream(FAULT_TX, 0);
	rx = stream(FAULT_RX, 0);
	ck_assert_int_eq(judge(&tx, 0, BTH_SEND_ONLY, 2, 0).fate, FAULT_PARTITIONED);
	ck_assert_int_eq(judge(&rx, 0, BTH_SEND_ONLY, 2, 0).fate, FAULT_PASSES);
}
END_TEST

START_TEST(chances_hold_in_their_direction_only)
{
	struct fault_stream tx, rx;

	rules("drop=100% delay=1us dir=rx");
	tx = stream(FAULT_TX, 0);
	rx = stream(FAULT_RX, 0);
	ck_assert_int_eq(judge(&tx, 5, BTH_SEND_ONLY, 2, 0).fate, FAULT_PASSES);
	ck_assert_uint_eq(judge(&tx, 5, BTH_SEND_ONLY, 2, 0).due, 5);
	ck_assert_int_eq(judge(&rx, 5, BTH_SEND_ONLY, 2, 0).fate, FAULT_LOST);
}
END_TEST

/* Which of these packets the rule hits: -1 for none. */
static const struct probe {
	uint8_t opcode;
	uint32_t qpn, psn;
	enum fault_dir dir;
} probes[] = {
	{ BTH_SEND_ONLY, 17, 5, FAULT_TX },          { BTH_READ_RESP_FIRST, 17, 6, FAULT_RX },
	{ BTH_READ_RESP_MIDDLE, 17, 7, FAULT_TX },   { BTH_READ_RESP_MIDDLE, 17, 8, FAULT_RX },
	{ BTH_READ_RESP_MIDDLE, 18, 9, FAULT_RX },   { BTH_READ_RESP_MIDDLE, 17, 10, FAULT_RX },
	{ BTH_UD | BTH_SEND_ONLY, 1, 11, FAULT_TX }, { 0x81, 17, 0, FAULT_RX },
	{ BTH_READ_RESP_MIDDLE, 17, 8, FAULT_RX },
};
#define N_PROBES ((int)(sizeof(probes) / sizeof(probes[0])))

static const struct {
	const char *text;
	int hit;
} onces[] = {
	{ "--once", 0 },
	{ "--once nth=4", 3 },
	{ "--once nth=9", 8 },
	{ "--once nth=10", -1 },
	{ "--once dir=rx", 1 },
	{ "--once opcode=read-response-middle", 2 },
	{ "--once opcode=read-response-middle nth=3", 4 },
	{ "--once opcode=read-response-middle nth=3 qpn=17", 5 },
	{ "--once opcode=read-response-middle nth=3 qpn=17 dir=rx", 8 },
	{ "--once opcode=read-response nth=2 dir=rx", 3 },
	{ "--once psn=8 nth=2", 8 },
	{ "--once psn=8 opcode=send-only", -1 },
	{ "--once opcode=send-only nth=2", 6 },
	{ "--once opcode=send-middle", -1 }, /* 0x81 is no SEND */
	{ "--once opcode=cnp", 7 },
	{ "--once qpn=18", 4 },
};

START_TEST(a_one_shot_rule_hits_just_the_packet_it_describes)
{
	struct fault_stream s[4];

	rules(onces[_i].text);
	s[FAULT_TX] = stream(FAULT_TX, 0);
	s[FAULT_RX] = stream(FAULT_RX, 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N_PROBES; i++) {
			const struct probe *p = &probes[i];
			bool lost =
				judge(&s[p->dir], 0, p->opcode, p->qpn, p->psn).fate == FAULT_LOST;
			bool due = round == 0 && i == onces[_i].hit;

			if (round == 0 || onces[_i].hit >= 0)
				ck_assert_msg(lost == due, "%s: round %d packet %d", onces[_i].text,
					      round, i);
		}
	}
}
END_TEST

START_TEST(one_shot_actions_do_what_they_say)
{
	struct fault_stream s;
	struct fault_verdict v;

	rules("--once action=dup --once psn=1 action=corrupt --once psn=2 action=reorder "
	      "--once psn=3 action=delay delay=1ms --once psn=4 action=drop");
	s = stream(FAULT_TX, 0);
	v = judge(&s, 0, BTH_SEND_ONLY, 2, 0);
	ck_assert(v.is_once && v.is_dup && !v.is_corrupt && v.due == 0 && v.fate == FAULT_PASSES);
	v = judge(&s, 0, BTH_SEND_ONLY, 2, 1);
	ck_assert(v.is_once && v.is_corrupt && !v.is_dup && v.fate == FAULT_PASSES);
	v = judge(&s, 0, BTH_SEND_ONLY, 2, 2);
	ck_assert(v.is_once && v.is_reordered && v.due == FAULT_HOLD_NS);
	v = judge(&s, 0, BTH_SEND_ONLY, 2, 3);
	ck_assert(v.is_once && v.due == 1000000);
	v = judge(&s, 0, BTH_SEND_ONLY, 2, 4);
	ck_assert(v.is_once && v.fate == FAULT_LOST);
	v = judge(&s, 0, BTH_SEND_ONLY, 2, 1);
	ck_assert(!v.is_once && !v.is_corrupt);
}
END_TEST

START_TEST(a_one_shot_rule_overrules_chance)
{
	struct fault_stream s;
	struct fault_verdict v;

	rules("drop=100% dup=100% --once psn=1 action=delay delay=2us");
	s = stream(FAULT_TX, 0);
	ck_assert_int_eq(judge(&s, 0, BTH_SEND_ONLY, 2, 0).fate, FAULT_LOST);
	v = judge(&s, 0, BTH_SEND_ONLY, 2, 1);
	ck_assert(v.fate == FAULT_PASSES && !v.is_dup && v.due == 2000);
}
END_TEST

START_TEST(without_a_bth_only_a_rule_for_anything_fits)
{
	struct fault_packet arp = { .len = 60 };
	struct fault_stream s;

	rules("--once opcode=send-first --once psn=0 --once qpn=0");
	s = stream(FAULT_TX, 0);
	ck_assert(!fault_judge(&s, &conf, seen, 0, &arp).is_once);
	rules("--once");
	ck_assert(fault_judge(&s, &conf, seen, 0, &arp).is_once);
}
END_TEST

START_TEST(a_packet_is_read_from_its_frame)
{
	uint64_t seed = ck_seed();
	struct packet pk = sample_packet(BTH_WRITE_ONLY, 5, &seed);
	struct frame_room room;
	struct frame f = sample_build(&pk, SAMPLE_V6, &room, 1, &seed);
	struct fault_packet p;

	fault_packet_read(&p, &f);
	ck_assert(p.has_bth);
	ck_assert_uint_eq(p.len, frame_len(&f));
	ck_assert_uint_eq(p.opcode, BTH_WRITE_ONLY);
	ck_assert_uint_eq(p.qpn, pk.dest_qpn);
	ck_assert_uint_eq(p.psn, pk.psn);
	f.head_len = 14;
	fault_packet_read(&p, &f);
	ck_assert(!p.has_bth);
}
END_TEST

/* Every bit that can be hit, in every part of a split frame, is one that the ICRC or a check sees.
 */
START_TEST(damage_is_always_found_by_the_receiver)
{
	uint64_t seed = ck_seed() + (uint64_t)_i;

	for (int round = 0; round < 5000; round++) {
		struct packet pk = sample_packet(BTH_WRITE_ONLY, (uint32_t)round % 50, &seed), got;
		struct frame_room room;
		struct frame f = sample_build(&pk, (enum sample_net)_i, &room, 3, &seed);

		fault_corrupt(&f, ck_rand(&seed));
		ck_assert_int_ne(packet_parse(&got, &f, true), PACKET_OK);
	}
}
END_TEST

START_TEST(damage_to_a_frame_without_bth_stays_within_it)
{
	for (uint32_t len = 0; len < 60; len++) {
		uint64_t seed = len;
		uint8_t *bytes = calloc(1, len + 1);

		for (int round = 0; round < 100; round++) {
			struct frame f = frame_flat(bytes, len);

			fault_corrupt(&f, ck_rand(&seed));
		}
		for (uint32_t i = 0; i < len && i < 14; i++)
			ck_assert_uint_eq(bytes[i], 0);
		ck_assert_uint_eq(bytes[len], 0);
		free(bytes);
	}
}
END_TEST

/* As a switch marks: of ECN-capable packets the IP header, with its checksum; no ICRC sees it. */
START_TEST(a_mark_is_congestion_experienced_where_the_packet_is_capable)
{
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		uint64_t seed = ecn;
		struct packet pk = sample_packet(BTH_SEND_ONLY, 100, &seed), got;
		struct net_path path = sample_path((enum sample_net)_i);
		struct net_template t;
		struct frame_room room;
		struct frame f = frame_empty(&room);

		path.tclass = (uint8_t)(0x68 | ecn);
		f.n_segs = 1;
		f.seg[0] = (struct frame_seg) { f.buf, 100 };
		memset(f.buf, 0x5a, 100);
		net_template_build(&t, &path);
		packet_build(&pk, &t, &f);
		ck_assert_int_eq(fault_mark(&f), ecn != 0);
		ck_assert_int_eq(packet_parse(&got, &f, true), PACKET_OK);
		ck_assert_uint_eq(got.net.tclass, ecn ? 0x6b : 0x68);
		f.head_len = 20;
		ck_assert(!fault_mark(&f));
	}
}
END_TEST

START_TEST(quiet_rules_are_those_that_change_nothing)
{
	static const char *const loud[] = { "drop=0.0000001%", "dup=1%",    "reorder=1%",
					    "corrupt=1%",      "mark=1%",   "delay=1ns",
					    "jitter=1ns",      "rate=1bit", "partition=on",
					    "--once" };

	rules("seed=9 dir=tx hold=1s drop=0 delay=0 rate=0 partition=off");
	ck_assert(fault_conf_is_quiet(&conf));
	for (unsigned i = 0; i < sizeof(loud) / sizeof(loud[0]); i++) {
		rules(loud[i]);
		ck_assert_msg(!fault_conf_is_quiet(&conf), "%s", loud[i]);
	}
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

Suite *suite_make(void)
{
	Suite *s = suite_create("link_fault_rules");
	TCase *tc = tcase_create("judge");

	tcase_add_loop_test(tc, one_seed_gives_one_outcome, 0, N(tallies));
	tcase_add_test(tc, the_same_run_twice_is_the_same_packet_for_packet);
	tcase_add_test(tc, directions_ports_and_seeds_have_sequences_of_their_own);
	tcase_add_test(tc, one_chance_does_not_move_another);
	tcase_add_test(tc, certainty_is_certain_and_never_is_never);
	tcase_add_test(tc, delay_jitter_and_hold_add_up);
	tcase_add_test(tc, a_rate_spaces_packets_by_their_length);
	tcase_add_test(tc, a_partition_stops_all_in_its_direction);
	tcase_add_test(tc, chances_hold_in_their_direction_only);
	tcase_add_loop_test(tc, a_one_shot_rule_hits_just_the_packet_it_describes, 0, N(onces));
	tcase_add_test(tc, one_shot_actions_do_what_they_say);
	tcase_add_test(tc, a_one_shot_rule_overrules_chance);
	tcase_add_test(tc, without_a_bth_only_a_rule_for_anything_fits);
	tcase_add_test(tc, a_packet_is_read_from_its_frame);
	tcase_add_loop_test(tc, damage_is_always_found_by_the_receiver, 0, SAMPLE_N_NETS);
	tcase_add_test(tc, damage_to_a_frame_without_bth_stays_within_it);
	tcase_add_loop_test(tc, a_mark_is_congestion_experienced_where_the_packet_is_capable, 0,
			    SAMPLE_N_NETS);
	tcase_add_test(tc, quiet_rules_are_those_that_change_nothing);
	suite_add_tcase(s, tc);
	return s;
}
