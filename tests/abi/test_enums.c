/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract copies numbers of libibverbs' enums, so that the provider need not translate them.
 */
#include "tests/support/ck_main.h"

#include <infiniband/verbs.h>

#include "dataplane/abi/abi.h"

#define SAME(ours, theirs) { #ours, (ours), (theirs) }

static const struct {
	const char *name;
	uint32_t ours, theirs;
} numbers[] = {
	SAME(UROCE_WR_WRITE, IBV_WR_RDMA_WRITE),
	SAME(UROCE_WR_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM),
	SAME(UROCE_WR_SEND, IBV_WR_SEND),
	SAME(UROCE_WR_SEND_IMM, IBV_WR_SEND_WITH_IMM),
	SAME(UROCE_WR_READ, IBV_WR_RDMA_READ),
	SAME(UROCE_WR_CMP_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP),
	SAME(UROCE_WR_FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD),
	SAME(UROCE_WR_LOCAL_INV, IBV_WR_LOCAL_INV),
	SAME(UROCE_WR_BIND_MW, IBV_WR_BIND_MW),
	SAME(UROCE_WR_SEND_INV, IBV_WR_SEND_WITH_INV),
	SAME(UROCE_WQE_FENCE, IBV_SEND_FENCE),
	SAME(UROCE_WQE_SIGNALED, IBV_SEND_SIGNALED),
	SAME(UROCE_WQE_SOLICITED, IBV_SEND_SOLICITED),
	SAME(UROCE_WQE_INLINE, IBV_SEND_INLINE),
	SAME(UROCE_WC_SUCCESS, IBV_WC_SUCCESS),
	SAME(UROCE_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR),
	SAME(UROCE_WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR),
	SAME(UROCE_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR),
	SAME(UROCE_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR),
	SAME(UROCE_WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR),
	SAME(UROCE_WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR),
	SAME(UROCE_WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR),
	SAME(UROCE_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR),
	SAME(UROCE_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR),
	SAME(UROCE_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR),
	SAME(UROCE_WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR),
	SAME(UROCE_WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR),
	SAME(UROCE_WC_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR),
	SAME(UROCE_WC_FATAL_ERR, IBV_WC_FATAL_ERR),
	SAME(UROCE_WC_GENERAL_ERR, IBV_WC_GENERAL_ERR),
	SAME(UROCE_WC_SEND, IBV_WC_SEND),
	SAME(UROCE_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE),
	SAME(UROCE_WC_RDMA_READ, IBV_WC_RDMA_READ),
	SAME(UROCE_WC_COMP_SWAP, IBV_WC_COMP_SWAP),
	SAME(UROCE_WC_FETCH_ADD, IBV_WC_FETCH_ADD),
	SAME(UROCE_WC_BIND_MW, IBV_WC_BIND_MW),
	SAME(UROCE_WC_LOCAL_INV, IBV_WC_LOCAL_INV),
	SAME(UROCE_WC_RECV, IBV_WC_RECV),
	SAME(UROCE_WC_RECV_IMM, IBV_WC_RECV_RDMA_WITH_IMM),
	SAME(UROCE_WC_GRH, IBV_WC_GRH),
	SAME(UROCE_WC_WITH_IMM, IBV_WC_WITH_IMM),
	SAME(UROCE_WC_WITH_INV, IBV_WC_WITH_INV),
};

START_TEST(our_number_is_libibverbs_number)
{
	ck_assert_msg(numbers[_i].ours == numbers[_i].theirs, "%s is %u, libibverbs says %u",
		      numbers[_i].name, numbers[_i].ours, numbers[_i].theirs);
}
END_TEST

/* post_send copies entries of the program's list one to one. */
START_TEST(an_sge_is_ibv_sge)
{
	ck_assert_uint_eq(sizeof(struct uroce_sge), sizeof(struct ibv_sge));
	ck_assert_uint_eq(offsetof(struct uroce_sge, length), offsetof(struct ibv_sge, length));
	ck_assert_uint_eq(offsetof(struct uroce_sge, lkey), offsetof(struct ibv_sge, lkey));
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("abi/enums");
	TCase *tc = tcase_create("numbers");

	tcase_add_loop_test(tc, our_number_is_libibverbs_number, 0,
			    sizeof(numbers) / sizeof(*numbers));
	tcase_add_test(tc, an_sge_is_ibv_sge);
	suite_add_tcase(s, tc);
	return s;
}
