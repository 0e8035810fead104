/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/config_device.h"

#include <string.h>

#include "dataplane/daemon/device_net.h"
#include "tests/support/ck_main.h"

static struct config_device parse(const char *text, unsigned index)
{
	struct config_device c;
	struct config_error e = { "" };
	int err = config_device_parse(&c, text, &e);

	if (!err)
		err = config_device_check(&c, index, &e);
	ck_assert_msg(!err, "%s: %s", text, e.text);
	return c;
}

START_TEST(every_word_sets_its_field)
{
	struct config_device c = parse("name=left,link=udp,addr=192.0.2.1,mtu=1500", 3);

	ck_assert_str_eq(c.name, "left");
	ck_assert_int_eq(c.link, LINK_UDP);
	ck_assert_str_eq(c.addr, "192.0.2.1");
	ck_assert_uint_eq(c.mtu, 1500);
	c = parse("link=packet,interface=eth0", 3);
	ck_assert_str_eq(c.name, "uroce3");
	ck_assert_int_eq(c.link, LINK_PACKET);
	ck_assert_str_eq(c.interface, "eth0");
	ck_assert(!c.congestion);
	ck_assert(parse("link=switch,congestion=dcqcn", 0).congestion);
	ck_assert(!parse("link=switch,congestion=off", 0).congestion);
	c = parse("link=udp,addr=fd00::1", 0);
	ck_assert_str_eq(c.addr, "fd00::1");
}
END_TEST

START_TEST(an_uplink_is_the_link_of_a_device_that_is_on_the_switch)
{
	struct config_device c = parse("link=switch,uplink=packet,interface=eth0", 0);

	ck_assert_int_eq(c.link, LINK_PACKET);
	ck_assert(c.is_switched);
	c = parse("uplink=dpdk,addr=192.0.2.1,devargs=net_memif0,id=1", 0);
	ck_assert_int_eq(c.link, LINK_DPDK);
	ck_assert(c.is_switched);
	ck_assert(!parse("link=udp,addr=192.0.2.1", 0).is_switched);
	ck_assert(!parse("link=switch", 0).is_switched);
}
END_TEST

START_TEST(devargs_take_the_rest_with_its_commas)
{
	struct config_device c = parse("link=dpdk,mtu=4200,devargs=net_memif0,role=server,id=1", 0);

	ck_assert_int_eq(c.link, LINK_DPDK);
	ck_assert_str_eq(c.devargs, "net_memif0,role=server,id=1");
	ck_assert_uint_eq(c.mtu, 4200);
}
END_TEST

/* What is wrong, and a word that the sentence about it must have. */
static const struct {
	const char *text, *word;
} wrong[] = {
	{ "", "KEY=VALUE" },
	{ "link", "KEY=VALUE" },
	{ "link=udp,,addr=127.0.0.1", "KEY=VALUE" },
	{ "link,addr=127.0.0.1", "KEY=VALUE" },
	{ "color=red", "color" },
	{ "link=wire", "wire" },
	{ "link=", "link" },
	{ "name=,link=switch", "name" },
	{ "name=9x,link=switch", "9x" },
	{ "name=a/b,link=switch", "a/b" },
	{ "link=udp", "either" },
	{ "link=udp,addr=127.0.0.1,interface=lo", "either" },
	{ "link=udp,addr=300.0.0.1", "300.0.0.1" },
	{ "link=udp,addr=224.0.0.1", "224.0.0.1" },
	{ "link=udp,addr=::", "addr" },
	{ "link=udp,addr=127.0.0.1,mtu=100", "mtu" },
	{ "link=udp,addr=127.0.0.1,mtu=65536", "mtu" },
	{ "link=udp,addr=127.0.0.1,mtu=1500x", "mtu" },
	{ "link=udp,interface=averyverylongname", "too long" },
	{ "link=packet", "interface" },
	{ "link=packet,interface=eth0,addr=127.0.0.1", "addr" },
	{ "link=switch,interface=eth0", "interface" },
	{ "link=switch,addr=192.0.2.1", "without an uplink" },
	{ "link=switch,devargs=net_ring0", "without an uplink" },
	{ "link=switch,uplink=switch", "uplink" },
	{ "link=switch,uplink=", "uplink" },
	{ "link=udp,uplink=udp,addr=127.0.0.1", "a udp link has no uplink" },
	{ "uplink=udp", "either" },
	{ "uplink=packet", "interface" },
	{ "uplink=dpdk", "devargs" },
	{ "link=switch,congestion=on", "dcqcn" },
	{ "link=dpdk", "devargs" },
	{ "link=udp,addr=127.0.0.1,devargs=x", "devargs" },
};
#define N_WRONG ((int)(sizeof(wrong) / sizeof(wrong[0])))

START_TEST(what_is_wrong_is_said)
{
	struct config_device c;
	struct config_error e = { "" };
	int err = config_device_parse(&c, wrong[_i].text, &e);

	if (!err)
		err = config_device_check(&c, 0, &e);
	ck_assert_int_lt(err, 0);
	ck_assert_msg(strstr(e.text, wrong[_i].word), "%s", e.text);
}
END_TEST

START_TEST(a_text_without_end_is_refused)
{
	char text[5000] = "name=";
	struct config_device c;
	struct config_error e;

	memset(text + 5, 'a', sizeof(text) - 6);
	text[sizeof(text) - 1] = 0;
	ck_assert_int_lt(config_device_parse(&c, text, &e), 0);
	text[5 + 200] = 0;
	ck_assert_int_lt(config_device_parse(&c, text, &e), 0);
}
END_TEST

static const struct {
	uint32_t ip_mtu, path_mtu;
} mtu[] = {
	{ 351, 0 },     { 352, 256 },   { 576, 256 },    { 1499, 1024 }, { 1500, 1024 },
	{ 1119, 512 },  { 2143, 1024 }, { 2144, 2048 },  { 4191, 2048 }, { 4192, 4096 },
	{ 4200, 4096 }, { 9000, 4096 }, { 65536, 4096 },
};
#define N_MTU ((int)(sizeof(mtu) / sizeof(mtu[0])))

START_TEST(the_path_mtu_is_what_fits_with_all_headers)
{
	ck_assert_uint_eq(device_path_mtu(mtu[_i].ip_mtu), mtu[_i].path_mtu);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("config_device");
	TCase *tc = tcase_create("config_device");

	tcase_add_test(tc, every_word_sets_its_field);
	tcase_add_test(tc, an_uplink_is_the_link_of_a_device_that_is_on_the_switch);
	tcase_add_test(tc, devargs_take_the_rest_with_its_commas);
	tcase_add_loop_test(tc, what_is_wrong_is_said, 0, N_WRONG);
	tcase_add_test(tc, a_text_without_end_is_refused);
	tcase_add_loop_test(tc, the_path_mtu_is_what_fits_with_all_headers, 0, N_MTU);
	suite_add_tcase(s, tc);
	return s;
}
