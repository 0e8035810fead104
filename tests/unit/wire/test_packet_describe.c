/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/packet.h"

#include <string.h>

#include "tests/support/ck_main.h"

static const struct {
	struct packet pk;
	const char *line;
} lines[] = {
	{ { .opcode = BTH_WRITE_FIRST,
	    .dest_qpn = 0x11,
	    .psn = 5,
	    .payload_len = 1024,
	    .va = 0xab00,
	    .rkey = 0x200,
	    .dma_len = 4096 },
	  "RC RDMA WRITE First qpn 0x11 psn 5 len 1024 va 0xab00 rkey 0x200 dma_len 4096" },
	{ { .opcode = BTH_ACKNOWLEDGE, .syndrome = 0x60, .msn = 7 },
	  "RC Acknowledge qpn 0x0 psn 0 len 0 syndrome 0x60 msn 7" },
	{ { .opcode = BTH_ATOMIC_ACK, .msn = 1, .atomic_orig = 9 },
	  "RC ATOMIC Acknowledge qpn 0x0 psn 0 len 0 syndrome 0x00 msn 1 orig 0x9" },
	{ { .opcode = BTH_CMP_SWAP,
	    .va = 8,
	    .rkey = 1,
	    .swap_add = 2,
	    .compare = 3,
	    .ack_req = true },
	  "RC CmpSwap qpn 0x0 psn 0 len 0 va 0x8 rkey 0x1 swap_add 0x2 compare 0x3 ackreq" },
	{ { .opcode = BTH_UD | BTH_SEND_ONLY, .qkey = 0x11111111, .src_qpn = 1, .solicited = true },
	  "UD SEND Only qpn 0x0 psn 0 len 0 qkey 0x11111111 src_qpn 0x1 se" },
	{ { .opcode = BTH_XRC | BTH_SEND_ONLY_INV,
	    .xrc_srqn = 4,
	    .inv_rkey = 0x500,
	    .mig_req = true },
	  "XRC SEND Only with Invalidate qpn 0x0 psn 0 len 0 srqn 0x4 inv_rkey 0x500 migreq" },
	{ { .opcode = 0x81, .becn = true, .fecn = true }, "CNP qpn 0x0 psn 0 len 0 fecn becn" },
	{ { .opcode = 0xff }, "opcode 0xff qpn 0x0 psn 0 len 0" },
};

START_TEST(a_line_names_what_the_packet_carries)
{
	char buf[256];

	ck_assert_ptr_eq(packet_describe(&lines[_i].pk, buf, sizeof(buf)), buf);
	ck_assert_str_eq(buf, lines[_i].line);
}
END_TEST

START_TEST(immediate_data_reads_as_the_program_wrote_it)
{
	struct packet pk = { .opcode = BTH_SEND_ONLY_IMM };
	char buf[128];

	memcpy(&pk.imm, "\x12\x34\x56\x78", 4);
	ck_assert_str_eq(packet_describe(&pk, buf, sizeof(buf)),
			 "RC SEND Only with Immediate qpn 0x0 psn 0 len 0 imm 0x12345678");
}
END_TEST

START_TEST(a_short_buffer_cuts_the_line)
{
	char buf[64];
	char whole[256];

	packet_describe(&lines[0].pk, whole, sizeof(whole));
	for (unsigned size = 1; size <= sizeof(buf); size++) {
		memset(buf, 'x', sizeof(buf));
		packet_describe(&lines[0].pk, buf, size);
		ck_assert_uint_eq(strlen(buf), size - 1);
		ck_assert_mem_eq(buf, whole, size - 1);
		for (unsigned i = size; i < sizeof(buf); i++)
			ck_assert_int_eq(buf[i], 'x');
	}
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("packet_describe");
	TCase *tc = tcase_create("describe");

	tcase_add_loop_test(tc, a_line_names_what_the_packet_carries, 0,
			    sizeof(lines) / sizeof(lines[0]));
	tcase_add_test(tc, immediate_data_reads_as_the_program_wrote_it);
	tcase_add_test(tc, a_short_buffer_cuts_the_line);
	suite_add_tcase(s, tc);
	return s;
}
