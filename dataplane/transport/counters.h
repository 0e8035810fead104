/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of an engine, one line each: identifier, name. Names are mlx5's where it has the
 * counter, else rxe's, else ours; every dropped packet counts under exactly one drop_*.
 */
#pragma once

#define COUNTERS(X)                                                   \
	X(TX_PACKETS, "tx_packets")                                   \
	X(TX_BYTES, "tx_bytes")                                       \
	X(RX_PACKETS, "rx_packets")                                   \
	X(RX_BYTES, "rx_bytes")                                       \
	X(RX_WRITE_REQUESTS, "rx_write_requests")                     \
	X(RX_READ_REQUESTS, "rx_read_requests")                       \
	X(RX_ATOMIC_REQUESTS, "rx_atomic_requests")                   \
	X(RX_SEND_REQUESTS, "rdma_recvs")                             \
	X(OUT_OF_BUFFER, "out_of_buffer")                             \
	X(OUT_OF_SEQUENCE, "out_of_sequence")                         \
	X(DUPLICATE_REQUEST, "duplicate_request")                     \
	X(RNR_NAK_RETRY_ERR, "rnr_nak_retry_err")                     \
	X(PACKET_SEQ_ERR, "packet_seq_err")                           \
	X(IMPLIED_NAK_SEQ_ERR, "implied_nak_seq_err")                 \
	X(LOCAL_ACK_TIMEOUT_ERR, "local_ack_timeout_err")             \
	X(REQ_RETRIES_EXCEEDED, "req_transport_retries_exceeded")     \
	X(REQ_RNR_EXCEEDED, "req_rnr_retries_exceeded")               \
	X(RESP_LOCAL_LENGTH_ERROR, "resp_local_length_error")         \
	X(RESP_REMOTE_ACCESS_ERRORS, "resp_remote_access_errors")     \
	X(RESP_REMOTE_INVALID_REQUEST, "resp_remote_invalid_request") \
	X(RESP_REMOTE_OP_ERRORS, "resp_remote_operation_errors")      \
	X(REQ_REMOTE_ACCESS_ERRORS, "req_remote_access_errors")       \
	X(REQ_REMOTE_INVALID_REQUEST, "req_remote_invalid_request")   \
	X(REQ_REMOTE_OP_ERRORS, "req_remote_operation_errors")        \
	X(REQ_CQE_ERROR, "req_cqe_error")                             \
	X(RESP_CQE_ERROR, "resp_cqe_error")                           \
	X(REQ_CQE_FLUSH_ERROR, "req_cqe_flush_error")                 \
	X(RESP_CQE_FLUSH_ERROR, "resp_cqe_flush_error")               \
	X(RETRANSMITTED, "retransmitted_packets")                     \
	X(CQ_OVERRUN, "cq_overrun")                                   \
	X(NP_ECN_MARKED, "np_ecn_marked_roce_packets")                \
	X(NP_CNP_SENT, "np_cnp_sent")                                 \
	X(RP_CNP_HANDLED, "rp_cnp_handled")                           \
	X(RP_CNP_IGNORED, "rp_cnp_ignored")                           \
	X(BAD_RING, "bad_ring_index")                                 \
	X(DROP_NOT_ROCE, "drop_not_roce")                             \
	X(DROP_SHORT, "drop_short")                                   \
	X(DROP_BAD_IP, "drop_bad_ip")                                 \
	X(DROP_BAD_UDP_LEN, "drop_bad_udp_len")                       \
	X(DROP_BTH_VERSION, "drop_bth_version")                       \
	X(DROP_UNKNOWN_OPCODE, "drop_unknown_opcode")                 \
	X(DROP_BAD_PAD, "drop_bad_pad")                               \
	X(DROP_BAD_ICRC, "rx_icrc_encapsulated")                      \
	X(DROP_NO_QP, "drop_no_qp")                                   \
	X(DROP_QP_STATE, "drop_qp_state")                             \
	X(DROP_SERVICE, "drop_wrong_service")                         \
	X(DROP_ADDRESS, "drop_wrong_address")                         \
	X(DROP_PKEY, "drop_bad_pkey")                                 \
	X(DROP_QKEY, "drop_bad_qkey")                                 \
	X(DROP_NO_GROUP, "drop_no_multicast_group")                   \
	X(DROP_GHOST, "drop_ghost")                                   \
	X(DROP_AFTER_NAK, "drop_after_nak")                           \
	X(DROP_REPLAY, "drop_replay_unknown")                         \
	X(DROP_RESP_SEQ, "drop_response_out_of_order")                \
	X(DROP_SYNDROME, "drop_bad_syndrome")

enum counter {
#define X(id, name) CNT_##id,
	COUNTERS(X)
#undef X
		CNT_N
};
