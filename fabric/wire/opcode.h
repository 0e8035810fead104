/* SPDX-License-Identifier: BSD-3-Clause */
/* BTH opcodes (IBA vol. 1, table "OpCode field"): number → service, operation, headers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum bth_service {
	BTH_RC = 0x00,
	BTH_UC = 0x20,
	BTH_RD = 0x40,
	BTH_UD = 0x60,
	BTH_CNP = 0x80,
	BTH_XRC = 0xa0
};

/* Operations: the low five bits. */
enum bth_op {
	BTH_SEND_FIRST = 0x00,
	BTH_SEND_MIDDLE = 0x01,
	BTH_SEND_LAST = 0x02,
	BTH_SEND_LAST_IMM = 0x03,
	BTH_SEND_ONLY = 0x04,
	BTH_SEND_ONLY_IMM = 0x05,
	BTH_WRITE_FIRST = 0x06,
	BTH_WRITE_MIDDLE = 0x07,
	BTH_WRITE_LAST = 0x08,
	BTH_WRITE_LAST_IMM = 0x09,
	BTH_WRITE_ONLY = 0x0a,
	BTH_WRITE_ONLY_IMM = 0x0b,
	BTH_READ_REQUEST = 0x0c,
	BTH_READ_RESP_FIRST = 0x0d,
	BTH_READ_RESP_MIDDLE = 0x0e,
	BTH_READ_RESP_LAST = 0x0f,
	BTH_READ_RESP_ONLY = 0x10,
	BTH_ACKNOWLEDGE = 0x11,
	BTH_ATOMIC_ACK = 0x12,
	BTH_CMP_SWAP = 0x13,
	BTH_FETCH_ADD = 0x14,
	BTH_SEND_LAST_INV = 0x16,
	BTH_SEND_ONLY_INV = 0x17,
	BTH_FLUSH = 0x1c,
	BTH_ATOMIC_WRITE = 0x1d,
};

/* Extension headers, in wire order after the BTH, and facts about the opcode. */
#define OPC_RDETH      0x0001u
#define OPC_DETH       0x0002u
#define OPC_XRCETH     0x0004u
#define OPC_RETH       0x0008u
#define OPC_ATOMICETH  0x0010u
#define OPC_AETH       0x0020u
#define OPC_ATOMICACK  0x0040u
#define OPC_IMM        0x0080u
#define OPC_IETH       0x0100u
#define OPC_PAYLOAD    0x0200u /* may carry payload */
#define OPC_FIRST      0x0400u /* begins a message */
#define OPC_LAST       0x0800u /* ends a message (an ONLY has both) */
#define OPC_REQUEST    0x1000u
#define OPC_RESPONSE   0x2000u
#define OPC_FETH       0x4000u /* before the RETH */

struct opcode_desc {
	const char *name;   /* as IBA writes it, e.g. "RC RDMA WRITE First"; NULL: no such opcode */
	uint16_t flags;     /* OPC_* */
	uint8_t ext_len;    /* bytes of extension headers after the BTH */
};

extern const struct opcode_desc opcode_table[256];

/* Never NULL; an unknown opcode has a NULL name. */
static inline const struct opcode_desc *opcode_get(uint8_t opcode)
{
	return &opcode_table[opcode];
}

/*
 * For `uroce fault ... opcode=read-response-middle`: the operation of that short name, or -1.
 * "cnp", which has no operation, gives its opcode, 0x81. opcode_op_name never gives NULL.
 */
int opcode_op_by_name(const char *name);
const char *opcode_op_name(uint8_t opcode);
