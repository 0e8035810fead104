/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects around libibverbs' public ones. Locks are taken in this order: context
 * `objects`, CQ, event source; the SQ and RQ locks are taken with none of these held.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/abi/abi.h"
#include "dataplane/abi/ctrl.h"
#include "dataplane/abi/ring.h"
#include "provider/abi/library.h"
#include "provider/ctrl_client.h"
#include "provider/event.h"

struct uroce_qp;
struct uroce_cq;
struct uroce_pd;
struct uroce_dm;
struct uroce_mr;

/* A mutex, or nothing where the program promised to come with one thread at a time. */
struct uroce_lock {
	pthread_mutex_t mutex;
	bool is_elided;
};

static inline void uroce_lock(struct uroce_lock *l)
{
	if (!l->is_elided)
		pthread_mutex_lock(&l->mutex);
}

static inline void uroce_unlock(struct uroce_lock *l)
{
	if (!l->is_elided)
		pthread_mutex_unlock(&l->mutex);
}

static inline void uroce_lock_init(struct uroce_lock *l, bool is_elided)
{
	pthread_mutex_init(&l->mutex, NULL);
	l->is_elided = is_elided;
}

static inline void uroce_lock_fini(struct uroce_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

struct uroce_context {
	uint8_t room[VERBS_CONTEXT_ROOM]; /* the library's verbs_context may begin in here */
	struct verbs_context vctx;

	struct uroce_ctrl ctrl;
	uint8_t *uar; /* page 0, then one page a worker */
	size_t uar_size;
	uint32_t n_workers;
	int wake_fd[UROCE_MAX_WORKERS];
	uint64_t probe_word;           /* what the daemon reads and writes back in PROBE_MEMORY */
	struct uroce_device_attr attr; /* static; read at open */
	struct uroce_source *command;  /* cmd_fd */
	struct uroce_source *async;    /* async_fd */
	bool is_imported;              /* by the command descriptor of another */
	atomic_bool is_dead;           /* the daemon is gone: never cleared */
	atomic_ullong looked_at;       /* when a poll last asked after the daemon, ns */

	atomic_size_t dm_used; /* bytes of device memory */

	pthread_mutex_t objects; /* what follows */
	struct uroce_source
		*wake; /* a channel of our own, for pollers that sleep; made when needed */
	struct uroce_cq *cqs;
	struct uroce_qp *qps;
	struct uroce_mr *mrs;
	/* Pollers hold one CQ's lock; an entry is set whole, and cleared under those of its CQs. */
	struct uroce_qp *qp_slot[UROCE_CTX_QPS];
	struct uroce_context *next; /* list of all contexts of this process */
};

struct uroce_cq {
	union verbs_cq v; /* first */
	struct uroce_lock lock;
	uint8_t *mem;
	size_t mem_size;
	struct uroce_cq_page *page;
	size_t page_size; /* of the mapping that is the page's alone; 0: it is in mem */
	uint32_t depth, n_subs, sub_off;
	uint64_t sub_stride;
	uint32_t next_sub; /* where the next poll begins */
	uint32_t cons[UROCE_MAX_WORKERS];
	uint32_t prod[UROCE_MAX_WORKERS]; /* as last looked up: entries before it are there */
	atomic_bool is_unlooked;          /* an event was read and nobody has polled since */
	struct uroce_cqe cur;             /* extended polling: the completion being read */
	bool is_flushing;                 /* extended polling: of a dead daemon, `objects` held */
	struct uroce_pd *domain;          /* parent domain, or NULL */
	struct uroce_source *source;      /* its completion channel, or NULL */
	struct uroce_source *wake;        /* without one: the context's wake-up channel, or NULL */
	atomic_uint events_read;          /* events of either kind the program was given */
	bool is_told_dead;                /* the channel carried a last event for it */
	struct uroce_cq *next;
};

/* What the program posted, kept where only we can write. */
struct uroce_wr_record {
	uint64_t wr_id;
	uint32_t wc_opcode;
};

/* A work queue as its producer sees it. head: next index to fill; tail: oldest not yet completed.
 */
struct uroce_wq {
	struct uroce_lock lock; /* producers; head is stored with it held */
	uint8_t *slots;
	struct uroce_ring *ring;
	struct uroce_wr_record *wr;
	bool is_wr_custom; /* wr came from the parent domain's allocator */
	uint32_t depth, stride;
	uint32_t max_wr, max_sge;
	atomic_uint head;
	atomic_uint tail; /* stored under the CQ's lock */
};

/*
 * A request being written into its slot. The slot is memory that others can write as well, so what
 * we put there and need again is kept here, and nothing is read back.
 */
struct uroce_draft {
	struct uroce_wqe *wqe; /* NULL: none, or refused */
	uint32_t opcode;
	uint32_t num_sge;
	uint32_t inline_len;
	uint8_t flags;
};

/* ibv_wr_*: what lies between ibv_wr_start and ibv_wr_complete. */
struct uroce_wr_build {
	uint32_t first, head;     /* indices of what is being built */
	struct uroce_draft draft; /* the one that setters fill */
	int err;                  /* the first thing refused */
	bool needs_address;       /* UD, XRC: wr_set_ud_addr or wr_set_xrc_srqn has not come yet */
};

struct uroce_srq {
	union verbs_srq v;       /* first */
	struct uroce_lock lock;  /* producers */
	struct uroce_pd *domain; /* parent domain, or NULL */
	uint8_t *mem;
	size_t mem_size;
	struct uroce_ring *ring;
	uint8_t *slots;
	uint32_t srqn;
	uint32_t depth, stride;
	uint32_t max_wr, max_sge;
	uint32_t head;
	bool is_lost; /* the daemon moved it to memory that could not be mapped */
	atomic_uint events_read;
};

struct uroce_qp {
	union verbs_qp v; /* first */
	uint8_t *mem;
	size_t mem_size;
	struct uroce_qp_page *page;
	uint32_t slot, worker;
	uint32_t max_inline;
	bool sq_sig_all;
	bool is_told_dead; /* its first send was completed with a fatal error */
	struct uroce_wq sq, rq;
	struct uroce_wr_build build; /* under the SQ's lock */
	struct uroce_pd *domain;     /* parent domain, or NULL */
	atomic_uint events_read;
	struct uroce_qp *next;
};

struct uroce_mr {
	struct verbs_mr v;   /* first */
	uint64_t iova;       /* the address that WRs use for v.ibv_mr.addr */
	struct uroce_dm *dm; /* which device memory it shows, or NULL */
	uint8_t *mapped;     /* a dma-buf: our mapping of it, or NULL */
	size_t mapped_size;
	struct uroce_mr *next;
};

static inline struct uroce_context *to_context(struct ibv_context *ctx)
{
	return (struct uroce_context *)((uint8_t *)ctx -
					offsetof(struct uroce_context, vctx.context));
}

static inline struct uroce_cq *to_cq(struct ibv_cq *cq)
{
	return (struct uroce_cq *)cq;
}

static inline struct uroce_qp *to_qp(struct ibv_qp *qp)
{
	return (struct uroce_qp *)qp;
}

static inline struct uroce_srq *to_srq(struct ibv_srq *srq)
{
	return (struct uroce_srq *)srq;
}

static inline struct uroce_uar_worker *uar_worker(const struct uroce_context *ctx, uint32_t worker)
{
	return (struct uroce_uar_worker *)(ctx->uar + (size_t)UROCE_UAR_PAGE * (1 + worker));
}

/* provider.c: the library found at load. */
extern struct verbs_library uroce_library;
struct verbs_context *uroce_library_context(struct uroce_context *ctx);

/* context.c */
struct verbs_context *uroce_alloc_context(struct ibv_device *dev, int cmd_fd, void *priv);
struct verbs_context *uroce_import_context(struct ibv_device *dev, int cmd_fd);
void uroce_free_context(struct ibv_context *ctx);
bool uroce_context_is_dead(struct uroce_context *ctx); /* looks at the socket: a system call */
int uroce_context_send(struct uroce_context *ctx, struct uroce_ctrl_msg *m);
int uroce_context_call(struct uroce_context *ctx, uint32_t op, const void *body, uint32_t len,
		       void *rep, uint32_t rep_len);

/*
 * Take an object down. Succeeds with *events_sent 0 where there is nobody to ask any more (a dead
 * daemon, a fork's child), so that programs can clean up.
 */
int uroce_context_destroy(struct uroce_context *ctx, uint32_t op, uint32_t handle,
			  uint32_t *events_sent);

/* device.c */
int uroce_device_attr_read(struct uroce_context *ctx);
int uroce_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t size);
int uroce_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);

/* mr.c, ah.c */
struct ibv_mr *uroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			    int access);
struct ibv_mr *uroce_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 int access); /* of any length, also 0 */
int uroce_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access);
int uroce_dereg_mr(struct verbs_mr *mr);
struct ibv_mr *uroce_alloc_null_mr(struct ibv_pd *pd);

/* dmabuf.c */
struct ibv_mr *uroce_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				   uint64_t iova, int fd, int access);

/* dm.c: memory that the provider owns, for programs that place data on the device. */
#define UROCE_MAX_DM ((size_t)64 << 20)
struct ibv_dm *uroce_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int uroce_free_dm(struct ibv_dm *dm);
struct ibv_mr *uroce_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			       size_t length, unsigned access);
void uroce_dm_put(struct uroce_dm *dm); /* a region of it is gone */

/* share.c: objects of the context whose command descriptor we were given. */
int uroce_share_settle(struct uroce_context *ctx,
		       const char *device); /* be a context of that device */
struct ibv_pd *uroce_import_pd(struct ibv_context *ctx, uint32_t handle);
void uroce_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *uroce_import_mr(struct ibv_pd *pd, uint32_t handle);
void uroce_unimport_mr(struct ibv_mr *mr);
struct ibv_dm *uroce_import_dm(struct ibv_context *ctx, uint32_t handle);
void uroce_unimport_dm(struct ibv_dm *dm);

/* odp.c */
int uroce_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *list, uint32_t n);
struct ibv_ah *uroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int uroce_destroy_ah(struct ibv_ah *ah);
void uroce_ah_attr_pack(struct uroce_ah_attr *to, const struct ibv_ah_attr *from);
void uroce_ah_attr_unpack(struct ibv_ah_attr *to, const struct uroce_ah_attr *from);

/* cq.c, cq_poll.c, cq_ex.c */
struct ibv_cq *uroce_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel,
			       int vector);
struct ibv_cq_ex *uroce_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
/* Attributes have been checked. NULL with errno set. */
struct uroce_cq *uroce_cq_make(struct uroce_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			       struct uroce_pd *domain, bool is_single_threaded);
int uroce_resize_cq(struct ibv_cq *cq, int cqe);
int uroce_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int uroce_destroy_cq(struct ibv_cq *cq);
int uroce_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void uroce_cq_event(struct ibv_cq *cq);
int uroce_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
void uroce_cq_purge(struct uroce_cq *cq, const struct uroce_qp *qp); /* lock held */
/* The next completion for the program, wr_id and opcode as it posted them. Lock held. */
bool uroce_cq_take(struct uroce_cq *cq, struct uroce_cqe *cqe);
void uroce_cq_rotate(struct uroce_cq *cq); /* after the last take. Lock held */
/* The daemon is dead: the next request of this CQ's QPs, flushed. `objects` and lock held. */
bool uroce_cq_take_flushed(struct uroce_context *ctx, struct uroce_cq *cq, struct uroce_cqe *cqe);
/* A poll was empty: let others work. 0, or EIO: the CQ is in error. Lock not held. */
int uroce_cq_rest(struct uroce_context *ctx, struct uroce_cq *cq);
/* Whether completions (only solicited and failed ones) wait that nobody has polled. */
bool uroce_cq_holds(struct uroce_cq *cq, bool solicited_only);
struct uroce_ring *uroce_cq_sub(const struct uroce_cq *cq, uint32_t i);

/* qp.c, qp_attr.c */
struct ibv_qp *uroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *uroce_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int uroce_destroy_qp(struct ibv_qp *qp);
int uroce_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int uroce_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
void uroce_qp_free(struct uroce_qp *qp);
/* A work queue in shared memory; depth 0: none. Domain: NULL or the parent domain. */
int uroce_wq_init(struct uroce_wq *wq, struct uroce_pd *domain, struct uroce_ring *ring,
		  uint8_t *slots, uint32_t depth, uint32_t stride);
/* Purge; leave: also leave the table. `objects` held. */
void uroce_qp_forget_work(struct uroce_qp *qp, bool leave);

/* wr_ex.c: ibv_wr_* on a QP. 0, or EOPNOTSUPP for operations its type has not. */
int uroce_wr_ex_check(enum ibv_qp_type type, uint64_t send_ops);
void uroce_wr_ex_init(struct uroce_qp *qp, uint64_t send_ops);

/* mw.c */
struct ibv_mw *uroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int uroce_dealloc_mw(struct ibv_mw *mw);
int uroce_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* mcast.c */
int uroce_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int uroce_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* srq.c */
struct ibv_srq *uroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int uroce_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int uroce_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int uroce_destroy_srq(struct ibv_srq *srq);
int uroce_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* As ibv_create_srq; `how` has type, domain and CQ. */
struct uroce_srq *uroce_srq_make(struct ibv_pd *pd, struct ibv_srq_attr *attr,
				 const struct uroce_create_srq *how);

/* xrc.c */
struct ibv_xrcd *uroce_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int uroce_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_srq *uroce_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int uroce_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_qp *uroce_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
struct ibv_qp *uroce_xrc_target_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

/* sq.c, rq.c */
int uroce_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int uroce_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void uroce_rqe_put(void *slot, const struct ibv_recv_wr *wr);
void uroce_qp_ring(struct uroce_qp *qp);

/* rt.c */
int uroce_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
uint64_t uroce_clock_ns(void); /* the device's clock */

/* polling.c: a poll of this thread found work; or nothing: the time in ns if the clock was read. */
void uroce_poll_found(void);
uint64_t uroce_poll_empty(struct uroce_cq *cq);

/* map.c: map a memfd of exactly `size` bytes; closes the fd. NULL with errno set. */
uint8_t *uroce_map(int fd, uint64_t size);
void uroce_unmap(uint8_t *mem, uint64_t size);

/* hook.c: route libibverbs' read, write and close through event.c. Idempotent. */
void uroce_hook_install(void);

/* report.c: one line on stderr, once for each kind in the life of the process. */
enum uroce_complaint {
	COMPLAIN_LIBRARY,
	COMPLAIN_NO_DAEMON,
	COMPLAIN_VERSION,
	COMPLAIN_MEMORY,
	COMPLAIN_PROTOCOL,
	COMPLAIN_LOST,
	COMPLAIN_N,
};
void uroce_complain(enum uroce_complaint kind, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
