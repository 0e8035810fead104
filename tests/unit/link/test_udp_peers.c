/* SPDX-License-Identifier: BSD-3-Clause */
/* A UDP link and peers that are not ours: plain sockets, which may say anything. */
#include "fabric/link/link_udp.h"

#include <arpa/inet.h>
#include <errno.h>

#include "fabric/wire/icrc.h"
#include "fabric/wire/rocev2.h"
#include "tests/support/frame_make.h"
#include "tests/unit/link/udp_rig.h"

/* A socket of the test's own on an address of the namespace, port 4791, without GRO. */
static int plain_socket(const char *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, addr, &in.sin_addr);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

/* The kernel cuts for a receiver without GRO; segment i then has identification i. */
START_TEST(a_receiver_that_sees_headers_finds_identification_i_in_the_icrc)
{
	struct net_path path = path_between(false, A, B);
	struct link_port *a = port[A][0];
	uint8_t bytes[8192];
	struct frame *f[20];
	int fd;

	NEED_NETNS();
	gid_parse("127.0.0.3", path.dgid);
	fd = plain_socket("127.0.0.3");
	for (unsigned i = 0; i < 20; i++)
		f[i] = make_on(a, &path, BTH_SEND_ONLY, 2, i, i == 19 ? 8 : 900);
	a->ops->tx(a, 0, f, 20);
	for (unsigned i = 0; i < 20; i++) {
		struct net_template t;
		struct frame flat;
		struct packet pk;
		ssize_t n;

		net_template_build(&t, &path);
		n = recv(fd, bytes + t.len, sizeof(bytes) - t.len, MSG_DONTWAIT);
		ck_assert_int_gt(n, 0);
		roce_outer_build(bytes, &t, (uint32_t)n);
		flat = frame_flat(bytes, t.len + (uint32_t)n);
		flat.is_ip_id_guessed = true;
		ck_assert_int_eq(packet_parse(&pk, &flat, true), PACKET_OK);
		ck_assert_uint_eq(pk.ip_id, i);
		ck_assert_uint_eq(pk.psn, i);
	}
	close(fd);
}
END_TEST

static void send_plain(int fd, const void *p, size_t n)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };

	inet_pton(AF_INET, address[0][B], &to.sin_addr);
	ck_assert_int_eq(sendto(fd, p, n, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)n);
}

/* The datagram of a packet that 127.0.0.3 would send with this identification. */
static uint32_t foreign(uint8_t *out, uint16_t id)
{
	struct net_path path = path_between(false, A, B);
	struct frame_room room;
	struct frame f = frame_empty(&room);
	struct packet pk = { .opcode = BTH_SEND_ONLY, .dest_qpn = 2, .psn = 5, .payload_len = 333 };
	struct net_template t;
	struct ipv4_hdr *ip;
	uint8_t bytes[8192];
	uint32_t n, icrc;

	gid_parse("127.0.0.3", path.sgid);
	f.n_segs = 1;
	f.seg[0] = (struct frame_seg) { f.buf, 333 };
	for (uint32_t i = 0; i < 333; i++)
		f.buf[i] = (uint8_t)(5 * 7 + i);
	net_template_build(&t, &path);
	packet_build(&pk, &t, &f);
	ip = (struct ipv4_hdr *)(f.head + t.l3_off);
	ip->id = be16_make(id);
	icrc = icrc_frame(&f, t.l3_off, frame_len(&f) - t.l3_off - ICRC_LEN);
	n = frame_bytes(&f, bytes);
	memcpy(bytes + n - 4, &icrc, 4);
	memcpy(out, bytes + t.len, n - t.len);
	return n - t.len;
}

START_TEST(a_peer_that_counts_identifications_is_accepted_and_damage_is_not)
{
	struct link_port *b = port[B][0];
	uint8_t bytes[8192];
	struct packet pk;
	struct frame *f;
	uint32_t n;
	int fd;

	NEED_NETNS();
	fd = plain_socket("127.0.0.3");
	n = foreign(bytes, 0xbeef);
	send_plain(fd, bytes, n);
	receive(b, &f, 1);
	assert_is(f, 5, 333);
	packet_parse(&pk, f, true);
	ck_assert_uint_eq(pk.ip_id, 0xbeef);
	b->ops->free(b, &f, 1);
	bytes[40] ^= 1;
	send_plain(fd, bytes, n);
	receive(b, &f, 1);
	ck_assert_int_eq(packet_parse(&pk, f, true), PACKET_BAD_ICRC);
	b->ops->free(b, &f, 1);
	close(fd);
}
END_TEST

START_TEST(what_is_no_packet_is_dropped_by_name_or_left_to_the_parser)
{
	struct link_port *b = port[B][0];
	static uint8_t bytes[20000];
	struct packet pk;
	struct frame *f;
	int fd;

	NEED_NETNS();
	fd = plain_socket("127.0.0.3");
	send_plain(fd, bytes, 0);
	send_plain(fd, bytes, 11); /* less than a BTH */
	send_plain(fd, bytes, 20000);
	while (drops(b, LINK_DROP_TOO_LONG) != 1)
		assert_nothing_comes(b);
	ck_assert_uint_eq(drops(b, LINK_DROP_RUNT), 2);
	for (uint32_t n = 12; n < 80; n++) {
		memset(bytes, (int)n, sizeof(bytes));
		memset(bytes + 4, 0, 4); /* QPN 0: worker 0 */
		send_plain(fd, bytes, n);
		receive(b, &f, 1);
		ck_assert_int_ne(packet_parse(&pk, f, true), PACKET_OK);
		b->ops->free(b, &f, 1);
	}
	close(fd);
}
END_TEST

START_TEST(addresses_come_and_go_while_the_link_is_open)
{
	struct link_udp_addr a = parse("127.0.0.5");
	struct net_path path = path_between(false, A, B);
	struct link_udp_socks *s;
	struct frame *f;

	NEED_NETNS();
	ck_assert_int_eq(link_udp_open(the_link[B], &a, &s), 0);
	for (unsigned w = 0; w < WORKERS; w++)
		ck_assert_int_eq(link_udp_attach(port[B][w], s), 0);
	link_udp_opened(s);
	ck_assert_int_eq(link_udp_open(the_link[B], &a, &s), -EEXIST);
	gid_parse("127.0.0.5", path.dgid);
	f = make_on(port[A][0], &path, BTH_SEND_ONLY, 0, 7, 100);
	port[A][0]->ops->tx(port[A][0], 0, &f, 1);
	receive(port[B][0], &f, 1);
	assert_is(f, 7, 100);
	port[B][0]->ops->free(port[B][0], &f, 1);

	/* The others stay: what was the last takes the place of the first. */
	gid_parse(address[0][B], a.gid);
	for (unsigned w = 0; w < WORKERS; w++)
		link_udp_detach(port[B][w], a.gid);
	f = make_on(port[A][0], &path, BTH_SEND_ONLY, 0, 8, 100);
	port[A][0]->ops->tx(port[A][0], 0, &f, 1);
	receive(port[B][0], &f, 1);
	assert_is(f, 8, 100);
	port[B][0]->ops->free(port[B][0], &f, 1);
	f = make(false, 0, 9, 100);
	port[A][0]->ops->tx(port[A][0], 0, &f, 1);
	assert_nothing_comes(port[B][0]);
	ck_assert_int_eq(link_udp_open(the_link[B], &a, &s), 0); /* the port is free again */
	link_udp_opened(s);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("udp_peers");
	TCase *tc = tcase_create("udp");

	tcase_add_unchecked_fixture(tc, netns_once, NULL);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_receiver_that_sees_headers_finds_identification_i_in_the_icrc);
	tcase_add_test(tc, a_peer_that_counts_identifications_is_accepted_and_damage_is_not);
	tcase_add_test(tc, what_is_no_packet_is_dropped_by_name_or_left_to_the_parser);
	tcase_add_test(tc, addresses_come_and_go_while_the_link_is_open);
	suite_add_tcase(s, tc);
	return s;
}
