/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/transport/core.h"

/* clang-format off */
static const uint8_t op_table[][4] = {
	/*                         FIRST            MIDDLE            LAST                ONLY */
	[UROCE_WR_WRITE]      = { BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, BTH_WRITE_LAST,     BTH_WRITE_ONLY },
	[UROCE_WR_WRITE_IMM]  = { BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, BTH_WRITE_LAST_IMM, BTH_WRITE_ONLY_IMM },
	[UROCE_WR_SEND]       = { BTH_SEND_FIRST,  BTH_SEND_MIDDLE,  BTH_SEND_LAST,      BTH_SEND_ONLY },
	[UROCE_WR_SEND_IMM]   = { BTH_SEND_FIRST,  BTH_SEND_MIDDLE,  BTH_SEND_LAST_IMM,  BTH_SEND_ONLY_IMM },
	[UROCE_WR_SEND_INV]   = { BTH_SEND_FIRST,  BTH_SEND_MIDDLE,  BTH_SEND_LAST_INV,  BTH_SEND_ONLY_INV },
	[UROCE_WR_FLUSH]      = { BTH_FLUSH,       BTH_FLUSH,        BTH_FLUSH,          BTH_FLUSH },
	[UROCE_WR_ATOMIC_WRITE] = { BTH_ATOMIC_WRITE, BTH_ATOMIC_WRITE, BTH_ATOMIC_WRITE, BTH_ATOMIC_WRITE },
	[UROCE_WR_READ]       = { BTH_READ_REQUEST, BTH_READ_REQUEST, BTH_READ_REQUEST,  BTH_READ_REQUEST },
	[UROCE_WR_CMP_SWAP]   = { BTH_CMP_SWAP,    BTH_CMP_SWAP,     BTH_CMP_SWAP,       BTH_CMP_SWAP },
	[UROCE_WR_FETCH_ADD]  = { BTH_FETCH_ADD,   BTH_FETCH_ADD,    BTH_FETCH_ADD,      BTH_FETCH_ADD },
};

static const uint8_t wc_table[] = {
	[UROCE_WR_WRITE]     = UROCE_WC_RDMA_WRITE,
	[UROCE_WR_WRITE_IMM] = UROCE_WC_RDMA_WRITE,
	[UROCE_WR_SEND]      = UROCE_WC_SEND,
	[UROCE_WR_SEND_IMM]  = UROCE_WC_SEND,
	[UROCE_WR_SEND_INV]  = UROCE_WC_SEND,
	[UROCE_WR_LOCAL_INV] = UROCE_WC_LOCAL_INV,
	[UROCE_WR_BIND_MW]   = UROCE_WC_BIND_MW,
	[UROCE_WR_FLUSH]     = UROCE_WC_FLUSH,
	[UROCE_WR_ATOMIC_WRITE] = UROCE_WC_ATOMIC_WRITE,
	[UROCE_WR_READ]      = UROCE_WC_RDMA_READ,
	[UROCE_WR_CMP_SWAP]  = UROCE_WC_COMP_SWAP,
	[UROCE_WR_FETCH_ADD] = UROCE_WC_FETCH_ADD,
};
/* clang-format on */

uint8_t req_opcode(uint8_t wr_op, enum pkt_pos pos)
{
	return op_table[wr_op][pos];
}

uint8_t req_wc_opcode(uint8_t wr_op)
{
	return wr_op < sizeof(wc_table) ? wc_table[wr_op] : UROCE_WC_SEND;
}
