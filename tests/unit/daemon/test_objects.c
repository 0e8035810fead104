/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/objects.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/rig.h"

static struct client c;
static uint32_t pd, cq;
static uint8_t buffer[10000];

static void setup(void)
{
	rig_setup();
	client_connect(&c);
	client_hello(&c);
	pd = client_pd(&c);
	cq = client_cq(&c, 0);
}

static void teardown(void)
{
	client_close(&c);
	rig_teardown();
}

static const struct {
	uint32_t access;
	uint32_t err;
} access_rule[] = {
	{ 0, 0 },
	{ 1, 0 },
	{ 4, 0 },
	{ 15, 0 },
	{ 0x10 | 1, 0 },
	{ 2, EINVAL },
	{ 8, EINVAL },
	{ 2 | 4, EINVAL },
	{ 8 | 4, EINVAL },
	{ 0x20, EINVAL },
	{ 0x40, 0 },
	{ 1u << 30, EINVAL },
	{ 0x200, EINVAL },
	{ 1 | 1u << 20, 0 },
	{ 1 | 1u << 29, 0 },
};
#define N_RULES ((int)(sizeof(access_rule) / sizeof(access_rule[0])))

static uint32_t reg(uint64_t addr, uint64_t iova, uint64_t len, uint32_t access)
{
	struct uroce_reg_mr q = {
		.pd = pd, .access = access, .addr = addr, .iova = iova, .length = len
	};

	return client_request(&c, UROCE_OP_REG_MR, &q, sizeof(q));
}

START_TEST(access_flags_follow_the_rules)
{
	uint64_t a = (uint64_t)(uintptr_t)buffer;

	ck_assert_uint_eq(reg(a, a, 100, access_rule[_i].access), access_rule[_i].err);
	if (access_rule[_i].err)
		ck_assert_uint_eq(fake.n[ENGINE_MR_ADD], 0);
}
END_TEST

START_TEST(regions_that_are_not_there_are_refused)
{
	uint64_t a = (uint64_t)(uintptr_t)buffer;
	uint8_t *ro = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_uint_eq(reg(16, 16, 8, 0), EFAULT);
	ck_assert_uint_eq(reg(16, 16, 0, 15), 0);
	ck_assert_uint_eq(reg(UINT64_MAX - 5, 0, 100, 0), EINVAL);
	ck_assert_uint_eq(reg(a, UINT64_MAX - 5, 100, 0), EINVAL);
	ck_assert_uint_eq(reg((uint64_t)(uintptr_t)ro, 0, 8192, 0), 0);
	ck_assert_uint_eq(reg((uint64_t)(uintptr_t)ro, 0, 8192, 1), EFAULT);
	pd = 12345;
	ck_assert_uint_eq(reg(a, a, 100, 0), EINVAL);
	munmap(ro, 8192);
}
END_TEST

START_TEST(a_region_goes_to_every_engine_and_leaves_every_engine)
{
	uint32_t mr = client_mr(&c, pd, buffer, sizeof(buffer));
	struct uroce_reg_mr_rep *rep = (struct uroce_reg_mr_rep *)c.body;
	uint32_t key = rep->lkey;

	ck_assert_uint_eq(rep->lkey, rep->rkey);
	ck_assert_uint_ne(key >> 8, 0);
	ck_assert_uint_eq(fake.n[ENGINE_MR_ADD], RIG_WORKERS);
	ck_assert_uint_eq(fake.last.mr_add.key, key);
	ck_assert_uint_eq(fake.last.mr_add.length, sizeof(buffer));
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), EBUSY);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DEREG_MR, mr), 0);
	ck_assert_uint_eq(fake.n[ENGINE_MR_DEL], RIG_WORKERS);
	ck_assert_uint_eq(fake.last.key, key);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DEREG_MR, mr), EINVAL);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), 0);
}
END_TEST

START_TEST(a_key_is_not_used_again_at_once)
{
	uint32_t mr = client_mr(&c, pd, buffer, 1);
	uint32_t key = ((struct uroce_reg_mr_rep *)c.body)->lkey;

	client_destroy(&c, UROCE_OP_DEREG_MR, mr);
	for (unsigned i = 0; i < 100; i++) {
		mr = client_mr(&c, pd, buffer, 1);
		ck_assert_uint_ne(((struct uroce_reg_mr_rep *)c.body)->lkey, key);
		client_destroy(&c, UROCE_OP_DEREG_MR, mr);
	}
}
END_TEST

START_TEST(an_engine_that_refuses_leaves_nothing_behind)
{
	uint64_t a = (uint64_t)(uintptr_t)buffer;

	fake.fail_op = ENGINE_MR_ADD + 1;
	fake.fail_err = -ENOSPC;
	ck_assert_uint_eq(reg(a, a, 10, 1), ENOSPC);
	ck_assert_uint_eq(c.s->mrs.count, 0);
	ck_assert_uint_eq(c.s->dev->keys.used, 0);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), 0);
}
END_TEST

START_TEST(a_cq_has_one_sub_ring_for_each_worker)
{
	struct uroce_create_cq_rep *rep = (struct uroce_create_cq_rep *)c.body;
	struct stat st;

	client_cq(&c, 0);
	ck_assert_uint_eq(rep->depth, 128);
	ck_assert_uint_eq(rep->n_subs, RIG_WORKERS);
	ck_assert_uint_ge(rep->size, rep->sub_off + rep->n_subs * rep->sub_stride);
	ck_assert_uint_eq(rep->sub_stride, 128 + 128 * 64);
	ck_assert_uint_eq(c.n_fds, 1);
	fstat(c.fds[0], &st);
	ck_assert_uint_eq((uint64_t)st.st_size, rep->size);
	ck_assert_ptr_eq((uint8_t *)fake.last.cq_add.ring,
			 (uint8_t *)fake.last.cq_add.page + rep->sub_off + rep->sub_stride);
}
END_TEST

START_TEST(impossible_cqs_are_refused)
{
	struct uroce_create_cq q = { .cqe = 0 };

	ck_assert_uint_eq(client_request(&c, UROCE_OP_CREATE_CQ, &q, sizeof(q)), EINVAL);
	q.cqe = UROCE_MAX_CQE + 1;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_CREATE_CQ, &q, sizeof(q)), EINVAL);
	q.cqe = 1;
	q.channel = 77;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_CREATE_CQ, &q, sizeof(q)), EINVAL);
	ck_assert_uint_eq(c.s->cqs.count, 1);
	ck_assert_uint_eq(c.s->dev->cqns.used, 1);
}
END_TEST

START_TEST(a_qp_gets_at_least_what_it_asked_for)
{
	struct uroce_create_qp_rep *rep = (struct uroce_create_qp_rep *)c.body;

	client_qp(&c, pd, cq); /* 10, 20, 3 SGEs, 2 SGEs, 100 inline */
	ck_assert_uint_eq(rep->sq_depth, 16);
	ck_assert_uint_eq(rep->rq_depth, 32);
	ck_assert_uint_eq(rep->cap.max_send_wr, 16);
	ck_assert_uint_eq(rep->cap.max_recv_wr, 32);
	ck_assert_uint_eq(rep->sq_stride, 192);
	ck_assert_uint_eq(rep->cap.max_inline, 128);
	ck_assert_uint_eq(rep->rq_stride, 48);
	ck_assert_uint_eq(rep->sq_off % 64, 0);
	ck_assert_uint_eq(rep->rq_off, rep->sq_off + 16 * 192);
	ck_assert_uint_ge(rep->size, rep->rq_off + 32 * 48);
	ck_assert_uint_eq(rep->worker, (rep->qpn & 0xffff) % RIG_WORKERS);
	ck_assert_uint_ge(rep->qpn & 0xffff, 2);
	ck_assert_uint_eq(c.s->qpn_of_slot[rep->slot], rep->qpn);
	ck_assert_uint_eq(c.n_fds, 1);
}
END_TEST

static uint32_t create_qp(struct uroce_create_qp q)
{
	if (!q.pd)
		q.pd = pd;
	if (!q.send_cq)
		q.send_cq = cq;
	if (!q.recv_cq)
		q.recv_cq = cq;
	return client_request(&c, UROCE_OP_CREATE_QP, &q, sizeof(q));
}

START_TEST(impossible_qps_are_refused)
{
	struct uroce_qp_cap ok = { 1, 1, 1, 1, 0 };

	ck_assert_uint_eq(create_qp((struct uroce_create_qp) { .type = 99, .cap = ok }),
			  EOPNOTSUPP);
	ck_assert_uint_eq(create_qp((struct uroce_create_qp) { .type = 8, .cap = ok }), EOPNOTSUPP);
	ck_assert_uint_eq(create_qp((struct uroce_create_qp) { .type = 2, .pd = 9, .cap = ok }),
			  EINVAL);
	ck_assert_uint_eq(
		create_qp((struct uroce_create_qp) { .type = 2, .send_cq = 9, .cap = ok }), EINVAL);
	ck_assert_uint_eq(
		create_qp((struct uroce_create_qp) { .type = 2, .recv_cq = pd + 7, .cap = ok }),
		EINVAL);
	for (unsigned i = 0; i < 5; i++) {
		struct uroce_create_qp q = { .type = 2, .cap = ok };

		((uint32_t *)&q.cap)[i] = i < 2   ? UROCE_MAX_QP_WR + 1
					  : i < 4 ? UROCE_MAX_SGE + 1
						  : UROCE_MAX_INLINE + 1;
		ck_assert_uint_eq(create_qp(q), EINVAL);
		((uint32_t *)&q.cap)[i] = UINT32_MAX;
		ck_assert_uint_eq(create_qp(q), EINVAL);
	}
	ck_assert_uint_eq(c.s->qps.count, 0);
	ck_assert_uint_eq(c.s->dev->qpns.used, 0);
	ck_assert_uint_eq(c.s->slots.used, 0);
}
END_TEST

START_TEST(the_largest_qp_is_possible_and_a_qp_without_queues_too)
{
	struct uroce_create_qp q = { .type = 2,
				     .cap = { UROCE_MAX_QP_WR, UROCE_MAX_QP_WR, UROCE_MAX_SGE,
					      UROCE_MAX_SGE, UROCE_MAX_INLINE } };
	struct uroce_create_qp_rep *rep = (struct uroce_create_qp_rep *)c.body;

	ck_assert_uint_eq(create_qp(q), 0);
	ck_assert_uint_eq(rep->sq_stride, 1024);
	ck_assert_uint_eq(rep->cap.max_inline, UROCE_MAX_INLINE);
	memset(&q.cap, 0, sizeof(q.cap));
	ck_assert_uint_eq(create_qp(q), 0);
	ck_assert_uint_eq(rep->cap.max_send_wr, 0);
	ck_assert_uint_eq(rep->sq_depth, 0);
	ck_assert_uint_eq(rep->rq_depth, 0);
}
END_TEST

START_TEST(shared_memory_has_a_quota_that_comes_back)
{
	struct uroce_create_cq q = { .cqe = UROCE_MAX_CQE };
	uint64_t before = c.s->bytes;
	uint32_t handle[64];
	unsigned n = 0;

	while (n < 64 && client_request(&c, UROCE_OP_CREATE_CQ, &q, sizeof(q)) == 0)
		handle[n++] = client_handle(&c);
	ck_assert_uint_eq(c.err, ENOMEM);
	ck_assert_uint_gt(n, 2);
	ck_assert_uint_le(c.s->bytes, SESSION_MAX_BYTES);
	while (n--)
		ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CQ, handle[n]), 0);
	ck_assert_uint_eq(c.s->bytes, before);
}
END_TEST

START_TEST(a_window_is_known_to_all_engines)
{
	struct uroce_alloc_mw q = { .pd = pd, .type = 1 };
	struct uroce_alloc_mw_rep rep;
	struct uroce_device_attr attr;

	ck_assert_uint_eq(client_request(&c, UROCE_OP_QUERY_DEVICE, NULL, 0), 0);
	memcpy(&attr, c.body, sizeof(attr));
	ck_assert_uint_gt(attr.max_mw, 0);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ALLOC_MW, &q, sizeof(q)), 0);
	memcpy(&rep, c.body, sizeof(rep));
	ck_assert_uint_eq(fake.n[ENGINE_MW_ADD], RIG_WORKERS);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), EBUSY);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_MW, rep.handle), 0);
	ck_assert_uint_eq(fake.n[ENGINE_MW_DEL], RIG_WORKERS);
	fake.fail_op = 1 + ENGINE_MW_ADD;
	fake.fail_err = -EINVAL;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ALLOC_MW, &q, sizeof(q)), EINVAL);
	ck_assert_uint_eq(fake.n[ENGINE_MW_DEL], 2 * RIG_WORKERS);
}
END_TEST

START_TEST(a_cq_is_resized_or_stays_as_it_was)
{
	struct uroce_resize_cq q = { .handle = cq, .cqe = 1000 };
	struct uroce_create_cq_rep *rep = (struct uroce_create_cq_rep *)c.body;
	uint64_t before = c.s->bytes;

	fake.fail_op = 1 + ENGINE_CQ_RESIZE;
	fake.fail_err = -EINVAL;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_RESIZE_CQ, &q, sizeof(q)), EINVAL);
	ck_assert_uint_eq(c.s->bytes, before);
	fake.fail_op = 0;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_RESIZE_CQ, &q, sizeof(q)), 0);
	ck_assert_uint_eq(rep->depth, 1024);
	ck_assert_uint_eq(c.n_fds, 1);
	client_close_fds(&c);
	q.cqe = 0;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_RESIZE_CQ, &q, sizeof(q)), EINVAL);
	q.cqe = UROCE_MAX_CQE + 1;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_RESIZE_CQ, &q, sizeof(q)), EINVAL);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CQ, cq), 0);
}
END_TEST

/* The first engines have moved when one refuses: they go back, and the CQ is as it was. */
START_TEST(a_cq_that_moved_in_part_moves_back)
{
	struct uroce_resize_cq q = { .handle = cq, .cqe = 1000 };
	const struct cq *o = handles_get(&c.s->cqs, cq);

	fake.fail_op = 1 + ENGINE_CQ_RESIZE;
	fake.fail_err = -EINVAL;
	fake.fail_from = RIG_WORKERS;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_RESIZE_CQ, &q, sizeof(q)), EINVAL);
	ck_assert_uint_eq(fake.n[ENGINE_CQ_RESIZE], 2 * RIG_WORKERS - 1);
	ck_assert_uint_eq(fake.last.cq_resize.depth, o->depth);
	ck_assert_uint_lt((uintptr_t)fake.last.cq_resize.ring - (uintptr_t)o->shm.base,
			  o->shm.size);
}
END_TEST

START_TEST(a_region_whose_windows_are_bound_stays)
{
	static uint8_t mem[4096];
	uint32_t mr = client_mr(&c, pd, mem, sizeof(mem));

	fake.fail_op = 1 + ENGINE_MR_DEL;
	fake.fail_err = -EBUSY;
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DEREG_MR, mr), EBUSY);
	fake.fail_op = 0;
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DEREG_MR, mr), 0);
}
END_TEST

START_TEST(what_is_in_use_cannot_be_destroyed)
{
	uint32_t qp = client_qp(&c, pd, cq);

	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), EBUSY);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CQ, cq), EBUSY);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_QP, qp), 0);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CQ, cq), 0);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), 0);
}
END_TEST

static struct uroce_modify_qp to_peer(uint32_t qp)
{
	struct uroce_modify_qp m = { .handle = qp, .mask = 1u << 7 | 1u << 20 };

	m.attr.dest_qp_num = 0x55;
	m.attr.ah = (struct uroce_ah_attr) {
		.is_global = 1, .port_num = 1, .sgid_index = 1, .hop_limit = 9, .traffic_class = 106
	};
	memcpy(m.attr.ah.dgid, rig.device[1]->gids.gid[1], 16);
	return m;
}

START_TEST(modify_resolves_the_address_for_the_engine)
{
	uint32_t qp = client_qp(&c, pd, cq);
	struct uroce_modify_qp m = to_peer(qp);
	const struct net_path *p = &fake.last.qp_modify.path;

	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), 0);
	ck_assert_int_eq(fake.last.op, ENGINE_QP_MODIFY);
	ck_assert_mem_eq(p->dmac, rig.device[1]->mac, 6);
	ck_assert_mem_eq(p->smac, rig.device[0]->mac, 6);
	ck_assert_uint_eq(p->is_ipv4, 1);
	ck_assert_uint_eq(p->tclass, 106);
	ck_assert_uint_eq(p->hop_limit, 9);
	ck_assert_uint_ge(p->udp_sport, 0xc000);
	/* The device's own address is a peer like any other. */
	memcpy(m.attr.ah.dgid, rig.device[0]->gids.gid[1], 16);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), 0);
	ck_assert_mem_eq(p->dmac, rig.device[0]->mac, 6);
}
END_TEST

START_TEST(addresses_nobody_has_are_unreachable)
{
	struct uroce_modify_qp ok = to_peer(client_qp(&c, pd, cq)), m = ok;

	m.attr.ah.dgid[15] = 99;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), ENETUNREACH);
	memcpy(m.attr.ah.dgid, rig.device[1]->gids.gid[0], 16);
	m.attr.ah.dgid[15] = 99;
	m.attr.ah.sgid_index = 0;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), ENETUNREACH);
	m = ok;
	m.attr.ah.is_global = 0;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), EINVAL);
	m = ok;
	m.attr.ah.sgid_index = 5;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), EINVAL);
	m.attr.ah.sgid_index = 255;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), EINVAL);
	m = ok;
	m.attr.ah.port_num = 2;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), EINVAL);
	ck_assert_uint_eq(fake.n[ENGINE_QP_MODIFY], 0);
}
END_TEST

START_TEST(query_and_modify_need_a_qp)
{
	struct uroce_modify_qp m = { .handle = 1 };

	ck_assert_uint_eq(client_request(&c, UROCE_OP_MODIFY_QP, &m, sizeof(m)), EINVAL);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_QUERY_QP, 1), EINVAL);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_QUERY_QP, client_qp(&c, pd, cq)), 0);
	ck_assert_uint_eq(((struct uroce_query_qp_rep *)c.body)->attr.qkey, 0x1234);
}
END_TEST

START_TEST(completion_events_reach_the_channel_and_are_counted)
{
	uint64_t token;
	uint32_t ch, q;
	int fd;

	ck_assert_uint_eq(client_request(&c, UROCE_OP_CREATE_CHANNEL, NULL, 0), 0);
	ck_assert_uint_eq(c.n_fds, 2);
	fd = dup(c.fds[0]);
	ch = client_handle(&c);
	q = client_cq(&c, ch);
	fake_notify(rig.device[0]->engine[0], fake.last.cq_add.owner, fake.last.cq_add.channel,
		    fake.last.cq_add.token);
	ck_assert_int_eq(recv(fd, &token, 8, MSG_DONTWAIT), 8);
	ck_assert_uint_eq(token, 0xc0);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CHANNEL, ch), EBUSY);
	fake.events_sent = 3;
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CQ, q), 0);
	ck_assert_uint_eq(((struct uroce_destroy_rep *)c.body)->events_sent, 3 * RIG_WORKERS);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CHANNEL, ch), 0);
	close(fd);
}
END_TEST

START_TEST(events_that_wait_for_room_do_not_count_as_sent)
{
	uint32_t ch, q, sent = 0;
	uint64_t channel;
	int fd;

	ck_assert_uint_eq(client_request(&c, UROCE_OP_CREATE_CHANNEL, NULL, 0), 0);
	fd = dup(c.fds[0]); /* which nobody reads */
	ch = client_handle(&c);
	q = client_cq(&c, ch);
	channel = fake.last.cq_add.channel;
	while (!((struct channel *)(uintptr_t)channel)->notify.n_pending) {
		fake_notify(rig.device[0]->engine[0], c.s->id, channel, 0xc0);
		sent++;
	}
	fake_notify(rig.device[0]->engine[0], c.s->id, channel, 0xc0);
	sent++;
	fake.events_sent = sent / RIG_WORKERS + (sent % RIG_WORKERS ? 1 : 0);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CQ, q), 0);
	ck_assert_uint_eq(((struct uroce_destroy_rep *)c.body)->events_sent,
			  fake.events_sent * RIG_WORKERS - 2);
	close(fd);
}
END_TEST

START_TEST(asynchronous_events_reach_their_session)
{
	struct uroce_async_record rec;
	struct client other;

	client_connect(&other);
	client_hello(&other);
	fake_event(rig.device[0]->engine[1], other.s->id, 0xabc, 16);
	ck_assert_int_eq(recv(other.fds[1], &rec, sizeof(rec), MSG_DONTWAIT), sizeof(rec));
	ck_assert_uint_eq(rec.element, 0xabc);
	ck_assert_uint_eq(rec.type, 16);
	client_close(&other);
	/* To nobody: an owner that is gone, or never was. */
	fake_event(rig.device[0]->engine[1], 7, 0xabc, 16);
	fake_event(rig.device[0]->engine[1], UINT32_MAX, 0xabc, 16);
}
END_TEST

START_TEST(address_handles_need_a_reachable_address)
{
	struct uroce_create_ah q = { .pd = pd, .attr = to_peer(0).attr.ah };
	uint32_t ah;

	ck_assert_uint_eq(client_request(&c, UROCE_OP_CREATE_AH, &q, sizeof(q)), 0);
	ah = client_handle(&c);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), EBUSY);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_AH, ah), 0);
	q.attr.dgid[14] = 1;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_CREATE_AH, &q, sizeof(q)), ENETUNREACH);
}
END_TEST

static TCase *tcase_of_queues(void)
{
	TCase *tc = tcase_create("queues");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_cq_has_one_sub_ring_for_each_worker);
	tcase_add_test(tc, impossible_cqs_are_refused);
	tcase_add_test(tc, a_qp_gets_at_least_what_it_asked_for);
	tcase_add_test(tc, impossible_qps_are_refused);
	tcase_add_test(tc, the_largest_qp_is_possible_and_a_qp_without_queues_too);
	tcase_add_test(tc, shared_memory_has_a_quota_that_comes_back);
	tcase_add_test(tc, a_window_is_known_to_all_engines);
	tcase_add_test(tc, a_cq_is_resized_or_stays_as_it_was);
	tcase_add_test(tc, a_cq_that_moved_in_part_moves_back);
	tcase_add_test(tc, a_region_whose_windows_are_bound_stays);
	tcase_add_test(tc, what_is_in_use_cannot_be_destroyed);
	tcase_add_test(tc, modify_resolves_the_address_for_the_engine);
	tcase_add_test(tc, addresses_nobody_has_are_unreachable);
	tcase_add_test(tc, query_and_modify_need_a_qp);
	tcase_add_test(tc, address_handles_need_a_reachable_address);
	return tc;
}

Suite *suite_make(void)
{
	Suite *s = suite_create("objects");
	TCase *mr = tcase_create("regions"), *ev = tcase_create("events");

	tcase_add_checked_fixture(mr, setup, teardown);
	tcase_add_loop_test(mr, access_flags_follow_the_rules, 0, N_RULES);
	tcase_add_test(mr, regions_that_are_not_there_are_refused);
	tcase_add_test(mr, a_region_goes_to_every_engine_and_leaves_every_engine);
	tcase_add_test(mr, a_key_is_not_used_again_at_once);
	tcase_add_test(mr, an_engine_that_refuses_leaves_nothing_behind);
	suite_add_tcase(s, mr);
	suite_add_tcase(s, tcase_of_queues());
	tcase_add_checked_fixture(ev, setup, teardown);
	tcase_add_test(ev, completion_events_reach_the_channel_and_are_counted);
	tcase_add_test(ev, events_that_wait_for_room_do_not_count_as_sent);
	tcase_add_test(ev, asynchronous_events_reach_their_session);
	suite_add_tcase(s, ev);
	return s;
}
