/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/host/appmem.h"

#define ACCESS_WRITES   (UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_ATOMIC)
#define ACCESS_MW_BIND  0x10u
#define ACCESS_FLUSH    UROCE_ACCESS_FLUSH_GLOBAL
#define ACCESS_HUGETLB  0x80u       /* a hint about the pages */
#define ACCESS_OPTIONAL 0x3ff00000u /* IBV_ACCESS_OPTIONAL_RANGE: may be ignored */
#define ACCESS_KNOWN                                                                            \
	(UROCE_ACCESS_LOCAL_WRITE | ACCESS_WRITES | UROCE_ACCESS_REMOTE_READ | ACCESS_MW_BIND | \
	 ACCESS_FLUSH | ACCESS_HUGETLB | UROCE_ACCESS_ON_DEMAND)

/* enum ibv_rereg_mr_flags */
#define REREG_TRANSLATION 1u
#define REREG_PD          2u
#define REREG_ACCESS      4u

/* IBA C10-73: remote write or atomic need local write. */
static int check_access(uint32_t access)
{
	if (access & ~(ACCESS_KNOWN | ACCESS_OPTIONAL))
		return -EINVAL;
	return access & ACCESS_WRITES && !(access & UROCE_ACCESS_LOCAL_WRITE) ? -EINVAL : 0;
}

static int check_request(struct session *s, const struct uroce_reg_mr *req)
{
	int err = check_access(req->access);

	if (err)
		return err;
	if (req->addr + req->length < req->addr || req->iova + req->length < req->iova)
		return -EINVAL;
	if (!s->mem)
		session_open_memory(s);
	if (!s->mem)
		return s->memory_err;
	if (req->access & UROCE_ACCESS_ON_DEMAND)
		return 0;
	return appmem_check(s->mem, req->addr, req->length, req->access & UROCE_ACCESS_LOCAL_WRITE);
}

static struct cmd add_command(const struct mr *mr, const struct pd *pd,
			      const struct uroce_reg_mr *reg, uint64_t region)
{
	return (struct cmd) { .op = ENGINE_MR_ADD,
			      .mr_add = { .key = mr->key,
					  .pd = pd->number,
					  .access = reg->access & ACCESS_KNOWN,
					  .iova = reg->iova,
					  .length = reg->length,
					  .addr = reg->addr,
					  .region = region } };
}

static struct cmd del_command(const struct mr *mr)
{
	return (struct cmd) { .op = ENGINE_MR_DEL, .key = mr->key };
}

static int give_to_engines(struct session *s, const struct mr *mr, const struct uroce_reg_mr *req,
			   uint64_t region)
{
	struct cmd cmd = add_command(mr, mr->pd, req, region);
	int err = device_command_all(s->dev, &cmd, NULL);

	if (err) {
		cmd = del_command(mr);
		device_command_all(s->dev, &cmd, NULL);
	}
	return err;
}

/* Shared memory is mapped here too. Not on demand: that may not be there yet, and may change. */
static struct appmem_view *map(struct session *s, const struct uroce_reg_mr *req)
{
	if (req->access & UROCE_ACCESS_ON_DEMAND)
		return NULL;
	return appmem_map(s->mem, req->addr, req->length, req->access & UROCE_ACCESS_LOCAL_WRITE);
}

static uint64_t region_of(const struct session *s, const struct appmem_view *view)
{
	return view ? appmem_view_region(view) : appmem_region(s->mem);
}

/* The request has been checked but for its PD. */
static int add(struct session *s, const struct uroce_reg_mr *req, uint64_t region,
	       struct appmem_view *view, struct uroce_reg_mr_rep *rep)
{
	struct mr *mr = calloc(1, sizeof(*mr));
	uint8_t generation;
	uint32_t index;
	struct cmd cmd;
	int err;

	if (!mr)
		return -ENOMEM;
	mr->pd = handles_get(&s->pds, req->pd);
	err = mr->pd ? 0 : -EINVAL;
	if (!err && numbers_take(&s->dev->keys, &index, &generation))
		err = -ENOMEM;
	if (err)
		goto free_mr;
	mr->key = index << 8 | generation;
	err = give_to_engines(s, mr, req, region);
	if (!err && handles_add(&s->mrs, mr, &rep->handle))
		err = -ENOMEM;
	if (err)
		goto give_key;
	mr->is_null = region == APPMEM_NULL_REGION;
	mr->view = view;
	mr->reg = *req;
	mr->pd->refs++;
	s->dev->n_mr++;
	rep->lkey = rep->rkey = mr->key;
	return 0;
give_key:
	cmd = del_command(mr);
	device_command_all(s->dev, &cmd, NULL);
	numbers_give(&s->dev->keys, index);
free_mr:
	free(mr);
	return err;
}

int request_reg_mr(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_reg_mr *req = body;
	struct uroce_reg_mr_rep *rep = reply_body(r, sizeof(*rep));
	int err = check_request(s, req);
	struct appmem_view *view;

	if (err)
		return err;
	view = map(s, req);
	err = add(s, req, region_of(s, view), view, rep);
	if (err)
		appmem_unmap(view);
	return err;
}

int request_alloc_null_mr(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_reg_mr_rep *rep = reply_body(r, sizeof(*rep));
	struct uroce_reg_mr req = { .pd = h->handle,
				    .access = UROCE_ACCESS_LOCAL_WRITE,
				    .length = UINT64_MAX };
	int err = add(s, &req, APPMEM_NULL_REGION, NULL, rep);

	rep->rkey = 0;
	return err;
}

/* What the region is to be; *pd its domain. */
static int merge(struct session *s, const struct mr *mr, const struct uroce_rereg_mr *req,
		 struct uroce_reg_mr *reg, struct pd **pd)
{
	if (!req->flags || (req->flags & ~(REREG_TRANSLATION | REREG_PD | REREG_ACCESS)))
		return -EINVAL;
	*reg = mr->reg;
	*pd = mr->pd;
	if (req->flags & REREG_TRANSLATION) {
		reg->addr = req->to.addr;
		reg->length = req->to.length;
		reg->iova = req->to.iova;
		reg->map_offset = req->to.map_offset;
	}
	if (req->flags & REREG_ACCESS)
		reg->access = req->to.access;
	if (req->flags & REREG_PD)
		*pd = handles_get(&s->pds, req->to.pd);
	return *pd ? check_request(s, reg) : -EINVAL;
}

/* The region keeps its key; in each engine it changes between two packets. */
int request_rereg_mr(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_rereg_mr *req = body;
	struct uroce_reg_mr_rep *rep = reply_body(r, sizeof(*rep));
	struct mr *mr = handles_get(&s->mrs, req->handle);
	struct appmem_view *view;
	struct uroce_reg_mr reg;
	struct cmd turn[2], open = { .op = ENGINE_MR_OPEN };
	struct pd *pd;
	int err;

	if (!mr || mr->is_null)
		return -EINVAL;
	err = merge(s, mr, req, &reg, &pd);
	if (err)
		return err;
	view = map(s, &reg);
	open.key = mr->key;
	turn[0] = del_command(mr);
	turn[1] = add_command(mr, pd, &reg, region_of(s, view));
	/* A window bound meanwhile would keep the next engine from following. */
	turn[1].mr_add.no_windows = true;
	err = device_turn_all(s->dev, turn, 2);
	if (!err)
		device_command(s->dev, 0, &open, NULL);
	if (err) {
		appmem_unmap(view);
		return err;
	}
	appmem_unmap(mr->view);
	mr->view = view;
	mr->reg = reg;
	mr->pd->refs--;
	pd->refs++;
	mr->pd = pd;
	rep->handle = req->handle;
	rep->lkey = rep->rkey = mr->key;
	return 0;
}

void mr_free(struct session *s, struct mr *mr)
{
	numbers_give(&s->dev->keys, mr->key >> 8);
	mr->pd->refs--;
	s->dev->n_mr--;
	appmem_unmap(mr->view);
	free(mr);
}

int request_dereg_mr(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct mr *mr = handles_get(&s->mrs, h->handle);
	struct cmd cmd;
	int err;

	(void)r;
	if (!mr)
		return -EINVAL;
	cmd = del_command(mr);
	err = device_turn_all(s->dev, &cmd, 1);
	if (err)
		return err; /* windows are bound to it */
	handles_del(&s->mrs, h->handle);
	mr_free(s, mr);
	return 0;
}
