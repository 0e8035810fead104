/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/be.h"

#include "tests/support/ck_main.h"

START_TEST(most_significant_byte_comes_first)
{
	ck_assert_mem_eq(be16_make(0x0102).b, "\x01\x02", 2);
	ck_assert_mem_eq(be32_make(0x01020304).b, "\x01\x02\x03\x04", 4);
	ck_assert_mem_eq(be64_make(0x0102030405060708).b, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
}
END_TEST

START_TEST(what_was_made_is_got_back)
{
	uint64_t state = ck_seed();

	for (int i = 0; i < 1000; i++) {
		uint64_t v = ck_rand(&state);

		ck_assert_uint_eq(be16_get(be16_make((uint16_t)v)), (uint16_t)v);
		ck_assert_uint_eq(be32_get(be32_make((uint32_t)v)), (uint32_t)v);
		ck_assert_uint_eq(be64_get(be64_make(v)), v);
	}
}
END_TEST

START_TEST(any_address_will_do)
{
	uint8_t bytes[16];
	be64 *p = (be64 *)(bytes + 1 + _i);

	*p = be64_make(0x1122334455667788);
	ck_assert_uint_eq(be64_get(*p), 0x1122334455667788);
	ck_assert_uint_eq(bytes[1 + _i], 0x11);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("be");
	TCase *tc = tcase_create("scalars");

	tcase_add_test(tc, most_significant_byte_comes_first);
	tcase_add_test(tc, what_was_made_is_got_back);
	tcase_add_loop_test(tc, any_address_will_do, 0, 7);
	suite_add_tcase(s, tc);
	return s;
}
