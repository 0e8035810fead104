/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/objects.h"
#include "dataplane/host/appmem.h"

#define ACCESS_WRITES   (UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_ATOMIC)
#define ACCESS_MW_BIND  0x10u
#define ACCESS_HUGETLB  0x80u       /* a hint about the pages */
#define ACCESS_OPTIONAL 0x3ff00000u /* IBV_ACCESS_OPTIONAL_RANGE: may be ignored */
#define ACCESS_KNOWN                                                                            \
	(UROCE_ACCESS_LOCAL_WRITE | ACCESS_WRITES | UROCE_ACCESS_REMOTE_READ | ACCESS_MW_BIND | \
	 ACCESS_HUGETLB | UROCE_ACCESS_ON_DEMAND)

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

static int give_to_engines(struct session *s, const struct mr *mr, const struct uroce_reg_mr *req,
			   uint64_t region)
{
	struct cmd cmd = { .op = ENGINE_MR_ADD,
			   .mr_add = { .key = mr->key,
				       .pd = mr->pd->number,
				       .access = req->access & ACCESS_KNOWN,
				       .iova = req->iova,
				       .length = req->length,
				       .addr = req->addr,
				       .region = region } };
	int err = device_command_all(s->dev, &cmd, NULL);

	if (err) {
		cmd = (struct cmd) { .op = ENGINE_MR_DEL, .key = mr->key };
		device_command_all(s->dev, &cmd, NULL);
	}
	return err;
}

/* The request has been checked but for its PD. */
static int add(struct session *s, const struct uroce_reg_mr *req, uint64_t region,
	       struct uroce_reg_mr_rep *rep)
{
	struct mr *mr = calloc(1, sizeof(*mr));
	uint8_t generation;
	uint32_t index;
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
	mr->pd->refs++;
	s->dev->n_mr++;
	rep->lkey = rep->rkey = mr->key;
	return 0;
give_key:
	device_command_all(s->dev, &(struct cmd) { .op = ENGINE_MR_DEL, .key = mr->key }, NULL);
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

	return err ? err : add(s, req, appmem_region(s->mem), rep);
}

int request_alloc_null_mr(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct uroce_reg_mr_rep *rep = reply_body(r, sizeof(*rep));
	struct uroce_reg_mr req = { .pd = h->handle,
				    .access = UROCE_ACCESS_LOCAL_WRITE,
				    .length = UINT64_MAX };
	int err = add(s, &req, APPMEM_NULL_REGION, rep);

	rep->rkey = 0;
	return err;
}

void mr_free(struct session *s, struct mr *mr)
{
	numbers_give(&s->dev->keys, mr->key >> 8);
	mr->pd->refs--;
	s->dev->n_mr--;
	free(mr);
}

int request_dereg_mr(struct session *s, const void *body, struct reply *r)
{
	const struct uroce_handle *h = body;
	struct mr *mr = handles_del(&s->mrs, h->handle);
	struct cmd cmd = { .op = ENGINE_MR_DEL };

	(void)r;
	if (!mr)
		return -EINVAL;
	cmd.key = mr->key;
	device_command_all(s->dev, &cmd, NULL);
	mr_free(s, mr);
	return 0;
}
