/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs objects of a session: what the daemon keeps of each, and the requests on them. */
#pragma once

#include <stdint.h>

#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/dispatch.h"
#include "dataplane/daemon/session.h"
#include "dataplane/host/shm.h"

struct mr {
	struct pd *pd;
	uint32_t key;
	bool is_null;            /* shows no memory */
	struct uroce_reg_mr reg; /* as registered last */
	struct appmem_view *view; /* of shared memory; NULL: through the kernel */
};

struct mw {
	struct pd *pd;
	uint32_t key; /* its index; binding changes the rest */
};

struct cq {
	uint32_t cqn;
	uint32_t refs;
	uint32_t depth;
	struct shm shm;
	struct shm rings;        /* once it was resized; base NULL: they are in shm */
	struct channel *channel; /* NULL: none */
	uint64_t token;
};

/* A session's handle of an XRC domain. */
struct xrcd {
	struct xrc_domain *domain;
	uint32_t refs; /* SRQs and QPs made by it */
};

struct srq {
	struct pd *pd;
	struct xrcd *xrcd; /* XRC: its domain, and the CQ of its receives; else NULL */
	struct cq *cq;
	uint32_t srqn;
	uint32_t refs; /* QPs */
	uint32_t max_sge;
	uint32_t depth, stride;
	struct shm shm;
	struct srq_shared *shared; /* the engines' */
	uint64_t token;
};

/* A group that a QP is attached to. */
struct mcast_group {
	uint8_t mgid[16];
	struct mcast_group *next;
};

/*
 * An XRC receive QP is none of a session's own: then xrcd is not NULL, pd, CQs, SRQ and memory are
 * missing, and the session is one of those that hold `target` open.
 */
struct qp {
	struct pd *pd;
	struct cq *send_cq, *recv_cq; /* XRC send: no recv_cq */
	struct srq *srq;              /* NULL: a receive queue of its own */
	struct xrcd *xrcd;
	struct xrc_target *target; /* NULL again when the session has left it */
	struct xrc_opener *opener;
	uint32_t qpn, worker, slot;
	uint32_t dest_qpn; /* of the last modify that gave one */
	struct mcast_group *groups;
	struct shm shm;
	void *mem;      /* the engine's */
	uint64_t bytes; /* charged */
	uint64_t token;
};

struct ah {
	struct pd *pd;
	uint32_t number; /* what WQEs say: generation << 16 | index */
};

/* Requests. body has the length that the table in dispatch.c asks for. 0 or a negative errno. */
typedef int request_fn(struct session *s, const void *body, struct reply *r);

request_fn request_alloc_pd, request_free_pd;
request_fn request_rereg_mr, request_alloc_mw, request_free_mw;
request_fn request_reg_mr, request_alloc_null_mr, request_dereg_mr;
request_fn request_create_channel, request_destroy_channel;
request_fn request_create_cq, request_resize_cq, request_fire_cq, request_destroy_cq;
request_fn request_create_qp, request_modify_qp, request_query_qp, request_destroy_qp;
request_fn request_create_srq, request_modify_srq, request_query_srq, request_resize_srq;
request_fn request_destroy_srq;
request_fn request_create_xrcd, request_destroy_xrcd, request_open_qp;
request_fn request_attach_mcast, request_detach_mcast;
request_fn request_import_pd, request_import_mr;
request_fn request_share_dm, request_unshare_dm, request_import_dm;
request_fn request_create_ah, request_destroy_ah;

/* Frees what is left of a session's objects once no engine holds them. */
void pd_drop(struct session *s, struct pd *pd);
void mw_free(struct session *s, struct mw *mw);
void mr_free(struct session *s, struct mr *mr);
void cq_free(struct session *s, struct cq *cq);
void srq_free(struct session *s, struct srq *srq);
void xrcd_free(struct session *s, struct xrcd *xrcd);
void mcast_free(struct session *s, struct qp *qp);
void qp_free(struct session *s, struct qp *qp);
void ah_free(struct session *s, struct ah *ah);
void channel_free(struct session *s, struct channel *ch);

/*
 * XRC receive QPs: the CREATE_QP of that type, what a session leaves behind of one it held open,
 * and the session's leave from all of them, after which the engines keep those only that others
 * hold.
 */
int xrc_target_create(struct session *s, const struct uroce_create_qp *req, struct reply *r);
int xrc_target_destroy(struct session *s, uint32_t handle, struct uroce_destroy_rep *rep);
void xrc_target_free(struct session *s, struct qp *qp);
void xrc_targets_leave(struct session *s);

/* An event of a QP whose owner is this goes to all who hold it open; element: the target. */
#define OWNER_XRC_TARGET DAEMON_MAX_SESSIONS
void xrc_target_event(struct daemon *d, struct xrc_target *target, uint32_t type);

/* The number by which engines know a domain. */
uint32_t xrcd_number(const struct xrcd *xrcd);

/* At most 2^31: any n that a client may send is allowed, and is to be judged by what comes out. */
uint32_t round_up_pow2(uint32_t n);
