/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a device: the control connection, the doorbell page, and the ops libibverbs shall call.
 */
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider/domain.h"
#include "provider/hello.h"

/* clang-format off */
#define IMPL(name) { VERBS_OP_##name, (verbs_fn)(uintptr_t)uroce_##name }
/* clang-format on */

static void async_event(struct ibv_context *ctx, struct ibv_async_event *event);
#define uroce_async_event async_event

static const struct verbs_impl impl_table[] = {
	/* clang-format off */
	IMPL(advise_mr),
	IMPL(alloc_dm),
	IMPL(alloc_mw),
	IMPL(alloc_null_mr),
	IMPL(alloc_parent_domain),
	IMPL(alloc_pd),
	IMPL(alloc_td),
	IMPL(async_event),
	IMPL(attach_mcast),
	IMPL(bind_mw),
	IMPL(close_xrcd),
	IMPL(cq_event),
	IMPL(create_ah),
	IMPL(create_cq),
	IMPL(create_cq_ex),
	IMPL(create_qp),
	IMPL(create_qp_ex),
	IMPL(create_srq),
	IMPL(create_srq_ex),
	IMPL(dealloc_mw),
	IMPL(dealloc_pd),
	IMPL(dealloc_td),
	IMPL(dereg_mr),
	IMPL(destroy_ah),
	IMPL(destroy_cq),
	IMPL(destroy_qp),
	IMPL(destroy_srq),
	IMPL(detach_mcast),
	IMPL(free_context),
	IMPL(free_dm),
	IMPL(get_srq_num),
	IMPL(import_dm),
	IMPL(import_mr),
	IMPL(import_pd),
	IMPL(modify_cq),
	IMPL(modify_qp),
	IMPL(modify_srq),
	IMPL(open_qp),
	IMPL(open_xrcd),
	IMPL(poll_cq),
	IMPL(post_recv),
	IMPL(post_send),
	IMPL(post_srq_recv),
	IMPL(query_device_ex),
	IMPL(query_port),
	IMPL(query_qp),
	IMPL(query_rt_values),
	IMPL(query_srq),
	IMPL(reg_dm_mr),
	IMPL(reg_dmabuf_mr),
	IMPL(reg_mr),
	IMPL(req_notify_cq),
	IMPL(rereg_mr),
	IMPL(resize_cq),
	IMPL(unimport_dm),
	IMPL(unimport_mr),
	IMPL(unimport_pd),
	/* clang-format on */
};

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uroce_context *contexts;

/*
 * Events handed to the program, for the destroy call that waits until they are acknowledged. The
 * thread that reads an event may not be the one that made its object: the lock under which that
 * became known makes all of it seen.
 */
static void async_event(struct ibv_context *ibctx, struct ibv_async_event *event)
{
	struct uroce_context *ctx = to_context(ibctx);

	pthread_mutex_lock(&ctx->objects);
	pthread_mutex_unlock(&ctx->objects);
	switch ((int)event->event_type) {
	case IBV_EVENT_CQ_ERR:
		atomic_fetch_add(&to_cq(event->element.cq)->events_read, 1);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		atomic_fetch_add(&to_qp(event->element.qp)->events_read, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		atomic_fetch_add(&to_srq(event->element.srq)->events_read, 1);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		uroce_context_is_dead(ctx);
		break;
	default:
		break;
	}
}

/*
 * A fork's child shares our descriptors' files: while it lives, the daemon would not see us die,
 * and its destructors would talk on our socket. So the child lets go of them at once.
 */
static void fork_prepare(void)
{
	pthread_mutex_lock(&contexts_lock);
	uroce_sources_hold();
}

static void fork_parent(void)
{
	uroce_sources_release(false);
	pthread_mutex_unlock(&contexts_lock);
}

static void fork_child(void)
{
	for (struct uroce_context *ctx = contexts; ctx; ctx = ctx->next) {
		close(ctx->ctrl.fd);
		ctx->ctrl.fd = -1;
		for (uint32_t w = 0; w < ctx->n_workers; w++) {
			close(ctx->wake_fd[w]);
			ctx->wake_fd[w] = -1;
		}
	}
	contexts = NULL;
	uroce_sources_release(true);
	pthread_mutex_unlock(&contexts_lock);
}

static void install_once(void)
{
	uroce_hook_install();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void enlist(struct uroce_context *ctx)
{
	pthread_mutex_lock(&contexts_lock);
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&contexts_lock);
}

static void delist(struct uroce_context *ctx)
{
	pthread_mutex_lock(&contexts_lock);
	for (struct uroce_context **p = &contexts; *p; p = &(*p)->next) {
		if (*p == ctx) {
			*p = ctx->next;
			break;
		}
	}
	pthread_mutex_unlock(&contexts_lock);
}

static int read_socket_path(const struct ibv_device *dev, char *path, size_t size)
{
	char name[IBV_SYSFS_PATH_MAX + 32];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%s/device/uroce_socket", dev->ibdev_path);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	n = read(fd, path, size - 1);
	close(fd);
	if (n <= 0)
		return ENODEV;
	path[n] = 0;
	path[strcspn(path, "\n")] = 0;
	return 0;
}

/* If the hook is missing, commands shall fail (EBADF), not vanish in a writable /dev/null. */
static int make_read_only(int cmd_fd)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return errno;
	if (dup3(fd, cmd_fd, O_CLOEXEC) < 0)
		err = errno;
	close(fd);
	return err;
}

static int connect_daemon(struct uroce_context *ctx, const struct ibv_device *dev)
{
	char path[PATH_MAX];
	int err = read_socket_path(dev, path, sizeof(path));

	if (err) {
		uroce_complain(COMPLAIN_NO_DAEMON, "%s: %s/device/uroce_socket: %s", dev->name,
			       dev->ibdev_path, strerror(err));
		return ENODEV;
	}
	err = uroce_ctrl_connect(&ctx->ctrl, path);
	if (err) {
		uroce_complain(COMPLAIN_NO_DAEMON,
			       "no daemon answers for %s at %s (%s): start uroced, "
			       "or run the program with `uroce run -- PROGRAM`",
			       dev->name, path, strerror(err));
		return ENODEV;
	}
	err = uroce_hello(ctx, dev->name, path); /* an import: the daemon knows which device */
	if (err)
		uroce_ctrl_close(&ctx->ctrl);
	return err;
}

static int add_sources(struct uroce_context *ctx, struct uroce_source **command)
{
	*command = uroce_source_add(ctx, ctx->vctx.context.cmd_fd, SOURCE_COMMAND, 0);
	if (!*command)
		return ENOMEM;
	ctx->async = uroce_source_add(ctx, ctx->vctx.context.async_fd, SOURCE_ASYNC, 0);
	if (ctx->async)
		return 0;
	uroce_source_remove(*command);
	return ENOMEM;
}

static int context_open(struct uroce_context *ctx, struct ibv_device *dev)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err = ctx->is_imported ? 0 : make_read_only(ctx->vctx.context.cmd_fd);

	if (err)
		return err;
	pthread_mutex_init(&ctx->objects, NULL);
	err = connect_daemon(ctx, dev);
	if (err)
		return err;
	err = uroce_device_attr_read(ctx);
	if (!err)
		err = add_sources(ctx, &ctx->command);
	if (err) {
		uroce_hello_undo(ctx);
		uroce_ctrl_close(&ctx->ctrl);
		return err;
	}
	/* All vectors are one to us, but clients ask for one a CPU. */
	ctx->vctx.context.num_comp_vectors = n_cpus > 0 ? (int)n_cpus : 1;
	enlist(ctx);
	return 0;
}

static struct verbs_context *context_make(struct ibv_device *dev, int cmd_fd, bool is_imported)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t below = offsetof(struct uroce_context, vctx) + sizeof(struct verbs_context) -
		       uroce_library.layout->context_size;
	verbs_fn slots[VERBS_N_OPS];
	struct uroce_context *ctx;
	int err;

	pthread_once(&once, install_once);
	ctx = _verbs_init_and_alloc_context(dev, cmd_fd, sizeof(*ctx),
					    (struct verbs_context *)below, 0);
	if (!ctx)
		return NULL;
	ctx->is_imported = is_imported;
	err = context_open(ctx, dev);
	if (err) {
		verbs_uninit_context(uroce_library_context(ctx));
		free(ctx);
		errno = err;
		return NULL;
	}
	uroce_verbs_ops_fill(slots, uroce_library.release, impl_table,
			     sizeof(impl_table) / sizeof(*impl_table));
	verbs_set_ops(uroce_library_context(ctx), slots);
	return uroce_library_context(ctx);
}

struct verbs_context *uroce_alloc_context(struct ibv_device *dev, int cmd_fd, void *priv)
{
	(void)priv;
	return context_make(dev, cmd_fd, false);
}

struct verbs_context *uroce_import_context(struct ibv_device *dev, int cmd_fd)
{
	return context_make(dev, cmd_fd, true);
}

void uroce_free_context(struct ibv_context *ibctx)
{
	struct uroce_context *ctx = to_context(ibctx);

	delist(ctx);
	if (ctx->wake)
		uroce_channel_destroy(ctx->wake);
	uroce_source_remove(ctx->command);
	uroce_source_remove(ctx->async);
	uroce_hello_undo(ctx);
	uroce_ctrl_close(&ctx->ctrl);
	verbs_uninit_context(uroce_library_context(ctx));
	pthread_mutex_destroy(&ctx->objects);
	free(ctx);
}

bool uroce_context_is_dead(struct uroce_context *ctx)
{
	const struct uroce_uar *uar = (const struct uroce_uar *)ctx->uar;
	uint32_t fatal;

	if (atomic_load(&ctx->is_dead))
		return true;
	if (!uroce_ctrl_is_ours(&ctx->ctrl))
		return false;
	fatal = __atomic_load_n(&uar->fatal, __ATOMIC_ACQUIRE);
	if (!fatal && !uroce_ctrl_is_hung_up(&ctx->ctrl))
		return false;
	atomic_store(&ctx->is_dead, true);
	uroce_complain(COMPLAIN_LOST,
		       fatal == UROCE_UAR_REMOVED ? "the device %s was removed" :
						    "the daemon that served %s is gone",
		       ctx->vctx.context.device->name);
	return true;
}

int uroce_context_call(struct uroce_context *ctx, uint32_t op, const void *body, uint32_t len,
		       void *rep, uint32_t rep_len)
{
	struct uroce_ctrl_msg m = {
		.op = op, .body = body, .len = len, .send_fd = -1, .rep = rep, .rep_size = rep_len
	};

	return uroce_context_send(ctx, &m);
}

int uroce_context_send(struct uroce_context *ctx, struct uroce_ctrl_msg *m)
{
	int err = uroce_ctrl_call(&ctx->ctrl, m);

	if (err && atomic_load(&ctx->ctrl.is_broken))
		uroce_context_is_dead(ctx);
	return err;
}

int uroce_context_destroy(struct uroce_context *ctx, uint32_t op, uint32_t handle,
			  uint32_t *events_sent)
{
	struct uroce_handle body = { .handle = handle };
	struct uroce_destroy_rep rep;
	int err = uroce_context_call(ctx, op, &body, sizeof(body), &rep, sizeof(rep));

	if (err && (uroce_context_is_dead(ctx) || !uroce_ctrl_is_ours(&ctx->ctrl)))
		err = 0;
	if (events_sent)
		*events_sent = rep.events_sent;
	return err;
}
