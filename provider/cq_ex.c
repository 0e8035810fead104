/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended CQs: one completion at a time, read field by field from a copy. Between start_poll and
 * end_poll the CQ's lock is held.
 */
#include "provider/domain.h"

#include <errno.h>
#include <time.h>

#define WC_FLAGS                                                       \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define ATTR_MASK (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)

static struct uroce_cq *from_ex(struct ibv_cq_ex *cq)
{
	return (struct uroce_cq *)cq;
}

static int show(struct ibv_cq_ex *ex, const struct uroce_cq *cq)
{
	ex->wr_id = cq->cur.wr_id;
	ex->status = (enum ibv_wc_status)cq->cur.status;
	return 0;
}

/* Flushing goes over the QPs, whose list must not change meanwhile. */
static int start_dead(struct uroce_context *ctx, struct uroce_cq *cq)
{
	pthread_mutex_lock(&ctx->objects);
	uroce_lock(&cq->lock);
	if (uroce_cq_take(cq, &cq->cur) || uroce_cq_take_flushed(ctx, cq, &cq->cur)) {
		cq->is_flushing = true;
		return show(&cq->v.cq_ex, cq);
	}
	uroce_unlock(&cq->lock);
	pthread_mutex_unlock(&ctx->objects);
	return EIO;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct uroce_context *ctx = to_context(ex->context);
	struct uroce_cq *cq = from_ex(ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	uroce_lock(&cq->lock);
	if (uroce_cq_take(cq, &cq->cur)) {
		uroce_poll_found();
		return show(ex, cq);
	}
	uroce_cq_rotate(cq);
	uroce_unlock(&cq->lock);
	if (atomic_load_explicit(&ctx->is_dead, memory_order_relaxed))
		return start_dead(ctx, cq);
	err = uroce_cq_rest(ctx, cq);
	return err ? err : ENOENT;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct uroce_cq *cq = from_ex(ex);

	if (uroce_cq_take(cq, &cq->cur))
		return show(ex, cq);
	if (cq->is_flushing && uroce_cq_take_flushed(to_context(ex->context), cq, &cq->cur))
		return show(ex, cq);
	return ENOENT;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct uroce_context *ctx = to_context(ex->context);
	struct uroce_cq *cq = from_ex(ex);
	bool was_flushing = cq->is_flushing;

	cq->is_flushing = false;
	uroce_cq_rotate(cq);
	uroce_unlock(&cq->lock);
	if (was_flushing)
		pthread_mutex_unlock(&ctx->objects);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)from_ex(ex)->cur.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.src_qp;
}

static unsigned read_wc_flags(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.flags;
}

/* RoCE has no LIDs. */
static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.timestamp;
}

/* The two clocks' distance is that of now: a wall clock set in between shows as set before. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	struct timespec wall;
	uint64_t now = uroce_clock_ns();

	clock_gettime(CLOCK_REALTIME, &wall);
	return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec -
	       (now - from_ex(ex)->cur.timestamp);
}

static void set_readers(struct ibv_cq_ex *ex, uint64_t flags)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

static int check(const struct ibv_cq_init_attr_ex *a, struct uroce_pd **domain, bool *is_single)
{
	*domain = NULL;
	*is_single = false;
	if (a->comp_mask & ~(uint32_t)ATTR_MASK)
		return EINVAL;
	if (a->wc_flags & ~(uint64_t)WC_FLAGS)
		return EOPNOTSUPP;
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		if (a->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
			return EOPNOTSUPP;
		*is_single = a->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	}
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		*domain = uroce_domain_of(a->parent_domain);
		if (!*domain)
			return EINVAL;
	}
	return 0;
}

struct ibv_cq_ex *uroce_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct uroce_pd *domain;
	struct uroce_cq *cq;
	bool is_single;
	int err = check(attr, &domain, &is_single);

	if (err) {
		errno = err;
		return NULL;
	}
	cq = uroce_cq_make(to_context(ctx), attr, domain, is_single);
	if (!cq)
		return NULL;
	set_readers(&cq->v.cq_ex, attr->wc_flags);
	return &cq->v.cq_ex;
}
