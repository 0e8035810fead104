/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory. The device is software, so its memory is what the daemon reaches and the program
 * does not address: a shared mapping of this process that is only shown by copies and by zero-based
 * regions. It costs no daemon memory and needs no daemon to be had.
 */
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCESS_ALIGN 4u /* copies go in words, as on other devices */

struct uroce_dm {
	struct ibv_dm v; /* first */
	uint8_t *mem;
	size_t length, mapped;
	atomic_uint n_regions;
	bool is_imported;
};

static int check_range(const struct uroce_dm *dm, uint64_t offset, size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return offset % ACCESS_ALIGN || length % ACCESS_ALIGN ? EINVAL : 0;
}

static int memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *host_addr, size_t length)
{
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;
	int err = check_range(dm, offset, length);

	if (!err)
		memcpy(dm->mem + offset, host_addr, length);
	return err;
}

static int memcpy_from_dm(void *host_addr, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;
	int err = check_range(dm, offset, length);

	if (!err)
		memcpy(host_addr, dm->mem + offset, length);
	return err;
}

static int check_attr(const struct ibv_alloc_dm_attr *attr, size_t page)
{
	if (attr->comp_mask)
		return EOPNOTSUPP;
	if (!attr->length || attr->length > UROCE_MAX_DM)
		return EINVAL;
	return attr->log_align_req < 32 && 1u << attr->log_align_req <= page ? 0 : EINVAL;
}

/* The device has so much of it and no more. */
static int charge(struct uroce_context *ctx, size_t size)
{
	if (atomic_fetch_add(&ctx->dm_used, size) + size <= UROCE_MAX_DM)
		return 0;
	atomic_fetch_sub(&ctx->dm_used, size);
	return ENOMEM;
}

static struct uroce_dm *dm_map(struct ibv_context *ibctx, int fd, size_t length, size_t mapped)
{
	struct uroce_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->mem = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (dm->mem == MAP_FAILED) {
		free(dm);
		return NULL;
	}
	dm->length = length;
	dm->mapped = mapped;
	dm->v.context = ibctx;
	dm->v.memcpy_to_dm = memcpy_to_dm;
	dm->v.memcpy_from_dm = memcpy_from_dm;
	return dm;
}

/* Its size is sealed, so that nobody who imports it can be hurt by the others. */
static int make_file(size_t mapped)
{
	int fd = memfd_create("uroce-dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (!ftruncate(fd, (off_t)mapped) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	close(fd);
	return -1;
}

/* Handle 0: nobody can import it, because there is no daemon to ask or it keeps too many already.
 */
static void share(struct uroce_context *ctx, struct uroce_dm *dm, int fd)
{
	struct uroce_share_dm req = { .length = dm->length };
	struct uroce_handle rep;
	struct uroce_ctrl_msg m = { .op = UROCE_OP_SHARE_DM,
				    .body = &req,
				    .len = sizeof(req),
				    .send_fd = fd,
				    .rep = &rep,
				    .rep_size = sizeof(rep) };

	if (uroce_ctrl_is_ours(&ctx->ctrl) && !uroce_context_send(ctx, &m))
		dm->v.handle = rep.handle;
}

struct ibv_dm *uroce_alloc_dm(struct ibv_context *ibctx, struct ibv_alloc_dm_attr *attr)
{
	struct uroce_context *ctx = to_context(ibctx);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped;
	int err = check_attr(attr, page), fd = -1;
	struct uroce_dm *dm = NULL;

	mapped = (attr->length + page - 1) & ~(page - 1);
	if (!err)
		err = charge(ctx, mapped);
	if (err) {
		errno = err;
		return NULL;
	}
	fd = make_file(mapped);
	if (fd >= 0) {
		dm = dm_map(ibctx, fd, attr->length, mapped);
		if (dm)
			share(ctx, dm, fd);
		close(fd);
	}
	if (!dm) {
		atomic_fetch_sub(&ctx->dm_used, mapped);
		errno = ENOMEM;
		return NULL;
	}
	return &dm->v;
}

static void dm_unmap(struct uroce_dm *dm)
{
	munmap(dm->mem, dm->mapped);
	free(dm);
}

int uroce_free_dm(struct ibv_dm *ibdm)
{
	struct uroce_context *ctx = to_context(ibdm->context);
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;

	if (atomic_load(&dm->n_regions))
		return EBUSY;
	if (dm->is_imported) /* its owner's; ibv_unimport_dm is meant */
		return EOPNOTSUPP;
	if (ibdm->handle)
		uroce_context_destroy(ctx, UROCE_OP_UNSHARE_DM, ibdm->handle, NULL);
	atomic_fetch_sub(&ctx->dm_used, dm->mapped);
	dm_unmap(dm);
	return 0;
}

/* The file comes from another program: it must hold all that we map, and stay so. */
static bool is_sound(int fd, uint64_t length)
{
	struct stat st;

	return length && length <= UROCE_MAX_DM && !fstat(fd, &st) && st.st_size >= 0 &&
	       (uint64_t)st.st_size >= length && (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK);
}

struct ibv_dm *uroce_import_dm(struct ibv_context *ibctx, uint32_t handle)
{
	struct uroce_handle req = { .handle = handle };
	struct uroce_import_dm_rep rep;
	int fd;
	struct uroce_ctrl_msg m = { .op = UROCE_OP_IMPORT_DM,
				    .body = &req,
				    .len = sizeof(req),
				    .send_fd = -1,
				    .rep = &rep,
				    .rep_size = sizeof(rep),
				    .fds = &fd,
				    .max_fds = 1 };
	int err = uroce_context_send(to_context(ibctx), &m);
	struct uroce_dm *dm = NULL;

	if (!err && m.n_fds != 1)
		err = EIO;
	if (!err) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE);

		err = ENOMEM;
		if (!is_sound(fd, rep.length))
			err = EPROTO;
		else
			dm = dm_map(ibctx, fd, rep.length, (rep.length + page - 1) & ~(page - 1));
		close(fd);
	}
	if (!dm) {
		errno = err;
		return NULL;
	}
	dm->v.handle = handle;
	dm->is_imported = true;
	return &dm->v;
}

void uroce_unimport_dm(struct ibv_dm *ibdm)
{
	dm_unmap((struct uroce_dm *)ibdm);
}

struct ibv_mr *uroce_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset,
			       size_t length, unsigned access)
{
	struct uroce_dm *dm = (struct uroce_dm *)ibdm;
	struct ibv_mr *mr;

	if (pd->context != ibdm->context || !(access & IBV_ACCESS_ZERO_BASED) ||
	    (access & IBV_ACCESS_ON_DEMAND) || offset > dm->length ||
	    length > dm->length - offset) {
		errno = EINVAL;
		return NULL;
	}
	mr = uroce_mr_register(pd, dm->mem + offset, length, 0, (int)access);
	if (!mr)
		return NULL;
	mr->length = length; /* and no address: the program has none for it */
	((struct uroce_mr *)mr)->dm = dm;
	atomic_fetch_add(&dm->n_regions, 1);
	return mr;
}

void uroce_dm_put(struct uroce_dm *dm)
{
	if (dm)
		atomic_fetch_sub(&dm->n_regions, 1);
}
