/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session leaves behind: nothing. */
#include "dataplane/daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/rig.h"

static uint8_t buffer[10000];

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void make_some(struct client *c)
{
	uint32_t pd = client_pd(c), ch, cq;

	ck_assert_uint_eq(client_request(c, UROCE_OP_CREATE_CHANNEL, NULL, 0), 0);
	ch = client_handle(c);
	cq = client_cq(c, ch);
	client_cq(c, 0);
	for (unsigned i = 0; i < 5; i++)
		client_qp(c, pd, cq);
	for (unsigned i = 0; i < 3; i++)
		client_mr(c, pd, buffer, sizeof(buffer));
}

static void check_device_is_empty(const struct device *d)
{
	ck_assert_uint_eq(d->n_qp, 0);
	ck_assert_uint_eq(d->n_cq, 0);
	ck_assert_uint_eq(d->n_mr, 0);
	ck_assert_uint_eq(d->n_pd, 0);
	ck_assert_uint_eq(d->n_ah, 0);
	ck_assert_uint_eq(d->qpns.used, 0);
	ck_assert_uint_eq(d->cqns.used, 0);
	ck_assert_uint_eq(d->keys.used, 0);
}

START_TEST(a_client_that_vanishes_leaves_nothing)
{
	unsigned before = open_fds();
	struct client c;

	for (unsigned i = 0; i < 20; i++) {
		client_connect(&c);
		client_hello(&c);
		make_some(&c);
		client_close(&c);
		ck_assert_uint_eq(open_fds(), before);
	}
	check_device_is_empty(rig.device[0]);
	ck_assert_uint_eq(fake.n[ENGINE_QP_DEL], 20 * 5);
	ck_assert_uint_eq(fake.n[ENGINE_CQ_DEL], 20 * 2 * RIG_WORKERS);
	ck_assert_uint_eq(fake.n[ENGINE_MR_KILL], 20 * 3 * RIG_WORKERS);
}
END_TEST

START_TEST(others_keep_what_they_have)
{
	struct client a, b;

	client_connect(&a);
	client_hello(&a);
	make_some(&a);
	client_connect(&b);
	client_hello(&b);
	make_some(&b);
	client_close(&a);
	ck_assert_uint_eq(b.s->qps.count, 5);
	ck_assert_uint_eq(rig.device[0]->n_qp, 5);
	ck_assert_uint_eq(client_request(&b, UROCE_OP_QUERY_PORT, NULL, 0), 0);
	client_close(&b);
	check_device_is_empty(rig.device[0]);
}
END_TEST

START_TEST(handles_of_one_session_mean_nothing_in_another)
{
	struct client a, b;
	uint32_t pd, cq;

	client_connect(&a);
	client_hello(&a);
	pd = client_pd(&a);
	cq = client_cq(&a, 0);
	client_connect(&b);
	client_hello(&b);
	ck_assert_uint_eq(client_destroy(&b, UROCE_OP_FREE_PD, pd), EINVAL);
	ck_assert_uint_eq(client_destroy(&b, UROCE_OP_DESTROY_CQ, cq), EINVAL);
	client_close(&a);
	client_close(&b);
}
END_TEST

START_TEST(memory_that_cannot_be_reached_is_told_and_may_heal)
{
	struct uroce_hello h = { .magic = UROCE_ABI_MAGIC,
				 .version = UROCE_ABI_VERSION,
				 .device = "uroce1",
				 .probe_addr = 64 };
	struct uroce_hello_rep *rep;
	struct client c;
	uint64_t word = 5;

	client_connect(&c);
	rep = (struct uroce_hello_rep *)c.body;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_HELLO, &h, sizeof(h)), 0);
	ck_assert_uint_eq(rep->memory_err, EFAULT);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_PROBE_MEMORY, NULL, 0), EFAULT);
	c.s->probe_addr = (uint64_t)(uintptr_t)&word;
	ck_assert_uint_eq(client_request(&c, UROCE_OP_PROBE_MEMORY, NULL, 0), 0);
	ck_assert_uint_eq(word, 5);
	client_close(&c);
}
END_TEST

START_TEST(connections_have_a_limit_and_come_back)
{
	static struct client c[DAEMON_MAX_SESSIONS];
	struct session *s;
	int sv[2];

	for (unsigned i = 0; i < DAEMON_MAX_SESSIONS; i++)
		client_connect(&c[i]);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	ck_assert_int_eq(session_create(&s, &rig, sv[0]), -ENOSPC);
	close(sv[1]);
	client_close(&c[17]);
	client_connect(&c[17]);
	ck_assert_uint_eq(c[17].s->id, 17);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("session");
	TCase *tc = tcase_create("session");

	tcase_add_checked_fixture(tc, rig_setup, rig_teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, a_client_that_vanishes_leaves_nothing);
	tcase_add_test(tc, others_keep_what_they_have);
	tcase_add_test(tc, handles_of_one_session_mean_nothing_in_another);
	tcase_add_test(tc, memory_that_cannot_be_reached_is_told_and_may_heal);
	tcase_add_test(tc, connections_have_a_limit_and_come_back);
	suite_add_tcase(s, tc);
	return s;
}
