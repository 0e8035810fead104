/* SPDX-License-Identifier: BSD-3-Clause */
/* A host without a kernel: what it answers, what it learns, and what it does not fall for. */
#include "fabric/addr/ether_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/rocev2.h"
#include "tests/support/ck_main.h"

#define SECOND 1000000000ull

static struct neigh_table *table;
static struct ether_host us, them;
static uint8_t ask[ETHER_HOST_BYTES], answer[ETHER_HOST_BYTES];
static struct neigh_table tables[2];

static void host(struct ether_host *h, struct neigh_table *t, uint8_t last)
{
	char v4[16], v6[16];

	snprintf(v4, sizeof(v4), "192.0.2.%u", last);
	snprintf(v6, sizeof(v6), "fd00::%u", last);
	memset(t, 0, sizeof(*t));
	*h = (struct ether_host) { .mac = { 2, 0, 0, 0, 0, last }, .n_addrs = 2, .table = t };
	gid_parse(v4, h->addr[0]);
	gid_parse(v6, h->addr[1]);
}

static void setup(void)
{
	host(&us, &tables[0], 1);
	host(&them, &tables[1], 2);
	table = &tables[0];
}

static bool knows(struct ether_host *h, const uint8_t gid[GID_LEN], const uint8_t mac[6])
{
	uint8_t got[6];

	return neigh_lookup(h->table, gid, got) == NEIGH_KNOWN && !memcmp(got, mac, 6);
}

/* A question of ours for address i of theirs, answered, and the answer read: 0 bytes, or more. */
static uint32_t exchange(unsigned i)
{
	uint32_t len = ether_host_ask(&us, SECOND, them.addr[i], ask);

	ck_assert_uint_gt(len, 0);
	len = ether_host_input(&them, SECOND, ask, len, answer);
	if (len)
		ck_assert_uint_eq(ether_host_input(&us, SECOND, answer, len, ask), 0);
	return len;
}

START_TEST(a_question_is_answered_and_the_answer_learned)
{
	us.vlan = them.vlan = _i & 2 ? 7 : 0;
	ck_assert_uint_gt(exchange(_i & 1), 0);
	ck_assert(knows(&us, them.addr[_i & 1], them.mac));
	ck_assert(!knows(&them, us.addr[_i & 1], us.mac)); /* who does not look for us */
}
END_TEST

START_TEST(what_is_asked_of_others_is_not_answered)
{
	them.n_addrs = 0;
	ck_assert_uint_eq(exchange(_i), 0);
	ck_assert(!knows(&us, them.addr[_i], them.mac));
}
END_TEST

START_TEST(an_answer_that_nobody_asked_for_teaches_nothing)
{
	uint32_t len = ether_host_ask(&us, SECOND, them.addr[_i], ask);

	len = ether_host_input(&them, SECOND, ask, len, answer);
	memset(table, 0, sizeof(*table));
	ck_assert_uint_eq(ether_host_input(&us, SECOND, answer, len, ask), 0);
	ck_assert_int_lt(neigh_find(table, them.addr[_i]), 0);
}
END_TEST

START_TEST(a_group_is_no_neighbour)
{
	uint32_t len = ether_host_ask(&us, SECOND, them.addr[_i], ask);
	uint8_t lie[ETHER_HOST_BYTES];

	them.mac[0] |= 1;
	len = ether_host_input(&them, SECOND, ask, len, lie);
	ck_assert_uint_gt(len, 0);
	ck_assert_uint_eq(ether_host_input(&us, SECOND, lie, len, answer), 0);
	lie[6] &= 0xfe; /* the header may say what it likes: the option, or ARP's address, counts */
	ck_assert_uint_eq(ether_host_input(&us, SECOND, lie, len, answer), 0);
	ck_assert(!knows(&us, them.addr[_i], them.mac));
}
END_TEST

START_TEST(a_question_is_repeated_once_a_second_and_given_up)
{
	uint64_t now = SECOND;

	ck_assert_uint_gt(exchange(_i), 0);
	ck_assert_uint_eq(ether_host_ask(&us, now, them.addr[_i], ask), 0);
	for (unsigned n = 0; n < ETHER_HOST_LOST; n++) {
		ck_assert(knows(&us, them.addr[_i], them.mac));
		now += ETHER_HOST_ASK;
		ck_assert_uint_gt(ether_host_ask(&us, now, them.addr[_i], ask), 0);
		ck_assert_uint_eq(ether_host_ask(&us, now + 1, them.addr[_i], ask), 0);
	}
	now += ETHER_HOST_ASK;
	ck_assert_uint_gt(ether_host_ask(&us, now, them.addr[_i], ask), 0);
	ck_assert(!knows(&us, them.addr[_i], them.mac));
}
END_TEST

static uint32_t put_echo(uint8_t *p, uint32_t data)
{
	struct eth_hdr *eth = (struct eth_hdr *)p;
	struct ipv4_hdr *ip = (struct ipv4_hdr *)(eth + 1);
	uint8_t *icmp = (uint8_t *)(ip + 1);
	uint32_t sum = 0, n = 8 + data;

	memcpy(eth->dst, us.mac, 6);
	memcpy(eth->src, them.mac, 6);
	eth->type = be16_make(ETH_TYPE_IPV4);
	*ip = (struct ipv4_hdr) { .ver_ihl = IPV4_VER_IHL, .ttl = 9, .proto = 1 };
	ip->total_len = be16_make((uint16_t)(sizeof(*ip) + n));
	memcpy(ip->src, them.addr[0] + 12, 4);
	memcpy(ip->dst, us.addr[0] + 12, 4);
	ip->checksum = be16_make(ipv4_checksum(ip));
	memset(icmp, 0, 8);
	icmp[0] = 8;
	for (uint32_t i = 0; i < data; i++)
		icmp[8 + i] = (uint8_t)i;
	for (uint32_t i = 0; i < n; i++)
		sum += (uint32_t)icmp[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	icmp[2] = (uint8_t)(~sum >> 8);
	icmp[3] = (uint8_t)~sum;
	return (uint32_t)(sizeof(*eth) + sizeof(*ip)) + n;
}

START_TEST(an_echo_comes_back_with_its_data)
{
	uint32_t len = put_echo(ask, 57);
	const struct ipv4_hdr *ip = (const struct ipv4_hdr *)(answer + sizeof(struct eth_hdr));

	ck_assert_uint_eq(ether_host_input(&us, SECOND, ask, len, answer), len);
	ck_assert_mem_eq(answer, them.mac, 6);
	ck_assert_mem_eq(ip->dst, them.addr[0] + 12, 4);
	ck_assert_uint_eq(ipv4_checksum(ip), 0);
	ck_assert_uint_eq(answer[34], 0);
	ck_assert_mem_eq(answer + 42, ask + 42, 57);
	ask[50] ^= 1; /* a wrong checksum is none of ours to answer */
	ck_assert_uint_eq(ether_host_input(&us, SECOND, ask, len, answer), 0);
}
END_TEST

/* Cut anywhere and damaged anywhere: nothing beyond the bytes is read, nothing too long answered.
 */
START_TEST(nothing_that_arrives_can_harm)
{
	uint8_t made[ETHER_HOST_BYTES];
	uint32_t len =
		_i == 2 ? put_echo(made, 100) : ether_host_ask(&us, SECOND, them.addr[_i], made);

	srand(1);
	for (unsigned n = 0; n < 20000; n++) {
		uint32_t k = n < len ? n : len;
		uint8_t *p = malloc(k ? k : 1);

		memcpy(p, made, k);
		for (unsigned i = 0; n >= len && i < 1 + n % 3; i++)
			p[(unsigned)rand() % k] = (uint8_t)rand();
		ether_host_wants(p, k);
		ck_assert_uint_le(ether_host_input(&us, SECOND, p, k, answer), ETHER_HOST_BYTES);
		ck_assert_uint_le(ether_host_input(&them, SECOND, p, k, answer), ETHER_HOST_BYTES);
		free(p);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("addr/ether_host");
	TCase *c = tcase_create("ether_host");

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_loop_test(c, a_question_is_answered_and_the_answer_learned, 0, 4);
	tcase_add_loop_test(c, what_is_asked_of_others_is_not_answered, 0, 2);
	tcase_add_loop_test(c, an_answer_that_nobody_asked_for_teaches_nothing, 0, 2);
	tcase_add_loop_test(c, a_group_is_no_neighbour, 0, 2);
	tcase_add_loop_test(c, a_question_is_repeated_once_a_second_and_given_up, 0, 2);
	tcase_add_test(c, an_echo_comes_back_with_its_data);
	tcase_add_loop_test(c, nothing_that_arrives_can_harm, 0, 3);
	suite_add_tcase(s, c);
	return s;
}
