/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/rocev2.h"

#include "tests/unit/wire/sample.h"

/* From captures of Linux: the port of a pair depends on both QPNs alike, or on a given flow label.
 */
static const struct {
	uint32_t flow_label, local, remote;
	uint16_t sport;
} sports[] = {
	{ 0, 0x38, 0x3f, 52680 },
	{ 0, 0x3f, 0x38, 52680 },
	{ 0, 0x41, 0x48, 53832 },
	{ 0x12345, 0x5a, 0x61, 58177 },
	{ 0x12345, 0, 0, 58177 },
	{ 0, 0, 0, 0xc000 },
	{ 0xfffff, 1, 1, 0xc000 | (0x3fff ^ 0x3f) },
	{ 0x100000, 0, 0, 0xc000 },             /* more than 20 bits: not a flow label */
};

START_TEST(the_source_port_is_the_one_linux_computes)
{
	ck_assert_uint_eq(
		roce_udp_sport(sports[_i].flow_label, sports[_i].local, sports[_i].remote),
		sports[_i].sport);
}
END_TEST

/* fold20 of the full 48-bit product, as in the kernel's header. */
START_TEST(large_qpns_fold_their_whole_product)
{
	uint64_t v = 0xfffffeull * 0xabcdefull;
	uint32_t fl;

	v ^= v >> 20;
	v ^= v >> 40;
	fl = (uint32_t)(v & 0xfffff);
	ck_assert_uint_eq(roce_udp_sport(0, 0xfffffe, 0xabcdef),
			  ((fl & 0x3fff) ^ ((fl & 0xfc000) >> 14)) | 0xc000);
}
END_TEST

START_TEST(the_ipv4_checksum_is_the_one_of_rfc_1071)
{
	static const uint8_t header[20] = { 0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40,
					    0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
					    0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7 };
	struct ipv4_hdr h;

	memcpy(&h, header, sizeof(h));
	ck_assert_uint_eq(ipv4_checksum(&h), 0);
	h.checksum = be16_make(0);
	ck_assert_uint_eq(ipv4_checksum(&h), 0xb861);
}
END_TEST

START_TEST(a_template_says_all_of_its_path)
{
	enum sample_net net = (enum sample_net)_i;
	struct net_path path = sample_path(net);
	bool v4 = path.is_ipv4, tagged = path.vlan != NET_NO_VLAN;
	struct net_template t;
	const uint8_t *p;

	net_template_build(&t, &path);
	ck_assert_uint_eq(t.l3_off, tagged ? 18 : 14);
	ck_assert_uint_eq(t.len, t.l3_off + (v4 ? 20 : 40) + 8);
	ck_assert_uint_eq(t.is_ipv4, v4);
	ck_assert_mem_eq(t.bytes, path.dmac, 6);
	ck_assert_mem_eq(t.bytes + 6, path.smac, 6);
	if (tagged)
		ck_assert_mem_eq(t.bytes + 12, "\x81\x00\x61\x23", 4);
	ck_assert_mem_eq(t.bytes + t.l3_off - 2, v4 ? "\x08\x00" : "\x86\xdd", 2);
	p = t.bytes + t.l3_off;
	if (v4) {
		ck_assert_mem_eq(p, "\x45\x6a\0\0\0\0\x40\0\x11\x11", 10);
		ck_assert_uint_eq(ipv4_checksum((const struct ipv4_hdr *)p), 0);
		ck_assert_mem_eq(p + 12, path.sgid + 12, 4);
		ck_assert_mem_eq(p + 16, path.dgid + 12, 4);
	} else {
		ck_assert_mem_eq(p, "\x66\xaa\xbc\xde\0\0\x11\x11", 8);
		ck_assert_mem_eq(p + 8, path.sgid, 16);
		ck_assert_mem_eq(p + 24, path.dgid, 16);
	}
	ck_assert_mem_eq(t.bytes + t.len - 8, "\xd1\x23\x12\xb7\0\0\0\0", 8);
}
END_TEST

START_TEST(lengths_and_checksum_are_filled_for_each_packet)
{
	enum sample_net net = (enum sample_net)_i;
	struct net_path path = sample_path(net), back = { 0 };
	struct net_template t;
	struct roce_outer o;
	uint8_t bytes[128 + 300] = { 0 };
	struct frame f;
	uint16_t id;

	net_template_build(&t, &path);
	roce_outer_build(bytes, &t, 300);
	f = frame_flat(bytes, t.len + 300u);
	ck_assert_int_eq(roce_outer_parse(&f, &o, &back, &id), PACKET_OK);
	ck_assert_uint_eq(o.l3_off, t.l3_off);
	ck_assert_uint_eq(o.bth_off, t.len);
	ck_assert_uint_eq(o.udp_payload, 300);
	ck_assert_uint_eq(o.ip_len, t.len - t.l3_off + 300u);
	ck_assert_uint_eq(id, 0);
	ck_assert_mem_eq(&back, &path, sizeof(path));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("rocev2");
	TCase *tc = tcase_create("outer headers");

	tcase_add_loop_test(tc, the_source_port_is_the_one_linux_computes, 0,
			    sizeof(sports) / sizeof(sports[0]));
	tcase_add_test(tc, large_qpns_fold_their_whole_product);
	tcase_add_test(tc, the_ipv4_checksum_is_the_one_of_rfc_1071);
	tcase_add_loop_test(tc, a_template_says_all_of_its_path, 0, SAMPLE_N_NETS);
	tcase_add_loop_test(tc, lengths_and_checksum_are_filled_for_each_packet, 0, SAMPLE_N_NETS);
	suite_add_tcase(s, tc);
	return s;
}
