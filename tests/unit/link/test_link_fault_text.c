/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/link_fault_rules.h"

#include <errno.h>
#include <string.h>

#include "fabric/wire/opcode.h"
#include "tests/support/ck_main.h"

static struct fault_conf conf;
static char err[128];

static void setup(void)
{
	fault_conf_init(&conf);
}

static int parse(const char *text)
{
	return fault_parse(&conf, text, err, sizeof(err));
}

START_TEST(the_examples_of_the_manual_are_understood)
{
	ck_assert_int_eq(parse("drop=1% reorder=0.1% seed=7"), 0);
	ck_assert_uint_eq(conf.chance[FAULT_DROP], FAULT_CERTAIN / 100);
	ck_assert_uint_eq(conf.chance[FAULT_REORDER], FAULT_CERTAIN / 1000);
	ck_assert_uint_eq(conf.chance[FAULT_DUP] + conf.chance[FAULT_CORRUPT], 0);
	ck_assert_uint_eq(conf.seed, 7);
	ck_assert_uint_eq(conf.dir, FAULT_BOTH);

	ck_assert_int_eq(
		parse("--once opcode=read-response-middle nth=3 action=drop qpn=17 dir=tx"), 0);
	ck_assert_uint_eq(conf.chance[FAULT_DROP], FAULT_CERTAIN / 100); /* as it was */
	ck_assert_uint_eq(conf.n_once, 1);
	ck_assert_uint_eq(conf.once[0].ops, 1ull << BTH_READ_RESP_MIDDLE);
	ck_assert_uint_eq(conf.once[0].nth, 3);
	ck_assert_uint_eq(conf.once[0].action, FAULT_DROP);
	ck_assert_uint_eq(conf.once[0].qpn, 17);
	ck_assert_uint_eq(conf.once[0].psn, FAULT_ANY);
	ck_assert_uint_eq(conf.once[0].dir, FAULT_TX);
}
END_TEST

static const struct {
	const char *text;
	uint32_t chance;
} chances[] = {
	{ "drop=0", 0 },
	{ "drop=0%", 0 },
	{ "drop=1", FAULT_CERTAIN },
	{ "drop=100%", FAULT_CERTAIN },
	{ "drop=0.5", FAULT_CERTAIN / 2 },
	{ "drop=12.5%", FAULT_CERTAIN / 8 },
	{ "drop=0.0000001%", 1 },
	{ "drop=0.000000001", 1 },
};

START_TEST(a_chance_is_a_fraction_or_a_percentage)
{
	ck_assert_int_eq(parse(chances[_i].text), 0);
	ck_assert_uint_eq(conf.chance[FAULT_DROP], chances[_i].chance);
}
END_TEST

static const struct {
	const char *text;
	uint64_t delay, rate;
} scaled[] = {
	{ "delay=1s", 1000000000, 0 },
	{ "delay=1.5ms", 1500000, 0 },
	{ "delay=20us", 20000, 0 },
	{ "delay=7ns", 7, 0 },
	{ "delay=0.000000001s", 1, 0 },
	{ "delay=0", 0, 0 },
	{ "delay=9999999s", 9999999ull * 1000000000, 0 },
	{ "rate=1gbit", 0, 1000000000 },
	{ "rate=2.5gbit", 0, 2500000000 },
	{ "rate=100mbit", 0, 100000000 },
	{ "rate=56kbit", 0, 56000 },
	{ "rate=9bit", 0, 9 },
	{ "rate=0", 0, 0 },
};

START_TEST(times_and_rates_have_units)
{
	ck_assert_int_eq(parse(scaled[_i].text), 0);
	ck_assert_uint_eq(conf.delay_ns, scaled[_i].delay);
	ck_assert_uint_eq(conf.rate_bps, scaled[_i].rate);
}
END_TEST

static const struct {
	const char *text, *sentence;
} wrong[] = {
	{ "drop", "\"drop\" is not of the form name=value" },
	{ "drop=", "drop takes a chance from 0% to 100%, not \"\"" },
	{ "drop=101%", "drop takes a chance from 0% to 100%, not \"101%\"" },
	{ "drop=1.1", "drop takes a chance from 0% to 100%, not \"1.1\"" },
	{ "drop=-1%", "drop takes a chance from 0% to 100%, not \"-1%\"" },
	{ "dup=1%%", "dup takes a chance from 0% to 100%, not \"1%%\"" },
	{ "dup=.5", "dup takes a chance from 0% to 100%, not \".5\"" },
	{ "drop=0.0000000001", "drop takes a chance from 0% to 100%, not \"0.0000000001\"" },
	{ "drop=12345678%", "drop takes a chance from 0% to 100%, not \"12345678%\"" },
	{ "delay=20", "delay takes a time like 20us (s, ms, us, ns), not \"20\"" },
	{ "jitter=1gbit", "jitter takes a time like 20us (s, ms, us, ns), not \"1gbit\"" },
	{ "hold=x", "hold takes a time like 20us (s, ms, us, ns), not \"x\"" },
	{ "rate=1us", "rate takes a rate like 1gbit (gbit, mbit, kbit, bit), or 0, not \"1us\"" },
	{ "partition=yes", "partition takes on or off, not \"yes\"" },
	{ "dir=up", "dir takes tx, rx or both, not \"up\"" },
	{ "seed=18446744073709551616", "seed takes a number, not \"18446744073709551616\"" },
	{ "seed=0x", "seed takes a number, not \"0x\"" },
	{ "seed=1a", "seed takes a number, not \"1a\"" },
	{ "nth=3", "there is no fault \"nth\"" },
	{ "lose=1%", "there is no fault \"lose\"" },
	{ "--once drop=1%", "there is no fault \"drop\" behind --once" },
	{ "--once opcode=",
	  "opcode takes an operation like send-only, write or read-response-middle, "
	  "not \"\"" },
	{ "--once opcode=rea", "opcode takes an operation like send-only, write or "
			       "read-response-middle, not \"rea\"" },
	{ "--once nth=0", "nth takes a number from 1 on, not \"0\"" },
	{ "--once nth=1000000001", "nth takes a number from 1 on, not \"1000000001\"" },
	{ "--once qpn=0x1000000", "qpn takes a number below 2^24, not \"0x1000000\"" },
	{ "--once action=lose",
	  "action takes drop, dup, reorder, corrupt, mark or delay, not \"lose\"" },
	{ "--once dir=", "dir takes tx, rx or both, not \"\"" },
	{ "--once delay=1", "delay takes a time like 1ms (s, ms, us, ns), not \"1\"" },
	{ "drop=1% x=0123456789012345678901234567890123456789012345678901234567890123",
	  "a word is longer than 63 letters" },
};

START_TEST(a_wrong_word_is_named_and_changes_nothing)
{
	struct fault_conf before;
	char text[256] = "reorder=1% --once opcode=ack ";

	ck_assert_int_eq(parse("drop=2% --once psn=9"), 0);
	before = conf;
	if (strncmp(wrong[_i].text, "--once", 6) != 0)
		text[11] = '\0'; /* names for all packets come before rules for one */
	strcat(text, wrong[_i].text);
	ck_assert_int_eq(parse(text), -EINVAL);
	ck_assert_str_eq(err, wrong[_i].sentence);
	ck_assert_mem_eq(&conf, &before, sizeof(conf));
}
END_TEST

START_TEST(sixteen_one_shot_rules_are_the_most)
{
	for (unsigned i = 0; i < FAULT_ONCE_MAX; i++)
		ck_assert_int_eq(parse("--once"), 0);
	ck_assert_int_eq(parse("--once"), -EINVAL);
	ck_assert_str_eq(err, "there are already 16 one-shot rules");
}
END_TEST

static const struct {
	const char *name;
	uint64_t ops;
} opcodes[] = {
	{ "send-only", 1u << 4 },
	{ "send-last", 1u << 2 },
	{ "send", 0x3f | 1u << 0x16 | 1u << 0x17 },
	{ "write", 0xfc0 },
	{ "read-request", 1u << 0xc },
	{ "read-response", 0x1e000 },
	{ "read", 0x1f000 },
	{ "ack", 1u << 0x11 },
	{ "atomic-ack", 1u << 0x12 },
	{ "cmp-swap", 1u << 0x13 },
	{ "fetch-add", 1u << 0x14 },
	{ "cnp", 1ull << 32 },
};

START_TEST(an_opcode_name_may_mean_several)
{
	char text[64] = "--once opcode=";

	ck_assert_int_eq(parse(strcat(text, opcodes[_i].name)), 0);
	ck_assert_uint_eq(conf.once[0].ops, opcodes[_i].ops);
}
END_TEST

static const char *const texts[] = {
	"",
	"drop=1% dup=0.1% reorder=0.0000001% corrupt=100% delay=20us jitter=1500ns hold=1ms "
	"rate=2500mbit partition=on dir=rx seed=18446744073709551615",
	"hold=0s",
	"--once nth=1 action=drop",
	"seed=7 --once opcode=read-response-middle qpn=17 psn=0 dir=tx nth=3 action=delay delay=1s "
	"--once opcode=cnp nth=1 action=corrupt --once psn=16777215 nth=1000000000 action=reorder",
};

START_TEST(a_description_makes_the_same_rules_again)
{
	struct fault_conf again;
	char text[FAULT_TEXT_MAX];

	ck_assert_int_eq(parse(texts[_i]), 0);
	ck_assert_ptr_eq(fault_describe(&conf, text, sizeof(text)), text);
	ck_assert_str_eq(text, texts[_i]);
	fault_conf_init(&again);
	ck_assert_int_eq(fault_parse(&again, text, err, sizeof(err)), 0);
	ck_assert_mem_eq(&again, &conf, sizeof(conf));
}
END_TEST

START_TEST(the_longest_description_fits)
{
	char text[FAULT_TEXT_MAX];

	ck_assert_int_eq(parse(texts[1]), 0);
	for (unsigned i = 0; i < FAULT_ONCE_MAX; i++)
		ck_assert_int_eq(parse("--once opcode=read-response-middle qpn=16777215 "
				       "psn=16777215 dir=tx nth=1000000000 action=reorder "
				       "delay=1.234567891s"),
				 0);
	fault_describe(&conf, text, sizeof(text));
	ck_assert_uint_lt(strlen(text), sizeof(text) - 1);
	ck_assert_ptr_nonnull(strstr(text + strlen(text) - 20, "delay=1234567891ns"));
	for (unsigned size = 1; size < 100; size++) { /* shorter ones are cut */
		memset(text, 'x', sizeof(text));
		fault_describe(&conf, text, size);
		ck_assert_uint_lt(strlen(text), size);
		ck_assert_int_eq(text[size], 'x');
	}
}
END_TEST

START_TEST(later_words_change_earlier_ones)
{
	ck_assert_int_eq(parse("drop=5%, dup=1%\n\tpartition=on"), 0);
	ck_assert(conf.is_partition);
	ck_assert_int_eq(parse("drop=0 partition=off"), 0);
	ck_assert_uint_eq(conf.chance[FAULT_DROP], 0);
	ck_assert_uint_eq(conf.chance[FAULT_DUP], FAULT_CERTAIN / 100);
	ck_assert(!conf.is_partition);
}
END_TEST

/* Any text at all: an answer, and never a read past it. */
START_TEST(no_text_is_too_much)
{
	static const char *const bits[] = { "drop",    "=",    "1",     "%",   "--once", " ",
					    "opcode",  "read", "delay", ".",   "us",     "0x",
					    "9999999", ",",    "nth",   "seed" };
	uint64_t seed = ck_seed();

	for (int round = 0; round < 20000; round++) {
		char text[256] = "";
		struct fault_conf c;

		for (unsigned n = ck_below(&seed, 20); n; n--)
			strcat(text, bits[ck_below(&seed, 16)]);
		fault_conf_init(&c);
		fault_parse(&c, text, err, sizeof(err));
	}
}
END_TEST

#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

Suite *suite_make(void)
{
	Suite *s = suite_create("link_fault_text");
	TCase *tc = tcase_create("text");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, the_examples_of_the_manual_are_understood);
	tcase_add_loop_test(tc, a_chance_is_a_fraction_or_a_percentage, 0, N(chances));
	tcase_add_loop_test(tc, times_and_rates_have_units, 0, N(scaled));
	tcase_add_loop_test(tc, a_wrong_word_is_named_and_changes_nothing, 0, N(wrong));
	tcase_add_test(tc, sixteen_one_shot_rules_are_the_most);
	tcase_add_loop_test(tc, an_opcode_name_may_mean_several, 0, N(opcodes));
	tcase_add_loop_test(tc, a_description_makes_the_same_rules_again, 0, N(texts));
	tcase_add_test(tc, the_longest_description_fits);
	tcase_add_test(tc, later_words_change_earlier_ones);
	tcase_add_test(tc, no_text_is_too_much);
	suite_add_tcase(s, tc);
	return s;
}
