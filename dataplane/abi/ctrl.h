/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control-socket messages. AF_UNIX SOCK_SEQPACKET; one connection is one context (one opened
 * device). A request is struct uroce_req and its body in one message; every request has exactly one
 * reply, in order, struct uroce_rep and its body, perhaps with file descriptors (SCM_RIGHTS). A
 * connection that closes takes down all objects made on it. `err` is 0 or a positive errno.
 *
 * The first request must be HELLO (an application) or ADMIN_HELLO (the `uroce` command).
 */
#pragma once

#include "dataplane/abi/abi.h"

#define UROCE_DEV_NAME_MAX 64u
#define UROCE_FIRST_NODE   100u /* devices have nodes uverbs100 and up: real HCAs count from 0 */
#define UROCE_N_NODES      64u  /* then numbers go round */
#define UROCE_CTRL_MSG_MAX 4096u
#define UROCE_CTRL_FDS_MAX (2u + UROCE_MAX_WORKERS)

enum uroce_ctrl_op {
	UROCE_OP_HELLO = 1,
	UROCE_OP_QUERY_DEVICE,
	UROCE_OP_QUERY_PORT,
	UROCE_OP_ALLOC_PD,
	UROCE_OP_FREE_PD,
	UROCE_OP_REG_MR,
	UROCE_OP_DEREG_MR,
	UROCE_OP_CREATE_CHANNEL,
	UROCE_OP_DESTROY_CHANNEL,
	UROCE_OP_CREATE_CQ,
	UROCE_OP_DESTROY_CQ,
	UROCE_OP_CREATE_QP,
	UROCE_OP_MODIFY_QP,
	UROCE_OP_QUERY_QP,
	UROCE_OP_DESTROY_QP,
	UROCE_OP_CREATE_AH,
	UROCE_OP_DESTROY_AH,
	UROCE_OP_PROBE_MEMORY,
	UROCE_OP_CREATE_SRQ,
	UROCE_OP_MODIFY_SRQ,
	UROCE_OP_QUERY_SRQ,
	UROCE_OP_DESTROY_SRQ,
	UROCE_OP_ATTACH_MCAST,
	UROCE_OP_DETACH_MCAST,
	UROCE_OP_REREG_MR,
	UROCE_OP_ALLOC_MW,
	UROCE_OP_FREE_MW,
	UROCE_OP_RESIZE_CQ,
	UROCE_OP_CREATE_XRCD,
	UROCE_OP_DESTROY_XRCD,
	UROCE_OP_OPEN_QP,
	UROCE_OP_RESIZE_SRQ,
	UROCE_OP_ALLOC_NULL_MR,
	UROCE_OP_IMPORT_PD,
	UROCE_OP_IMPORT_MR,
	UROCE_OP_SHARE_DM,
	UROCE_OP_UNSHARE_DM,
	UROCE_OP_IMPORT_DM,
	UROCE_OP_FIRE_CQ,

	UROCE_OP_ADMIN_HELLO = 256,
	UROCE_OP_ADMIN_STATUS, /* reply: a memfd with JSON text */
	UROCE_OP_ADMIN_STOP,
	UROCE_OP_ADMIN_FAULT, /* reply: a memfd with JSON text */
	UROCE_OP_ADMIN_DEVICE, /* reply: a memfd with JSON text */
};

struct uroce_req {
	uint32_t op;
	uint32_t len; /* of the body */
};

struct uroce_rep {
	uint32_t op;
	uint32_t err;
	uint32_t len; /* of the body; 0 when err is not */
	uint32_t n_fds;
};

/* HELLO. Reply fds: [0] UAR memfd, [1] async-event socket (read end), [2 + w] eventfd of worker w.
 */
struct uroce_hello {
	uint32_t magic;
	uint32_t version; /* UROCE_ABI_VERSION of the provider; EPROTO when the daemon's differs */
	char device[UROCE_DEV_NAME_MAX];
	uint64_t probe_addr; /* an 8-byte variable of the client, for PROBE_MEMORY */
	uint32_t client_pid; /* as the client sees itself; the daemon believes SO_PEERCRED */
	uint32_t flags;      /* UROCE_HELLO_* */
};

/*
 * The request may bring one fd: the context's command descriptor. Whoever comes later with the same
 * open file and IMPORT (then `device` is not read) may import that context's objects by their
 * handles; EOPNOTSUPP: the daemon cannot tell files apart.
 */
#define UROCE_HELLO_IMPORT 1u

/* Also sent with err == EPROTO, so that the client can name both versions. */
struct uroce_hello_rep {
	uint32_t magic;
	uint32_t version;
	uint32_t n_workers;
	uint32_t uar_size;
	uint32_t daemon_pid; /* as the client's pid namespace sees it, 0 if it cannot:
				PR_SET_PTRACER */
	uint32_t memory_err; /* 0, or the errno with which the daemon could not reach memory */
	uint64_t boot_id;    /* differs for every start of a daemon */
	char daemon_version[32];
	char device[UROCE_DEV_NAME_MAX];
};

/* PROBE_MEMORY: no body; the daemon reads and writes back probe_addr. err: why it cannot. */

struct uroce_device_attr {
	char fw_ver[64];
	uint64_t node_guid;      /* big-endian */
	uint64_t sys_image_guid; /* big-endian */
	uint64_t max_mr_size, page_size_cap;
	uint32_t vendor_id, vendor_part_id, hw_ver;
	uint32_t max_qp, max_qp_wr, device_cap_flags, max_sge, max_sge_rd, max_inline;
	uint32_t max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_res_rd_atom;
	uint32_t max_qp_init_rd_atom, atomic_cap, max_mw, max_mcast_grp, max_mcast_qp_attach;
	uint32_t max_ah, max_srq, max_srq_wr, max_srq_sge, max_pkeys, local_ca_ack_delay;
	uint32_t phys_port_cnt;
};

struct uroce_port_attr {
	uint32_t state, max_mtu, active_mtu; /* the numbers of enum ibv_port_state, ibv_mtu */
	uint32_t gid_tbl_len, pkey_tbl_len, max_msg_sz, port_cap_flags;
	uint32_t active_width, active_speed, phys_state, link_layer;
	uint32_t bad_pkey_cntr, qkey_viol_cntr;
};

struct uroce_handle { /* body of the FREE, DEREG and DESTROY requests, and of some replies */
	uint32_t handle;
	uint32_t reserved;
};

/* DESTROY_CQ, DESTROY_QP and DESTROY_SRQ: events the daemon has sent for the object, to be read and
 * dropped. */
struct uroce_destroy_rep {
	uint32_t events_sent;
	uint32_t reserved;
};

/*
 * REG_MR. One optional fd: a file that backs [addr, addr + length) as a shared mapping from
 * map_offset on (then the daemon may map it). access: bits of enum ibv_access_flags.
 */
struct uroce_reg_mr {
	uint32_t pd;
	uint32_t access;
	uint64_t addr; /* where the memory is in the process */
	uint64_t length;
	uint64_t iova; /* the address that WRs use */
	uint64_t map_offset;
};

struct uroce_reg_mr_rep {
	uint32_t handle;
	uint32_t lkey, rkey;
	uint32_t reserved;
};

/*
 * With IBV_ACCESS_ON_DEMAND nothing needs to be mapped yet; addr 0 and length UINT64_MAX is the
 * whole address space. ALLOC_NULL_MR: body struct uroce_handle, of the PD; reads of the region give
 * zeros, writes to it are dropped, it has no rkey. Reply to both: struct uroce_reg_mr_rep.
 */

/*
 * Of the context whose command descriptor came with HELLO. IMPORT_PD: body and reply struct
 * uroce_handle; an own handle of the same PD, given back by FREE_PD. IMPORT_MR: the keys; the
 * region stays its owner's, reply struct uroce_reg_mr_rep. SHARE_DM: one fd, a memfd that other
 * contexts get by IMPORT_DM; reply struct uroce_handle, given back by UNSHARE_DM. IMPORT_DM: body
 * struct uroce_handle.
 */
struct uroce_import_mr {
	uint32_t pd;     /* own handle; must be the region's PD */
	uint32_t handle; /* the owner's */
};

struct uroce_share_dm {
	uint64_t length;
};

struct uroce_import_dm_rep { /* fd [0]: the memory */
	uint64_t length;
};

/*
 * CREATE_CHANNEL: reply fds [0] the program's read end, [1] a write end. The provider closes the
 * second: held, it would hide the daemon's death from whoever waits at the first.
 */

struct uroce_create_cq {
	uint32_t cqe;     /* at least this many */
	uint32_t channel; /* handle, 0: none */
	uint64_t token;   /* 8 bytes the daemon sends on the channel: the ibv_cq's address */
};

struct uroce_create_cq_rep { /* fd [0]: the CQ's memory */
	uint32_t handle;
	uint32_t depth;  /* a power of two */
	uint32_t n_subs; /* one a worker */
	uint32_t sub_off;
	uint64_t sub_stride;
	uint64_t size;
};

struct uroce_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};

struct uroce_create_qp {
	uint32_t type; /* the numbers of enum ibv_qp_type: RC 2, UC 3, UD 4, XRC send 9, receive 10
			*/
	uint32_t pd, send_cq, recv_cq, srq;
	uint32_t sq_sig_all;
	struct uroce_qp_cap cap;
	uint32_t xrcd;  /* XRC receive */
	uint64_t token; /* element of this QP's async events: the ibv_qp's address */
};

/* fd [0]: the QP's memory, struct uroce_qp_page at 0. XRC receive: no fd, size 0, UROCE_NO_SLOT. */
struct uroce_create_qp_rep {
	uint32_t handle;
	uint32_t qpn;
	uint32_t slot; /* doorbell slot in the context */
	uint32_t worker;
	struct uroce_qp_cap cap;
	uint32_t sq_depth, rq_depth;   /* powers of two, 0: no such queue */
	uint32_t sq_stride, rq_stride; /* bytes */
	uint32_t sq_off, rq_off;
	uint32_t reserved;
	uint64_t size;
};

/* Address vector; gid is network order. */
struct uroce_ah_attr {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class, sl;
	uint8_t is_global, port_num, src_path_bits, static_rate;
	uint16_t dlid;
	uint16_t reserved;
};
UROCE_ASSERT(sizeof(struct uroce_ah_attr) == 32, "no padding");

/* The fields of struct ibv_qp_attr; mask bits are those of enum ibv_qp_attr_mask. */
struct uroce_qp_attr {
	uint32_t qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num, access;
	struct uroce_qp_cap cap;
	struct uroce_ah_attr ah, alt_ah;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt;
	uint8_t rnr_retry, alt_port_num, alt_timeout, reserved;
	uint32_t rate_limit;
};

/*
 * MODIFY_QP to RESET: the daemon forgets both queues and starts again at index 0; the provider sets
 * its indices and the published prod of SQ and RQ to 0 and purges the QP's CQEs before it returns.
 */
struct uroce_modify_qp {
	uint32_t handle;
	uint32_t mask;
	struct uroce_qp_attr attr;
};

struct uroce_query_qp_rep {
	struct uroce_qp_attr attr;
};

struct uroce_create_ah {
	uint32_t pd;
	uint32_t reserved;
	struct uroce_ah_attr attr;
};

struct uroce_create_ah_rep {
	uint32_t handle;
	uint32_t ah; /* its number in a WQE */
};

/*
 * CREATE_SRQ. Type 0 basic, 1 XRC (then xrcd and cq are read). The SRQ's memory is a struct
 * uroce_ring and the slots (struct uroce_rqe and its SGEs) at slots_off. A receive leaves its slot
 * when it is taken: the provider's room is depth - (prod - cons) of the ring.
 */
struct uroce_create_srq {
	uint32_t pd, type, xrcd, cq;
	uint32_t max_wr, max_sge, limit;
	uint32_t reserved;
	uint64_t token;
};

struct uroce_create_srq_rep { /* fd [0]: the SRQ's memory */
	uint32_t handle;
	uint32_t srqn;
	uint32_t max_wr, max_sge;
	uint32_t depth, stride, slots_off;
	uint32_t reserved;
	uint64_t size;
};

/* MODIFY_SRQ arms the limit event; QUERY_SRQ: reply is the same struct. */
struct uroce_srq_attr {
	uint32_t handle;
	uint32_t max_wr, max_sge, limit;
};

/*
 * RESIZE_SRQ: no receive may be posted meanwhile; those posted keep their indices. The reply and
 * its fd replace those of CREATE_SRQ.
 */
struct uroce_resize_srq {
	uint32_t handle;
	uint32_t max_wr;
};

/* ATTACH_MCAST, DETACH_MCAST: handle of a UD QP. */
struct uroce_mcast {
	uint32_t handle;
	uint32_t lid;
	uint8_t mgid[16];
};

/* REREG_MR: what bits (enum ibv_rereg_mr_flags: 1 translation, 2 PD, 4 access) of flags change.
 * Reply as REG_MR. */
struct uroce_rereg_mr {
	uint32_t handle;
	uint32_t flags;
	struct uroce_reg_mr to;
};

struct uroce_alloc_mw {
	uint32_t pd;
	uint32_t type; /* enum ibv_mw_type: 1, 2 */
};

struct uroce_alloc_mw_rep {
	uint32_t handle;
	uint32_t rkey;
};

/*
 * BIND_MW in a WQE (UROCE_WR_BIND_MW): rkey the new key, imm the window's present key, remote_addr
 * and compare_add address and length, swap lkey of the MR and above it the access flags (length 0
 * unbinds a type 1 window). LOCAL_INV: imm the key.
 */

/*
 * RESIZE_CQ: nothing may be taken from the CQ meanwhile; entries not yet polled move along, under
 * their indices. The reply and its fd replace those of CREATE_CQ, but struct uroce_cq_page stays
 * where it was first. EINVAL: more entries wait than would fit.
 */
struct uroce_resize_cq {
	uint32_t handle;
	uint32_t cqe;
};

/*
 * FIRE_CQ: body struct uroce_handle, no reply: the CQ was armed while completions lay in it that
 * the program may not look for again. If it is still armed its event is sent now, as an HCA does
 * that compares the consumer index of the arming doorbell with its own.
 */

/*
 * CREATE_XRCD: no fd: a domain of this context alone. Or fd [0]: a file that names the domain,
 * shared by all who bring it. flags: O_CREAT (else EAGAIN when there is none), O_EXCL (EINVAL when
 * there is).
 */
struct uroce_create_xrcd {
	uint32_t flags;
	uint32_t reserved;
};

/* OPEN_QP: another handle for the XRC receive QP of that number, which lives as long as any of its
 * handles. The reply is that of CREATE_QP. */
struct uroce_open_qp {
	uint32_t qpn;
	uint32_t xrcd;
	uint64_t token;
};

/* One record on the async-event socket; the first 16 bytes are what libibverbs reads there. */
struct uroce_async_record {
	uint64_t element; /* token of the QP or CQ; port number for port events; 0 for the device */
	uint32_t type;    /* enum ibv_event_type */
	uint32_t reserved;
};
UROCE_ASSERT(sizeof(struct uroce_async_record) == 16, "as ib_uverbs_async_event_desc");

/* ADMIN_FAULT, ADMIN_DEVICE: body is a command line as text, not terminated. */
