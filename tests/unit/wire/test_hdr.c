/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/hdr.h"

#include "tests/support/ck_main.h"

START_TEST(bth_fields_lie_where_the_specification_puts_them)
{
	/* CmpSwap of service RC, SE, MigReq, pad 2, TVer 5, pkey, FECN, QPN, AckReq, PSN */
	static const uint8_t bytes[12] = { 0x13, 0xe5, 0x12, 0x34, 0xbf, 0xab,
					   0xcd, 0xef, 0xff, 0x01, 0x02, 0x03 };
	const struct bth *h = (const struct bth *)bytes;

	ck_assert_uint_eq(h->opcode, 0x13);
	ck_assert(h->flags & BTH_SE);
	ck_assert(h->flags & BTH_MIGREQ);
	ck_assert_uint_eq(bth_pad(h), 2);
	ck_assert_uint_eq(bth_tver(h), 5);
	ck_assert_uint_eq(be16_get(h->pkey), 0x1234);
	ck_assert(be32_get(h->fecn_qpn) & BTH_FECN);
	ck_assert(!(be32_get(h->fecn_qpn) & BTH_BECN));
	ck_assert_uint_eq(bth_dest_qpn(h), 0xabcdef);
	ck_assert(be32_get(h->ack_psn) & BTH_ACKREQ);
	ck_assert_uint_eq(bth_psn(h), 0x010203);
}
END_TEST

START_TEST(reserved_bits_are_in_no_field)
{
	static const uint8_t bytes[12] = { [4] = 0x3f, [8] = 0x7f };
	const struct bth *h = (const struct bth *)bytes;

	ck_assert_uint_eq(bth_dest_qpn(h), 0);
	ck_assert_uint_eq(bth_psn(h), 0);
	ck_assert_uint_eq(be32_get(h->fecn_qpn) & (BTH_FECN | BTH_BECN), 0);
	ck_assert_uint_eq(be32_get(h->ack_psn) & BTH_ACKREQ, 0);
}
END_TEST

START_TEST(no_layout_needs_alignment)
{
	ck_assert_uint_eq(_Alignof(struct eth_hdr), 1);
	ck_assert_uint_eq(_Alignof(struct ipv4_hdr), 1);
	ck_assert_uint_eq(_Alignof(struct ipv6_hdr), 1);
	ck_assert_uint_eq(_Alignof(struct bth), 1);
	ck_assert_uint_eq(_Alignof(struct reth), 1);
	ck_assert_uint_eq(_Alignof(struct atomiceth), 1);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("hdr");
	TCase *tc = tcase_create("layout");

	tcase_add_test(tc, bth_fields_lie_where_the_specification_puts_them);
	tcase_add_test(tc, reserved_bits_are_in_no_field);
	tcase_add_test(tc, no_layout_needs_alignment);
	suite_add_tcase(s, tc);
	return s;
}
