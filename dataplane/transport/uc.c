/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UC responder (IBA vol. 1, 9.8.2): no answers, no repeats. A gap or a fault drops the message
 * it falls into; the receive that message held serves the next one.
 */
#include "dataplane/transport/core.h"

void uc_rx(struct engine *e, struct qp *qp, const struct packet *pk)
{
	uint16_t flags = opcode_get(pk->opcode)->flags;
	struct qp_resp *s = &qp->resp;
	psn_t psn = psn_make(pk->psn);
	bool is_expected = psn_eq(psn, s->epsn);
	enum resp_verdict v;

	resp_comm_est(e, qp);
	s->epsn = psn_add(psn, 1);
	if (!is_expected)
		engine_count(e, CNT_OUT_OF_SEQUENCE, 1);
	if (!is_expected || (flags & OPC_FIRST))
		s->msg = MSG_NONE;
	v = resp_check_request(e, qp, pk);
	if (v == RESP_OK)
		v = resp_execute(e, qp, pk);
	if (v != RESP_OK)
		responder_apply(e, qp, v, psn);
	if (v != RESP_OK || (flags & OPC_LAST))
		s->msg = MSG_NONE;
}
