/* SPDX-License-Identifier: BSD-3-Clause */
/* Framing and the checks that hold for all requests, with a hostile client. */
#include "dataplane/daemon/dispatch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/ck_main.h"
#include "tests/unit/daemon/rig.h"

static struct client c;

static void setup(void)
{
	rig_setup();
	client_connect(&c);
}

static void teardown(void)
{
	close(c.fd);
	client_close_fds(&c);
	rig_teardown();
}

static uint32_t hello(uint32_t magic, uint32_t version, const char *device)
{
	struct uroce_hello h = { .magic = magic, .version = version };

	memset(h.device, 'x', sizeof(h.device)); /* no NUL behind the name */
	memcpy(h.device, device, strlen(device) + 1);
	return client_request(&c, UROCE_OP_HELLO, &h, sizeof(h));
}

START_TEST(hello_passes_doorbells_and_event_socket)
{
	struct uroce_hello_rep *rep = (struct uroce_hello_rep *)c.body;

	client_hello(&c);
	ck_assert_uint_eq(c.n_fds, 2 + RIG_WORKERS);
	ck_assert_uint_eq(rep->version, UROCE_ABI_VERSION);
	ck_assert_uint_eq(rep->n_workers, RIG_WORKERS);
	ck_assert_uint_eq(rep->uar_size, 4096 * (1 + RIG_WORKERS));
	ck_assert_uint_eq(rep->daemon_pid, (uint32_t)getpid());
	ck_assert_uint_eq(rep->memory_err, 0);
	ck_assert_int_eq(fcntl(c.fds[0], F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}
END_TEST

START_TEST(another_version_gets_eproto_and_both_versions)
{
	struct uroce_hello_rep *rep = (struct uroce_hello_rep *)c.body;

	ck_assert_uint_eq(hello(UROCE_ABI_MAGIC, UROCE_ABI_VERSION + 1, "uroce0"), EPROTO);
	ck_assert_uint_eq(c.len, sizeof(*rep));
	ck_assert_uint_eq(rep->version, UROCE_ABI_VERSION);
	ck_assert_uint_eq(c.n_fds, 0);
	ck_assert_uint_eq(hello(UROCE_ABI_MAGIC, UROCE_ABI_VERSION, "uroce0"), 0);
}
END_TEST

START_TEST(a_stranger_or_unknown_device_is_refused)
{
	char name[UROCE_DEV_NAME_MAX];

	ck_assert_uint_eq(hello(0x12345678, UROCE_ABI_VERSION, "uroce0"), EINVAL);
	ck_assert_uint_eq(c.len, 0);
	ck_assert_uint_eq(hello(UROCE_ABI_MAGIC, UROCE_ABI_VERSION, "mlx5_0"), ENODEV);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	ck_assert_uint_eq(hello(UROCE_ABI_MAGIC, UROCE_ABI_VERSION, name), ENODEV);
	ck_assert_uint_eq(c.s->role, SESSION_NEW);
}
END_TEST

START_TEST(nothing_but_hello_before_hello_and_no_second_one)
{
	for (uint32_t op = 0; op < 300; op++)
		if (op != UROCE_OP_HELLO && op != UROCE_OP_ADMIN_HELLO)
			ck_assert_uint_ne(client_request(&c, op, NULL, 0), 0);
	client_hello(&c);
	ck_assert_uint_eq(hello(UROCE_ABI_MAGIC, UROCE_ABI_VERSION, "uroce0"), EPERM);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ADMIN_STATUS, NULL, 0), EPERM);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ADMIN_STOP, NULL, 0), EPERM);
}
END_TEST

START_TEST(unknown_requests_are_not_supported)
{
	client_hello(&c);
	ck_assert_uint_eq(client_request(&c, 0, NULL, 0), EOPNOTSUPP);
	ck_assert_uint_eq(client_request(&c, 200, NULL, 0), EOPNOTSUPP);
	ck_assert_uint_eq(client_request(&c, UINT32_MAX, NULL, 0), EOPNOTSUPP);
}
END_TEST

START_TEST(every_wrong_length_is_refused)
{
	uint8_t junk[2000] = { 0 };

	client_hello(&c);
	for (uint32_t op = UROCE_OP_QUERY_DEVICE; op <= UROCE_OP_PROBE_MEMORY; op++) {
		unsigned accepted = 0;

		/* Zeros name no object, so the right length of what needs one fails as well. */
		for (uint32_t len = 0; len < 600; len++)
			accepted += client_request(&c, op, junk, len) == 0;
		ck_assert_uint_le(accepted, 1);
	}
}
END_TEST

START_TEST(a_message_that_lies_about_its_length_ends_the_session)
{
	struct uroce_req q = { UROCE_OP_QUERY_PORT, _i == 0 ? 1 : _i == 1 ? UINT32_MAX : 4096 };

	client_hello(&c);
	ck_assert(!client_raw(&c, &q, sizeof(q)));
	ck_assert_ptr_null(c.s);
}
END_TEST

START_TEST(a_message_too_short_or_too_long_ends_the_session)
{
	static uint8_t big[8192];

	client_hello(&c);
	ck_assert(!client_raw(&c, big, _i == 0 ? 1 : _i == 1 ? 7 : sizeof(big)));
	ck_assert_ptr_null(c.s);
}
END_TEST

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Sends a request with n descriptors in it. */
static void send_with_fds(uint32_t op, unsigned n)
{
	struct uroce_req q = { op, 0 };
	char ctrl[CMSG_SPACE(64 * sizeof(int))] = { 0 };
	struct iovec iov = { &q, sizeof(q) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = ctrl,
			    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (unsigned i = 0; i < n; i++)
		memcpy(CMSG_DATA(h) + i * sizeof(int), &(int) { 0 }, sizeof(int));
	ck_assert_int_eq(sendmsg(c.fd, &m, 0), sizeof(q));
}

START_TEST(descriptors_nobody_asked_for_are_closed)
{
	unsigned before;

	client_hello(&c);
	before = open_fds();
	for (unsigned i = 0; i < 50; i++) {
		send_with_fds(UROCE_OP_QUERY_PORT, 1);
		ck_assert(dispatch_serve(c.s));
		ck_assert_int_gt(recv(c.fd, c.body, sizeof(c.body), 0), 0);
	}
	ck_assert_uint_eq(open_fds(), before);
	send_with_fds(UROCE_OP_QUERY_PORT, 60);
	ck_assert(!dispatch_serve(c.s));
	ck_assert_uint_eq(open_fds(), before);
}
END_TEST

START_TEST(a_client_that_reads_no_replies_loses_its_session)
{
	struct uroce_req q = { UROCE_OP_QUERY_DEVICE, 0 };
	unsigned i;

	client_hello(&c);
	for (i = 0; i < 100000; i++) {
		if (send(c.fd, &q, sizeof(q), MSG_DONTWAIT) < 0 || !dispatch_serve(c.s))
			break;
	}
	ck_assert_uint_lt(i, 100000);
}
END_TEST

START_TEST(random_messages_never_break_the_daemon)
{
	static uint8_t msg[600];
	uint64_t seed = ck_seed() + (uint64_t)_i;
	uint32_t *w = (uint32_t *)msg;

	client_hello(&c);
	client_pd(&c);
	for (unsigned n = 0; n < 3000; n++) {
		uint32_t len = 8 + 8 * ck_below(&seed, 40);

		for (uint32_t i = 0; i < sizeof(msg) / 4; i++)
			w[i] = ck_below(&seed, 4) ? ck_below(&seed, 20) : (uint32_t)ck_rand(&seed);
		w[0] = 1 + ck_below(&seed, 34);
		w[1] = len - 8;
		client_raw(&c, msg, len);
		if (!c.s) {
			close(c.fd);
			client_connect(&c);
			client_hello(&c);
		}
	}
}
END_TEST

START_TEST(status_is_for_everybody_who_says_admin_hello)
{
	struct uroce_hello h = { .magic = UROCE_ABI_MAGIC, .version = UROCE_ABI_VERSION };
	char text[64] = { 0 };

	ck_assert_uint_eq(client_request(&c, UROCE_OP_ADMIN_HELLO, &h, sizeof(h)), 0);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ADMIN_STATUS, NULL, 0), 0);
	ck_assert_uint_eq(c.n_fds, 1);
	ck_assert_int_gt(read(c.fds[0], text, sizeof(text) - 1), 0);
	ck_assert_int_eq(text[0], '{');
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ALLOC_PD, NULL, 0), EPERM);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ADMIN_FAULT, "show", 4), EOPNOTSUPP);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("dispatch");
	TCase *tc = tcase_create("dispatch");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, hello_passes_doorbells_and_event_socket);
	tcase_add_test(tc, another_version_gets_eproto_and_both_versions);
	tcase_add_test(tc, a_stranger_or_unknown_device_is_refused);
	tcase_add_test(tc, nothing_but_hello_before_hello_and_no_second_one);
	tcase_add_test(tc, unknown_requests_are_not_supported);
	tcase_add_test(tc, every_wrong_length_is_refused);
	tcase_add_loop_test(tc, a_message_that_lies_about_its_length_ends_the_session, 0, 3);
	tcase_add_loop_test(tc, a_message_too_short_or_too_long_ends_the_session, 0, 3);
	tcase_add_test(tc, descriptors_nobody_asked_for_are_closed);
	tcase_add_test(tc, a_client_that_reads_no_replies_loses_its_session);
	tcase_add_loop_test(tc, random_messages_never_break_the_daemon, 0, 5);
	tcase_add_test(tc, status_is_for_everybody_who_says_admin_hello);
	suite_add_tcase(s, tc);
	return s;
}
