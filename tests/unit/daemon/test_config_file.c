/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/ck_main.h"

static int read_text(struct config *c, const char *text, struct config_error *e)
{
	char path[] = "/tmp/uroce-test-XXXXXX";
	int fd = mkstemp(path), err;

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	*c = (struct config) { .n_workers = 1, .check_icrc = true };
	err = config_file_read(c, path, e);
	ck_assert(!err || strstr(e->text, path));
	unlink(path);
	return err;
}

START_TEST(a_file_sets_what_it_says_and_nothing_else)
{
	struct config_error e;
	struct config c;
	int err = read_text(&c,
			    "{ \"workers\": 2, \"check_icrc\": false, \"log_level\": \"info\","
			    "  \"devices\": ["
			    "    { \"name\": \"a\", \"link\": \"udp\", \"addr\": \"192.0.2.1\" },"
			    "    { \"link\": \"packet\", \"interface\": \"eth0\", \"mtu\": 1500 },"
			    "    {} ] }",
			    &e);

	ck_assert_msg(!err, "%s", e.text);
	ck_assert_uint_eq(c.n_workers, 2);
	ck_assert(!c.check_icrc);
	ck_assert_int_eq(c.log_level, LOG_LEVEL_INFO);
	ck_assert_uint_eq(c.n_devices, 3);
	ck_assert_str_eq(c.device[0].name, "a");
	ck_assert_int_eq(c.device[0].link, LINK_UDP);
	ck_assert_str_eq(c.device[0].addr, "192.0.2.1");
	ck_assert_int_eq(c.device[1].link, LINK_PACKET);
	ck_assert_uint_eq(c.device[1].mtu, 1500);
	ck_assert_int_eq(c.device[2].link, LINK_SWITCH);
	ck_assert_int_eq(read_text(&c, "{}", &e), 0);
	ck_assert_uint_eq(c.n_devices, 0);
	ck_assert_uint_eq(c.n_workers, 1);
	ck_assert(c.check_icrc);
}
END_TEST

static const struct {
	const char *text, *word;
} wrong[] = {
	{ "", ":1:" },
	{ "{ \"workers\": 1, }", ":1:" },
	{ "{ \"workers\": 1, \"workers\": 2 }", "workers" },
	{ "[]", "object" },
	{ "{ \"worker\": 1 }", "worker" },
	{ "{ \"workers\": 0 }", "workers" },
	{ "{ \"workers\": \"2\" }", "workers" },
	{ "{ \"workers\": 17 }", "workers" },
	{ "{ \"check_icrc\": 1 }", "check_icrc" },
	{ "{ \"log_level\": \"loud\" }", "log_level" },
	{ "{ \"devices\": {} }", "devices" },
	{ "{ \"devices\": [] }", "devices" },
	{ "{ \"devices\": [ 1 ] }", "object" },
	{ "{ \"devices\": [ { \"link\": \"wire\" } ] }", "wire" },
	{ "{ \"devices\": [ { \"link\": 7 } ] }", "link" },
	{ "{ \"devices\": [ { \"mtu\": 7 } ] }", "mtu" },
	{ "{ \"devices\": [ {},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{} ] }", "16" },
};
#define N_WRONG ((int)(sizeof(wrong) / sizeof(wrong[0])))

START_TEST(what_is_wrong_is_said_and_nothing_is_set)
{
	struct config_error e = { "" };
	struct config c;

	ck_assert_int_eq(read_text(&c, wrong[_i].text, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, wrong[_i].word), "%s", e.text);
	ck_assert_uint_eq(c.n_workers, 1);
	ck_assert_uint_eq(c.n_devices, 0);
}
END_TEST

START_TEST(no_file_is_no_entry)
{
	struct config_error e;
	struct config c;

	ck_assert_int_eq(config_file_read(&c, "/nonexistent/uroce.conf", &e), -ENOENT);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("config_file");
	TCase *tc = tcase_create("config_file");

	tcase_add_test(tc, a_file_sets_what_it_says_and_nothing_else);
	tcase_add_loop_test(tc, what_is_wrong_is_said_and_nothing_is_set, 0, N_WRONG);
	tcase_add_test(tc, no_file_is_no_entry);
	suite_add_tcase(s, tc);
	return s;
}
