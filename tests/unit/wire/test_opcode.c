/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/opcode.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/ck_main.h"

/*
 * The table of IBA vol. 1, 9.2.1 (OpCode field) written down a second time, the way the
 * specification prints it. Headers by letter, see below.
 */
static const struct {
	uint8_t op;
	const char *name, *short_name, *headers;
	bool is_request, has_payload, is_first, is_last;
} spec[] = {
	{ 0x00, "SEND First", "send-first", "", 1, 1, 1, 0 },
	{ 0x01, "SEND Middle", "send-middle", "", 1, 1, 0, 0 },
	{ 0x02, "SEND Last", "send-last", "", 1, 1, 0, 1 },
	{ 0x03, "SEND Last with Immediate", "send-last-imm", "I", 1, 1, 0, 1 },
	{ 0x04, "SEND Only", "send-only", "", 1, 1, 1, 1 },
	{ 0x05, "SEND Only with Immediate", "send-only-imm", "I", 1, 1, 1, 1 },
	{ 0x06, "RDMA WRITE First", "write-first", "R", 1, 1, 1, 0 },
	{ 0x07, "RDMA WRITE Middle", "write-middle", "", 1, 1, 0, 0 },
	{ 0x08, "RDMA WRITE Last", "write-last", "", 1, 1, 0, 1 },
	{ 0x09, "RDMA WRITE Last with Immediate", "write-last-imm", "I", 1, 1, 0, 1 },
	{ 0x0a, "RDMA WRITE Only", "write-only", "R", 1, 1, 1, 1 },
	{ 0x0b, "RDMA WRITE Only with Immediate", "write-only-imm", "RI", 1, 1, 1, 1 },
	{ 0x0c, "RDMA READ Request", "read-request", "R", 1, 0, 1, 1 },
	{ 0x0d, "RDMA READ response First", "read-response-first", "A", 0, 1, 1, 0 },
	{ 0x0e, "RDMA READ response Middle", "read-response-middle", "", 0, 1, 0, 0 },
	{ 0x0f, "RDMA READ response Last", "read-response-last", "A", 0, 1, 0, 1 },
	{ 0x10, "RDMA READ response Only", "read-response-only", "A", 0, 1, 1, 1 },
	{ 0x11, "Acknowledge", "ack", "A", 0, 0, 1, 1 },
	{ 0x12, "ATOMIC Acknowledge", "atomic-ack", "AO", 0, 0, 1, 1 },
	{ 0x13, "CmpSwap", "cmp-swap", "T", 1, 0, 1, 1 },
	{ 0x14, "FetchAdd", "fetch-add", "T", 1, 0, 1, 1 },
	{ 0x16, "SEND Last with Invalidate", "send-last-inv", "V", 1, 1, 0, 1 },
	{ 0x17, "SEND Only with Invalidate", "send-only-inv", "V", 1, 1, 1, 1 },
	{ 0x1c, "FLUSH", "flush", "FR", 1, 0, 1, 1 },
	{ 0x1d, "ATOMIC WRITE", "atomic-write", "R", 1, 1, 1, 1 },
};
#define N_SPEC (sizeof(spec) / sizeof(spec[0]))

static const struct {
	char letter;
	uint16_t flag;
	uint8_t len;
} header[] = {
	{ 'D', OPC_DETH, 8 },       { 'X', OPC_XRCETH, 4 },   { 'R', OPC_RETH, 16 },
	{ 'T', OPC_ATOMICETH, 28 }, { 'A', OPC_AETH, 4 },     { 'O', OPC_ATOMICACK, 8 },
	{ 'I', OPC_IMM, 4 },        { 'V', OPC_IETH, 4 },     { 'F', OPC_FETH, 4 },
};

/* Which operations a service has: bit n is operation n. */
static const struct {
	uint8_t base;
	const char *name;
	uint32_t ops;
	const char *request_header;
} service[8] = {
	{ BTH_RC, "RC", 0x30dfffff, "" },  { BTH_UC, "UC", 0x00000fff, "" },
	{ BTH_RD, "RD", 0, "" },           { BTH_UD, "UD", 0x00000030, "D" },
	{ BTH_CNP, "CNP", 0, "" },         { BTH_XRC, "XRC", 0x30dfffff, "X" },
	{ 0xc0, "manufacturer", 0, "" },   { 0xe0, "manufacturer", 0, "" },
};

static void add_headers(const char *letters, uint16_t *flags, uint8_t *len)
{
	for (; *letters; letters++) {
		for (unsigned i = 0; i < sizeof(header) / sizeof(header[0]); i++) {
			if (header[i].letter == *letters) {
				*flags |= header[i].flag;
				*len = (uint8_t)(*len + header[i].len);
			}
		}
	}
}

static int spec_row(uint8_t op)
{
	for (unsigned i = 0; i < N_SPEC; i++) {
		if (spec[i].op == op)
			return (int)i;
	}
	return -1;
}

START_TEST(every_opcode_is_as_the_specification_says)
{
	uint8_t opcode = (uint8_t)_i;
	const struct opcode_desc *d = opcode_get(opcode);
	int row = spec_row(opcode & 0x1f);
	char name[64];
	uint16_t flags = 0;
	uint8_t len = 0;

	if (opcode == 0x81) {
		ck_assert_str_eq(d->name, "CNP");
		ck_assert_uint_eq(d->ext_len, 16);
		ck_assert_uint_eq(d->flags, OPC_FIRST | OPC_LAST);
		return;
	}
	if (!(service[opcode >> 5].ops >> (opcode & 0x1f) & 1)) {
		ck_assert_ptr_null(d->name);
		ck_assert_uint_eq(d->flags + d->ext_len, 0);
		return;
	}
	ck_assert_int_ge(row, 0);
	ck_assert_uint_eq(service[opcode >> 5].base, opcode & 0xe0);
	snprintf(name, sizeof(name), "%s %s", service[opcode >> 5].name, spec[row].name);
	ck_assert_str_eq(d->name, name);
	if (spec[row].is_request)
		add_headers(service[opcode >> 5].request_header, &flags, &len);
	add_headers(spec[row].headers, &flags, &len);
	flags |= spec[row].is_request ? OPC_REQUEST : OPC_RESPONSE;
	flags |= (spec[row].has_payload ? OPC_PAYLOAD : 0) | (spec[row].is_first ? OPC_FIRST : 0) |
		 (spec[row].is_last ? OPC_LAST : 0);
	ck_assert_uint_eq(d->flags, flags);
	ck_assert_uint_eq(d->ext_len, len);
}
END_TEST

START_TEST(short_names_go_both_ways)
{
	ck_assert_int_eq(opcode_op_by_name(spec[_i].short_name), spec[_i].op);
	for (unsigned svc = 0; svc < 256; svc += 32) {
		uint8_t opcode = (uint8_t)(svc | spec[_i].op);

		if (opcode != 0x81)
			ck_assert_str_eq(opcode_op_name(opcode), spec[_i].short_name);
	}
}
END_TEST

START_TEST(the_cnp_is_named_and_others_are_not)
{
	ck_assert_int_eq(opcode_op_by_name("cnp"), 0x81);
	ck_assert_str_eq(opcode_op_name(0x81), "cnp");
	ck_assert_int_eq(opcode_op_by_name(""), -1);
	ck_assert_int_eq(opcode_op_by_name("SEND-ONLY"), -1);
	ck_assert_int_eq(opcode_op_by_name("send-only "), -1);
	ck_assert_str_eq(opcode_op_name(0x15), "unknown");
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("opcode");
	TCase *tc = tcase_create("table");

	tcase_add_loop_test(tc, every_opcode_is_as_the_specification_says, 0, 256);
	tcase_add_loop_test(tc, short_names_go_both_ways, 0, N_SPEC);
	tcase_add_test(tc, the_cnp_is_named_and_others_are_not);
	suite_add_tcase(s, tc);
	return s;
}
