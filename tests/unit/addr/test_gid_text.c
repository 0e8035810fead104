/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/addr/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tests/support/ck_main.h"

START_TEST(a_gid_is_written_as_sysfs_does)
{
	uint8_t gid[GID_LEN];
	char buf[GID_TEXT_LEN];

	ck_assert_int_eq(gid_parse("fe80::55:52ff:fe4f:1", gid), 0);
	ck_assert_ptr_eq(gid_format(gid, buf), buf);
	ck_assert_str_eq(buf, "fe80:0000:0000:0000:0055:52ff:fe4f:0001");
	ck_assert_int_eq(gid_parse("198.18.0.1", gid), 0);
	ck_assert_str_eq(gid_format(gid, buf), "0000:0000:0000:0000:0000:ffff:c612:0001");
}
END_TEST

/* The C library is the judge of what an IPv6 address is. */
static const char *const texts[] = {
	"::",
	"::1",
	"1::",
	"fe80::1",
	"1:2:3:4:5:6:7:8",
	"1:2:3:4:5:6:7::",
	"::2:3:4:5:6:7:8",
	"1::8",
	"ABCD:ef01::",
	"0001:0002::",
	"::ffff:1.2.3.4",
	"1:2:3:4:5:6:1.2.3.4",
	"::1.2.3.4",
	"",
	":",
	":::",
	"1",
	"1:",
	":1",
	"1:2",
	"1::2::3",
	"::1::",
	"12345::",
	"g::",
	"1:2:3:4:5:6:7",
	"1:2:3:4:5:6:7:8:9",
	"1:2:3:4:5:6:7:8::",
	"1:2:3:4:5:6:7:",
	"::1:",
	"1::2:",
	" ::1",
	"::1 ",
	"::1.2.3",
	"::1.2.3.4.5",
	"::1.2.3.256",
	"::1.2.3.04",
	"1:2:3:4:5:6:7:1.2.3.4",
	"1.2.3.4::",
	"::1.2.3.4:5",
	"::.1.2.3",
	"fe80::1%eth0",
	"0:0:0:0:0:0:0:0",
	"::0:0:0:0:0:0:0",
	"0:0:0:0:0:0:0::",
	"1:2:3:4::5:6:7:8",
};
#define N_TEXTS ((int)(sizeof(texts) / sizeof(texts[0])))

START_TEST(an_ipv6_address_is_what_the_c_library_takes)
{
	uint8_t gid[GID_LEN], want[GID_LEN];

	memset(gid, 0xa5, sizeof(gid));
	if (inet_pton(AF_INET6, texts[_i], want) == 1) {
		ck_assert_msg(gid_parse(texts[_i], gid) == 0, "\"%s\"", texts[_i]);
	} else {
		memset(want, 0xa5, sizeof(want));
		ck_assert_msg(gid_parse(texts[_i], gid) == -EINVAL, "\"%s\"", texts[_i]);
	}
	ck_assert_msg(!memcmp(gid, want, GID_LEN), "\"%s\"", texts[_i]);
}
END_TEST

/* Texts made of an address's letters: both agree, whatever comes. */
START_TEST(random_texts_are_judged_alike)
{
	static const char letters[] = "::::..0123af";
	uint64_t seed = ck_seed() + (uint64_t)_i;

	for (int round = 0; round < 20000; round++) {
		uint8_t gid[GID_LEN], want[GID_LEN], v4[4];
		unsigned len = ck_below(&seed, 24);
		char text[32];
		bool ok;

		for (unsigned i = 0; i < len; i++)
			text[i] = letters[ck_below(&seed, sizeof(letters) - 1)];
		text[len] = '\0';
		ok = inet_pton(AF_INET6, text, want) == 1;
		if (!ok && inet_pton(AF_INET, text, v4) == 1) {
			gid_from_ipv4(want, v4);
			ok = true;
		}
		ck_assert_msg((gid_parse(text, gid) == 0) == ok, "\"%s\"", text);
		ck_assert_msg(!ok || !memcmp(gid, want, GID_LEN), "\"%s\"", text);
	}
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
	uint64_t seed = ck_seed();
	char buf[GID_TEXT_LEN];

	for (int round = 0; round < 1000; round++) {
		uint8_t gid[GID_LEN], back[GID_LEN];

		for (unsigned i = 0; i < GID_LEN; i++)
			gid[i] = (uint8_t)ck_rand(&seed);
		ck_assert_int_eq(gid_parse(gid_format(gid, buf), back), 0);
		ck_assert_mem_eq(back, gid, GID_LEN);
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("gid_text");
	TCase *tc = tcase_create("text");

	tcase_add_test(tc, a_gid_is_written_as_sysfs_does);
	tcase_add_loop_test(tc, an_ipv6_address_is_what_the_c_library_takes, 0, N_TEXTS);
	tcase_add_loop_test(tc, random_texts_are_judged_alike, 0, 4);
	tcase_add_test(tc, what_is_written_is_read_back);
	suite_add_tcase(s, tc);
	return s;
}
