/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/next_hop.h"

#include <string.h>

#include "fabric/wire/packet.h"
#include "tests/support/ck_main.h"

#define S 1000000000ull

struct own {
	_Alignas(64) uint8_t bytes[FRAME_HEADROOM + FRAME_PAYLOAD];
	struct frame f;
};

static struct neigh_table table;
static struct next_hop hop;
static struct own frame[NEXT_HOP_WAITING + 1];
static struct frame *go[NEXT_HOP_WAITING], *lost[NEXT_HOP_WAITING];
static unsigned n_go, n_lost;
static const uint8_t mac[6] = { 2, 1, 2, 3, 4, 5 };

static void setup(void)
{
	memset(&table, 0, sizeof(table));
	memset(&hop, 0, sizeof(hop));
	hop.table = &table;
}

static struct frame *make(unsigned i, const char *to, const uint8_t *dmac)
{
	struct packet pk = { .opcode = BTH_SEND_ONLY };
	struct net_path p = { .vlan = NET_NO_VLAN };
	struct frame *f = &frame[i].f;
	struct net_template t;

	ck_assert_int_eq(gid_parse(to, p.dgid), 0);
	p.is_ipv4 = gid_is_ipv4(p.dgid);
	memcpy(p.sgid, p.dgid, sizeof(p.sgid));
	if (dmac)
		memcpy(p.dmac, dmac, 6);
	*f = (struct frame) { .buf = frame[i].bytes + FRAME_HEADROOM, .room = FRAME_PAYLOAD };
	net_template_build(&t, &p);
	packet_build(&pk, &t, f);
	return f;
}

static unsigned want(const char *to)
{
	uint8_t gid[GID_LEN];

	ck_assert_int_eq(gid_parse(to, gid), 0);
	return neigh_add(&table, gid, NULL);
}

static const char *const peer[2] = { "192.0.2.7", "fd00::7" };

START_TEST(a_known_neighbour_gets_the_frame)
{
	struct frame *f = make(0, peer[_i], NULL);

	neigh_set(&table, want(peer[_i]), mac);
	ck_assert_int_eq(next_hop_set(&hop, f), NEXT_HOP_GO);
	ck_assert_mem_eq(f->head, mac, 6);
}
END_TEST

START_TEST(what_nobody_asked_for_goes_by_its_own_mac_or_not_at_all)
{
	static const uint8_t own[6] = { 2, 9, 9, 9, 9, 9 }, group[6] = { 1, 0, 0x5e };

	ck_assert_int_eq(next_hop_set(&hop, make(0, peer[_i], NULL)), NEXT_HOP_NONE);
	ck_assert_int_eq(next_hop_set(&hop, make(0, peer[_i], own)), NEXT_HOP_GO);
	ck_assert_mem_eq(frame[0].f.head, own, 6);
	ck_assert_int_eq(next_hop_set(&hop, make(0, peer[_i], group)), NEXT_HOP_GO);
	ck_assert_mem_eq(frame[0].f.head, group, 6);
}
END_TEST

START_TEST(frames_wait_in_order_until_the_neighbour_answers)
{
	unsigned s = want(peer[_i]);

	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(next_hop_set(&hop, make(i, peer[_i], NULL)), NEXT_HOP_WAIT);
		ck_assert(next_hop_wait(&hop, i, &frame[i].f));
	}
	next_hop_take(&hop, 10, go, &n_go, lost, &n_lost);
	ck_assert_uint_eq(n_go + n_lost, 0);
	ck_assert(!next_hop_is_due(&hop, 10));
	ck_assert_uint_eq(next_hop_deadline(&hop), S);
	neigh_set(&table, s, mac);
	ck_assert(next_hop_is_due(&hop, 10));
	next_hop_take(&hop, 10, go, &n_go, lost, &n_lost);
	ck_assert_uint_eq(n_go, 5);
	ck_assert_uint_eq(n_lost, 0);
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_ptr_eq(go[i], &frame[i].f);
		ck_assert_mem_eq(go[i]->head, mac, 6);
	}
	ck_assert_uint_eq(next_hop_deadline(&hop), UINT64_MAX);
}
END_TEST

/* Between the lookup and the waiting: nobody would tell of that change again. */
START_TEST(an_answer_that_comes_meanwhile_is_not_missed)
{
	unsigned s = want(peer[0]);

	ck_assert_int_eq(next_hop_set(&hop, make(0, peer[0], NULL)), NEXT_HOP_WAIT);
	neigh_set(&table, s, mac);
	ck_assert(next_hop_wait(&hop, 0, &frame[0].f));
	ck_assert(next_hop_is_due(&hop, 0));
}
END_TEST

START_TEST(patience_ends_after_a_second_for_each_frame)
{
	want(peer[0]);
	for (unsigned i = 0; i < 2; i++) {
		next_hop_set(&hop, make(i, peer[0], NULL));
		next_hop_wait(&hop, i * S / 2, &frame[i].f);
	}
	ck_assert(next_hop_is_due(&hop, S));
	next_hop_take(&hop, S, go, &n_go, lost, &n_lost);
	ck_assert_uint_eq(n_go, 0);
	ck_assert_uint_eq(n_lost, 1);
	ck_assert_ptr_eq(lost[0], &frame[0].f);
	ck_assert_uint_eq(next_hop_deadline(&hop), S + S / 2);
}
END_TEST

START_TEST(no_more_wait_than_there_is_room_for)
{
	want(peer[0]);
	for (unsigned i = 0; i <= NEXT_HOP_WAITING; i++)
		ck_assert_int_eq(next_hop_wait(&hop, 0, make(i, peer[0], NULL)),
				 i < NEXT_HOP_WAITING);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("next_hop");
	TCase *tc = tcase_create("hop");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, a_known_neighbour_gets_the_frame, 0, 2);
	tcase_add_loop_test(tc, what_nobody_asked_for_goes_by_its_own_mac_or_not_at_all, 0, 2);
	tcase_add_loop_test(tc, frames_wait_in_order_until_the_neighbour_answers, 0, 2);
	tcase_add_test(tc, an_answer_that_comes_meanwhile_is_not_missed);
	tcase_add_test(tc, patience_ends_after_a_second_for_each_frame);
	tcase_add_test(tc, no_more_wait_than_there_is_room_for);
	suite_add_tcase(s, tc);
	return s;
}
