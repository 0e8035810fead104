/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, their SRQs and their receive QPs, between the sessions of a device. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/daemon/objects.h"
#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/rig.h"

static struct client a, b;
static int a_events, b_events; /* their async sockets */

static int connect_client(struct client *c)
{
	int fd;

	client_connect(c);
	client_hello(c);
	fd = dup(c->fds[1]);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void setup(void)
{
	rig_setup();
	a_events = connect_client(&a);
	b_events = connect_client(&b);
}

static void teardown(void)
{
	if (a.s)
		client_close(&a);
	if (b.s)
		client_close(&b);
	ck_assert_ptr_null(rig.device[0]->xrc_domains);
	ck_assert_uint_eq(rig.device[0]->n_qp, 0);
	close(a_events);
	close(b_events);
	rig_teardown();
}

/* CREATE_XRCD, file -1: none. The error; the handle is in the reply. */
static uint32_t open_domain(struct client *c, int file, uint32_t flags)
{
	struct uroce_create_xrcd q = { .flags = flags };

	c->fd_out = file > 0 ? file : 0;
	return client_request(c, UROCE_OP_CREATE_XRCD, &q, sizeof(q));
}

static uint32_t domain(struct client *c, int file, uint32_t flags)
{
	ck_assert_uint_eq(open_domain(c, file, flags), 0);
	return client_handle(c);
}

static uint32_t xrc_srq(struct client *c, uint32_t pd, uint32_t xrcd, uint32_t cq)
{
	struct uroce_create_srq q = {
		.pd = pd, .type = 1, .xrcd = xrcd, .cq = cq, .max_wr = 16, .max_sge = 1
	};

	return client_request(c, UROCE_OP_CREATE_SRQ, &q, sizeof(q));
}

static struct uroce_create_qp_rep target(struct client *c, uint32_t xrcd, uint64_t token)
{
	struct uroce_create_qp q = { .type = UROCE_QPT_XRC_RECV, .xrcd = xrcd, .token = token };
	struct uroce_create_qp_rep rep;

	ck_assert_uint_eq(client_request(c, UROCE_OP_CREATE_QP, &q, sizeof(q)), 0);
	memcpy(&rep, c->body, sizeof(rep));
	return rep;
}

static uint32_t open_target(struct client *c, uint32_t qpn, uint32_t xrcd, uint64_t token)
{
	struct uroce_open_qp q = { .qpn = qpn, .xrcd = xrcd, .token = token };

	return client_request(c, UROCE_OP_OPEN_QP, &q, sizeof(q));
}

START_TEST(a_domain_without_a_file_is_of_its_session_alone)
{
	uint32_t one = domain(&a, -1, 0), two = domain(&a, -1, O_CREAT | O_EXCL);
	struct uroce_create_qp_rep qp = target(&a, one, 1);

	ck_assert_uint_eq(open_target(&a, qp.qpn, two, 2), EINVAL);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_XRCD, two), 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_XRCD, two), EINVAL);
	ck_assert_uint_eq(client_destroy(&b, UROCE_OP_DESTROY_XRCD, one), EINVAL);
}
END_TEST

START_TEST(a_file_names_a_domain_by_what_it_is_not_by_its_descriptor)
{
	int one = memfd_create("one", 0), two = memfd_create("two", 0), again = dup(one);
	struct uroce_create_qp_rep qp;
	uint32_t xa, xb;

	ck_assert_uint_eq(open_domain(&a, one, 0), EAGAIN);
	xa = domain(&a, one, O_CREAT | O_EXCL);
	ck_assert_uint_eq(open_domain(&b, again, O_CREAT | O_EXCL), EINVAL);
	ck_assert_uint_eq(open_domain(&b, two, 0), EAGAIN);
	xb = domain(&b, again, 0);
	qp = target(&a, xa, 1);
	ck_assert_uint_eq(open_target(&b, qp.qpn, xb, 2), 0);
	close(one);
	close(two);
	close(again);
}
END_TEST

START_TEST(a_named_domain_ends_with_its_last_handle)
{
	int file = memfd_create("xrcd", 0);
	uint32_t xa = domain(&a, file, O_CREAT);

	domain(&b, file, 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_XRCD, xa), 0);
	domain(&a, file, 0);
	client_close(&a);
	client_close(&b);
	ck_assert_ptr_null(rig.device[0]->xrc_domains);
	close(file);
}
END_TEST

START_TEST(what_uses_a_domain_keeps_it_open)
{
	uint32_t xrcd = domain(&a, -1, 0), pd = client_pd(&a), cq = client_cq(&a, 0), srq;
	struct uroce_create_qp_rep qp = target(&a, xrcd, 1);

	ck_assert_uint_eq(xrc_srq(&a, pd, xrcd, cq), 0);
	srq = client_handle(&a);
	ck_assert_uint_eq(fake.last.op, ENGINE_SRQ_ADD);
	ck_assert_uint_ne(fake.last.srq_add.xrcd, 0);
	ck_assert_uint_ne(fake.last.srq_add.cqn, 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_CQ, cq), EBUSY);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_FREE_PD, pd), EBUSY);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_XRCD, xrcd), EBUSY);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_SRQ, srq), 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_XRCD, xrcd), EBUSY);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_QP, qp.handle), 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_XRCD, xrcd), 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_CQ, cq), 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_FREE_PD, pd), 0);
}
END_TEST

START_TEST(impossible_xrc_objects_are_refused)
{
	uint32_t xrcd = domain(&a, -1, 0), pd = client_pd(&a), cq = client_cq(&a, 0);
	struct uroce_create_qp qp = { .type = UROCE_QPT_XRC_RECV, .xrcd = xrcd + 1 };
	struct uroce_create_srq srq = { .pd = pd, .type = 2, .max_wr = 1 };

	ck_assert_uint_eq(xrc_srq(&a, pd, 0, cq), EINVAL);
	ck_assert_uint_eq(xrc_srq(&a, pd, xrcd, 0), EINVAL);
	ck_assert_uint_eq(xrc_srq(&a, 0, xrcd, cq), EINVAL);
	ck_assert_uint_eq(xrc_srq(&b, pd, xrcd, cq), EINVAL);
	ck_assert_uint_eq(client_request(&a, UROCE_OP_CREATE_SRQ, &srq, sizeof(srq)), EOPNOTSUPP);
	ck_assert_uint_eq(client_request(&a, UROCE_OP_CREATE_QP, &qp, sizeof(qp)), EINVAL);
	ck_assert_uint_eq(open_target(&a, 5, xrcd, 1), EINVAL);
}
END_TEST

START_TEST(an_engine_that_refuses_leaves_no_target_behind)
{
	uint32_t xrcd = domain(&a, -1, 0);
	struct uroce_create_qp qp = { .type = UROCE_QPT_XRC_RECV, .xrcd = xrcd };
	uint64_t bytes = a.s->bytes;

	fake.fail_op = ENGINE_QP_ADD + 1;
	fake.fail_err = -EEXIST;
	ck_assert_uint_eq(client_request(&a, UROCE_OP_CREATE_QP, &qp, sizeof(qp)), EEXIST);
	fake.fail_op = 0;
	ck_assert_uint_eq(a.s->bytes, bytes);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_XRCD, xrcd), 0);
}
END_TEST

START_TEST(an_xrc_send_qp_has_neither_receive_queue_nor_receive_cq)
{
	uint32_t pd = client_pd(&a), cq = client_cq(&a, 0);
	struct uroce_create_qp q = {
		.type = UROCE_QPT_XRC_SEND, .pd = pd, .send_cq = cq, .cap = { 8, 8, 1, 1, 0 }
	};
	const struct uroce_create_qp_rep *rep = (const void *)a.body;

	ck_assert_uint_eq(client_request(&a, UROCE_OP_CREATE_QP, &q, sizeof(q)), 0);
	ck_assert_uint_eq(rep->rq_depth, 0);
	ck_assert_uint_eq(rep->cap.max_recv_wr, 0);
	ck_assert_uint_ge(rep->sq_depth, 8);
	ck_assert_uint_eq(fake.last.qp_add.recv_cqn, 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_QP, rep->handle), 0);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_CQ, cq), 0);
}
END_TEST

START_TEST(a_target_has_no_memory_and_no_doorbell)
{
	struct uroce_create_qp_rep qp = target(&a, domain(&a, -1, 0), 1);

	ck_assert_uint_eq(a.n_fds, 0);
	ck_assert_uint_eq(qp.size, 0);
	ck_assert_uint_eq(qp.slot, UROCE_NO_SLOT);
	ck_assert_uint_ne(fake.last.qp_add.xrcd, 0);
	for (uint32_t i = 0; i < UROCE_CTX_QPS; i++)
		ck_assert_uint_ne(a.s->qpn_of_slot[i], qp.qpn);
}
END_TEST

/* _i: which of the two leaves first; the other end is closing the connection, or DESTROY_QP. */
START_TEST(a_target_lives_as_long_as_anyone_holds_it)
{
	int file = memfd_create("xrcd", 0);
	struct uroce_create_qp_rep qp = target(&a, domain(&a, file, O_CREAT), 1);
	struct client *first = _i & 1 ? &b : &a, *last = _i & 1 ? &a : &b;
	uint32_t handle;

	ck_assert_uint_eq(open_target(&b, qp.qpn, domain(&b, file, 0), 2), 0);
	handle = first == &a ? qp.handle : client_handle(&b);
	if (_i & 2)
		client_close(first);
	else
		ck_assert_uint_eq(client_destroy(first, UROCE_OP_DESTROY_QP, handle), 0);
	ck_assert_uint_eq(fake.n[ENGINE_QP_DEL], 0);
	client_close(last);
	ck_assert_uint_eq(fake.n[ENGINE_QP_DEL], 1);
	close(file);
}
END_TEST

START_TEST(events_of_a_target_reach_all_who_hold_it)
{
	int file = memfd_create("xrcd", 0);
	struct uroce_create_qp_rep qp = target(&a, domain(&a, file, O_CREAT), 0xaa);
	struct engine *e = rig.device[0]->engine[qp.worker];
	uint64_t element = fake.last.qp_add.token;
	struct uroce_async_record rec;

	ck_assert_uint_eq(open_target(&b, qp.qpn, domain(&b, file, 0), 0xbb), 0);
	fake_event(e, OWNER_XRC_TARGET, element, UROCE_EVENT_COMM_EST);
	ck_assert_int_eq(recv(a_events, &rec, sizeof(rec), MSG_DONTWAIT), sizeof(rec));
	ck_assert_uint_eq(rec.element, 0xaa);
	ck_assert_uint_eq(rec.type, UROCE_EVENT_COMM_EST);
	ck_assert_int_eq(recv(b_events, &rec, sizeof(rec), MSG_DONTWAIT), sizeof(rec));
	ck_assert_uint_eq(rec.element, 0xbb);
	ck_assert_uint_eq(client_destroy(&a, UROCE_OP_DESTROY_QP, qp.handle), 0);
	ck_assert_uint_eq(((struct uroce_destroy_rep *)a.body)->events_sent, 1);
	fake_event(e, OWNER_XRC_TARGET, element, UROCE_EVENT_QP_FATAL);
	ck_assert_int_lt(recv(a_events, &rec, sizeof(rec), MSG_DONTWAIT), 0);
	ck_assert_int_eq(recv(b_events, &rec, sizeof(rec), MSG_DONTWAIT), sizeof(rec));
	close(file);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("xrc");
	TCase *tc = tcase_create("xrc");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_domain_without_a_file_is_of_its_session_alone);
	tcase_add_test(tc, a_file_names_a_domain_by_what_it_is_not_by_its_descriptor);
	tcase_add_test(tc, a_named_domain_ends_with_its_last_handle);
	tcase_add_test(tc, what_uses_a_domain_keeps_it_open);
	tcase_add_test(tc, impossible_xrc_objects_are_refused);
	tcase_add_test(tc, an_engine_that_refuses_leaves_no_target_behind);
	tcase_add_test(tc, an_xrc_send_qp_has_neither_receive_queue_nor_receive_cq);
	tcase_add_test(tc, a_target_has_no_memory_and_no_doorbell);
	tcase_add_loop_test(tc, a_target_lives_as_long_as_anyone_holds_it, 0, 4);
	tcase_add_test(tc, events_of_a_target_reach_all_who_hold_it);
	suite_add_tcase(s, tc);
	return s;
}
