/* SPDX-License-Identifier: BSD-3-Clause */
/* Every captured frame is accepted, its ICRC included, and comes out of packet_build as it went in.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/packet.h"
#include "fabric/wire/rocev2.h"
#include "tests/support/ck_main.h"
#include "tests/support/frame_make.h"
#include "tests/support/pcap_read.h"

static glob_t files;

/* The one frame that was sent with a wrong ICRC, see vectors/README.md. */
static bool is_broken_on_purpose(const char *path, unsigned frame)
{
	return frame == 9 && strstr(path, "/81_userspace_python_requester_vs_rxe.pcap");
}

/* Templates write identification 0; captures count up. */
static void set_ip_id(struct net_template *t, uint16_t id)
{
	struct ipv4_hdr *ip = (struct ipv4_hdr *)(t->bytes + t->l3_off);

	if (!t->is_ipv4)
		return;
	ip->id = be16_make(id);
	ip->checksum = be16_make(0);
	ip->checksum = be16_make(ipv4_checksum(ip));
}

static void rebuild(const struct packet *pk, struct frame *f)
{
	struct net_template t;

	net_template_build(&t, &pk->net);
	set_ip_id(&t, pk->ip_id);
	f->n_segs = pk->n_segs;
	memcpy(f->seg, pk->seg, sizeof(f->seg));
	packet_build(pk, &t, f);
}

static void check_frame(const char *path, unsigned n, uint8_t *bytes, uint32_t len)
{
	struct frame in = frame_flat(bytes, len), out;
	enum packet_verdict expect =
		is_broken_on_purpose(path, n) ? PACKET_BAD_ICRC : PACKET_OK;
	uint8_t flat[PCAP_SNAP];
	struct frame_room room;
	struct packet pk, again;
	enum packet_verdict v = packet_parse(&pk, &in, true);

	ck_assert_msg(v == expect, "%s frame %u: %s", path, n, packet_verdict_name[v]);
	if (expect != PACKET_OK)
		return;
	out = frame_empty(&room);
	rebuild(&pk, &out);
	ck_assert_msg(frame_len(&out) == len, "%s frame %u: %u bytes", path, n, frame_len(&out));
	frame_bytes(&out, flat);
	ck_assert_msg(!memcmp(flat, bytes, len), "%s frame %u differs", path, n);
	ck_assert_int_eq(packet_parse(&again, &out, true), PACKET_OK);
	ck_assert_uint_eq(again.icrc, pk.icrc);
	ck_assert_uint_eq(again.payload_len, pk.payload_len);
}

START_TEST(every_captured_frame_decodes_and_encodes_to_the_same_bytes)
{
	const char *path = files.gl_pathv[_i];
	struct pcap_reader r;
	unsigned n = 0;
	int rc;

	ck_assert_msg(pcap_open(&r, path) == 0, "cannot read %s", path);
	while ((rc = pcap_next(&r)) == 1) {
		uint8_t *exact = malloc(r.len); /* its own size, for the address sanitizer */

		memcpy(exact, r.bytes, r.len);
		check_frame(path, ++n, exact, r.len);
		free(exact);
	}
	ck_assert_msg(rc == 0, "%s is damaged", path);
	ck_assert_msg(n > 0, "%s is empty", path);
	pcap_close(&r);
}
END_TEST

START_TEST(the_captures_are_all_here)
{
	ck_assert_uint_ge(files.gl_pathc, 60);
}
END_TEST

/* Fields of a few frames, as the script that made the capture gave them. */
START_TEST(decoded_fields_are_what_the_sender_meant)
{
	struct packet pk;
	struct pcap_reader r;
	struct frame f;

	ck_assert_int_eq(pcap_open(&r, VECTORS_DIR "/rxe/06_rc_atomic.pcap"), 0);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(pcap_next(&r), 1);
	f = frame_flat(r.bytes, r.len);
	ck_assert_int_eq(packet_parse(&pk, &f, true), PACKET_OK);
	ck_assert_uint_eq(pk.opcode, BTH_CMP_SWAP);
	ck_assert_uint_eq(pk.dest_qpn, 0x48);
	ck_assert_uint_eq(pk.psn, 0x102);
	ck_assert(pk.ack_req && !pk.solicited && !pk.mig_req);
	ck_assert_uint_eq(pk.pkey, 0xffff);
	ck_assert_uint_eq(pk.va, 0x7fe88a9de000);
	ck_assert_uint_eq(pk.rkey, 0x3906);
	ck_assert_uint_eq(pk.compare, 12);
	ck_assert_uint_eq(pk.swap_add, 0x1122334455667788);
	ck_assert_uint_eq(pk.payload_len, 0);
	ck_assert_mem_eq(pk.net.dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\xa8\x4d\x03", 16);
	ck_assert_uint_eq(pk.net.udp_sport, roce_udp_sport(0, 0x41, 0x48));
	pcap_close(&r);
}
END_TEST

static void add_glob(const char *pattern, const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, pattern);
	glob(path, files.gl_pathc ? GLOB_APPEND : 0, NULL, &files);
}

Suite *suite_make(void)
{
	Suite *s = suite_create("traces");
	TCase *tc = tcase_create("captures");
	const char *more = getenv("UROCE_TRACES");

	add_glob("*/*.pcap", VECTORS_DIR);
	if (more && *more)
		add_glob("*.pcap", more);
	tcase_add_test(tc, the_captures_are_all_here);
	tcase_add_loop_test(tc, every_captured_frame_decodes_and_encodes_to_the_same_bytes, 0,
			    (int)files.gl_pathc);
	tcase_add_test(tc, decoded_fields_are_what_the_sender_meant);
	suite_add_tcase(s, tc);
	return s;
}
