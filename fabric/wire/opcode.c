/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/opcode.h"

#include <stddef.h>
#include <string.h>

#include "fabric/wire/hdr.h"

/* The RD service is not here: until the transport has it its opcodes are unknown. */
#define LEN(flags)                                                                                 \
	((((flags) & OPC_DETH) ? sizeof(struct deth) : 0) +                                        \
	 (((flags) & OPC_XRCETH) ? sizeof(struct xrceth) : 0) +                                    \
	 (((flags) & OPC_FETH) ? sizeof(struct feth) : 0) +                                        \
	 (((flags) & OPC_RETH) ? sizeof(struct reth) : 0) +                                        \
	 (((flags) & OPC_ATOMICETH) ? sizeof(struct atomiceth) : 0) +                              \
	 (((flags) & OPC_AETH) ? sizeof(struct aeth) : 0) +                                        \
	 (((flags) & OPC_ATOMICACK) ? sizeof(struct atomicacketh) : 0) +                           \
	 (((flags) & OPC_IMM) ? sizeof(struct immdt) : 0) +                                        \
	 (((flags) & OPC_IETH) ? sizeof(struct ieth) : 0))

#define ROW(svc, op, text, flags) [(svc) | (op)] = { text, (flags), LEN(flags) }

#define REQ_FIRST  (OPC_REQUEST | OPC_PAYLOAD | OPC_FIRST)
#define REQ_MIDDLE (OPC_REQUEST | OPC_PAYLOAD)
#define REQ_LAST   (OPC_REQUEST | OPC_PAYLOAD | OPC_LAST)
#define REQ_ONLY   (OPC_REQUEST | OPC_PAYLOAD | OPC_FIRST | OPC_LAST)
#define REQ_BARE   (OPC_REQUEST | OPC_FIRST | OPC_LAST)

#define RESP_FIRST  (OPC_RESPONSE | OPC_PAYLOAD | OPC_FIRST)
#define RESP_MIDDLE (OPC_RESPONSE | OPC_PAYLOAD)
#define RESP_LAST   (OPC_RESPONSE | OPC_PAYLOAD | OPC_LAST)
#define RESP_ONLY   (OPC_RESPONSE | OPC_PAYLOAD | OPC_FIRST | OPC_LAST)
#define RESP_BARE   (OPC_RESPONSE | OPC_FIRST | OPC_LAST)

/* SEND and RDMA WRITE are alike in RC, UC and XRC, but for x: headers that every request has. */
#define SEND_WRITE_ROWS(svc, s, x)                                                                 \
	ROW(svc, BTH_SEND_FIRST, s " SEND First", REQ_FIRST | (x)),                                \
	ROW(svc, BTH_SEND_MIDDLE, s " SEND Middle", REQ_MIDDLE | (x)),                             \
	ROW(svc, BTH_SEND_LAST, s " SEND Last", REQ_LAST | (x)),                                   \
	ROW(svc, BTH_SEND_LAST_IMM, s " SEND Last with Immediate", REQ_LAST | OPC_IMM | (x)),      \
	ROW(svc, BTH_SEND_ONLY, s " SEND Only", REQ_ONLY | (x)),                                   \
	ROW(svc, BTH_SEND_ONLY_IMM, s " SEND Only with Immediate", REQ_ONLY | OPC_IMM | (x)),      \
	ROW(svc, BTH_WRITE_FIRST, s " RDMA WRITE First", REQ_FIRST | OPC_RETH | (x)),              \
	ROW(svc, BTH_WRITE_MIDDLE, s " RDMA WRITE Middle", REQ_MIDDLE | (x)),                      \
	ROW(svc, BTH_WRITE_LAST, s " RDMA WRITE Last", REQ_LAST | (x)),                            \
	ROW(svc, BTH_WRITE_LAST_IMM, s " RDMA WRITE Last with Immediate",                          \
	    REQ_LAST | OPC_IMM | (x)),                                                             \
	ROW(svc, BTH_WRITE_ONLY, s " RDMA WRITE Only", REQ_ONLY | OPC_RETH | (x)),                 \
	ROW(svc, BTH_WRITE_ONLY_IMM, s " RDMA WRITE Only with Immediate",                          \
	    REQ_ONLY | OPC_RETH | OPC_IMM | (x))

#define RELIABLE_ROWS(svc, s, x)                                                                   \
	ROW(svc, BTH_READ_REQUEST, s " RDMA READ Request", REQ_BARE | OPC_RETH | (x)),             \
	ROW(svc, BTH_READ_RESP_FIRST, s " RDMA READ response First", RESP_FIRST | OPC_AETH),       \
	ROW(svc, BTH_READ_RESP_MIDDLE, s " RDMA READ response Middle", RESP_MIDDLE),               \
	ROW(svc, BTH_READ_RESP_LAST, s " RDMA READ response Last", RESP_LAST | OPC_AETH),          \
	ROW(svc, BTH_READ_RESP_ONLY, s " RDMA READ response Only", RESP_ONLY | OPC_AETH),          \
	ROW(svc, BTH_ACKNOWLEDGE, s " Acknowledge", RESP_BARE | OPC_AETH),                         \
	ROW(svc, BTH_ATOMIC_ACK, s " ATOMIC Acknowledge", RESP_BARE | OPC_AETH | OPC_ATOMICACK),   \
	ROW(svc, BTH_CMP_SWAP, s " CmpSwap", REQ_BARE | OPC_ATOMICETH | (x)),                      \
	ROW(svc, BTH_FETCH_ADD, s " FetchAdd", REQ_BARE | OPC_ATOMICETH | (x)),                    \
	ROW(svc, BTH_SEND_LAST_INV, s " SEND Last with Invalidate", REQ_LAST | OPC_IETH | (x)),    \
	ROW(svc, BTH_SEND_ONLY_INV, s " SEND Only with Invalidate", REQ_ONLY | OPC_IETH | (x)),    \
	ROW(svc, BTH_FLUSH, s " FLUSH", REQ_BARE | OPC_FETH | OPC_RETH | (x)),                     \
	ROW(svc, BTH_ATOMIC_WRITE, s " ATOMIC WRITE", REQ_ONLY | OPC_RETH | (x))

#define BTH_CNP_OPCODE (BTH_CNP | 0x01)

const struct opcode_desc opcode_table[256] = {
	SEND_WRITE_ROWS(BTH_RC, "RC", 0u),
	RELIABLE_ROWS(BTH_RC, "RC", 0u),
	SEND_WRITE_ROWS(BTH_UC, "UC", 0u),
	ROW(BTH_UD, BTH_SEND_ONLY, "UD SEND Only", REQ_ONLY | OPC_DETH),
	ROW(BTH_UD, BTH_SEND_ONLY_IMM, "UD SEND Only with Immediate",
	    REQ_ONLY | OPC_DETH | OPC_IMM),
	SEND_WRITE_ROWS(BTH_XRC, "XRC", OPC_XRCETH),
	RELIABLE_ROWS(BTH_XRC, "XRC", OPC_XRCETH),
	[BTH_CNP_OPCODE] = { "CNP", OPC_FIRST | OPC_LAST, CNP_RESERVED_LEN },
};

static const char *const op_name[32] = {
	[BTH_SEND_FIRST] = "send-first",
	[BTH_SEND_MIDDLE] = "send-middle",
	[BTH_SEND_LAST] = "send-last",
	[BTH_SEND_LAST_IMM] = "send-last-imm",
	[BTH_SEND_ONLY] = "send-only",
	[BTH_SEND_ONLY_IMM] = "send-only-imm",
	[BTH_WRITE_FIRST] = "write-first",
	[BTH_WRITE_MIDDLE] = "write-middle",
	[BTH_WRITE_LAST] = "write-last",
	[BTH_WRITE_LAST_IMM] = "write-last-imm",
	[BTH_WRITE_ONLY] = "write-only",
	[BTH_WRITE_ONLY_IMM] = "write-only-imm",
	[BTH_READ_REQUEST] = "read-request",
	[BTH_READ_RESP_FIRST] = "read-response-first",
	[BTH_READ_RESP_MIDDLE] = "read-response-middle",
	[BTH_READ_RESP_LAST] = "read-response-last",
	[BTH_READ_RESP_ONLY] = "read-response-only",
	[BTH_ACKNOWLEDGE] = "ack",
	[BTH_ATOMIC_ACK] = "atomic-ack",
	[BTH_CMP_SWAP] = "cmp-swap",
	[BTH_FETCH_ADD] = "fetch-add",
	[BTH_SEND_LAST_INV] = "send-last-inv",
	[BTH_SEND_ONLY_INV] = "send-only-inv",
	[BTH_FLUSH] = "flush",
	[BTH_ATOMIC_WRITE] = "atomic-write",
};

int opcode_op_by_name(const char *name)
{
	for (int op = 0; op < 32; op++) {
		if (op_name[op] && !strcmp(op_name[op], name))
			return op;
	}
	return strcmp(name, "cnp") ? -1 : BTH_CNP_OPCODE;
}

const char *opcode_op_name(uint8_t opcode)
{
	if (opcode == BTH_CNP_OPCODE)
		return "cnp";
	return op_name[opcode & 0x1f] ? op_name[opcode & 0x1f] : "unknown";
}
