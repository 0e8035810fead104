/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a device, and what a program sees when it cannot be opened or the daemon dies. */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rig rig;

/* Run rig_open with stderr in a buffer. */
static struct ibv_context *open_listening(char *text, size_t size)
{
	int pipe_fd[2], saved = dup(2);
	struct ibv_context *ctx;
	ssize_t n;

	ck_assert_int_eq(pipe(pipe_fd), 0);
	dup2(pipe_fd[1], 2);
	ctx = rig_open();
	dup2(saved, 2);
	close(saved);
	close(pipe_fd[1]);
	n = read(pipe_fd[0], text, size - 1);
	text[n > 0 ? n : 0] = 0;
	close(pipe_fd[0]);
	return ctx;
}

static void start(uint32_t version)
{
	memset(&rig, 0, sizeof(rig));
	rig.fake.version = version;
	fake_start(&rig.fake);
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

START_TEST(device_and_port_are_as_the_daemon_says)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port;

	rig_up(&rig);
	ck_assert_str_eq(ibv_get_device_name(rig.ctx->device), "uroce0");
	ck_assert_int_eq(ibv_query_device(rig.ctx, &dev), 0);
	ck_assert_str_eq(dev.fw_ver, "fake");
	ck_assert_int_eq(dev.max_qp_wr, 64);
	ck_assert_int_eq(dev.phys_port_cnt, 1);
	ck_assert_int_eq(ibv_query_port(rig.ctx, 1, &port), 0);
	ck_assert_int_eq(port.state, IBV_PORT_ACTIVE);
	ck_assert_int_eq(port.active_mtu, IBV_MTU_4096);
	ck_assert_int_eq(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	ck_assert_int_eq(ibv_query_port(rig.ctx, 2, &port), EINVAL);
	ck_assert_int_eq(rig.fake.n_probes, 0);
	rig_down(&rig);
}
END_TEST

START_TEST(registration_passes_the_range_as_it_is)
{
	char memory[100];
	struct ibv_mr *mr;

	rig_up(&rig);
	mr = ibv_reg_mr(rig.pd, memory + 1, 98, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	ck_assert_ptr_nonnull(mr);
	ck_assert_uint_eq(rig.fake.mr.addr, (uintptr_t)memory + 1);
	ck_assert_uint_eq(rig.fake.mr.iova, (uintptr_t)memory + 1);
	ck_assert_uint_eq(rig.fake.mr.length, 98);
	ck_assert_uint_eq(rig.fake.mr.access, 5);
	ck_assert_uint_eq(mr->lkey, 0x1234);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_uint_eq(rig.fake.n_mrs_gone, 1);
	/* Remote stores need local ones. */
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, memory, 10, IBV_ACCESS_REMOTE_WRITE));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, memory, 0, 0));
	ck_assert_int_eq(errno, EINVAL);
	rig_down(&rig);
}
END_TEST

START_TEST(creation_beyond_the_limits_is_refused)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_ATTR_PD |
						       IBV_QP_INIT_ATTR_RX_HASH };

	rig_up(&rig);
	init.send_cq = init.recv_cq = rig.cq;
	init.cap = (struct ibv_qp_cap){ 65, 1, 1, 1, 0 };
	ck_assert_ptr_null(ibv_create_qp(rig.pd, &init));
	ck_assert_int_eq(errno, EINVAL);
	init.cap = (struct ibv_qp_cap){ 1, 1, 5, 1, 0 };
	ck_assert_ptr_null(ibv_create_qp(rig.pd, &init));
	ck_assert_int_eq(errno, EINVAL);
	init.cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 129 };
	ck_assert_ptr_null(ibv_create_qp(rig.pd, &init));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_create_cq(rig.ctx, 1025, NULL, NULL, 0));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_create_cq(rig.ctx, 1, NULL, NULL, rig.ctx->num_comp_vectors));
	ck_assert_int_eq(errno, EINVAL);
	ex.pd = rig.pd;
	ex.send_cq = ex.recv_cq = rig.cq;
	ex.qp_type = IBV_QPT_RC;
	ck_assert_ptr_null(ibv_create_qp_ex(rig.ctx, &ex));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	init.qp_type = IBV_QPT_RAW_PACKET;
	ck_assert_ptr_null(ibv_create_qp(rig.pd, &init));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	rig_down(&rig);
}
END_TEST

START_TEST(attributes_travel_both_ways)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_2048,
				    .dest_qp_num = 77, .rq_psn = 99, .min_rnr_timer = 12,
				    .max_dest_rd_atomic = 3 };
	struct ibv_qp_init_attr init;
	struct ibv_ah *ah;

	rig_up(&rig);
	attr.ah_attr.grh.dgid.raw[15] = 1;
	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	ck_assert_int_eq(ibv_modify_qp(rig.qp, &attr, IBV_QP_STATE | IBV_QP_AV), 0);
	ck_assert_uint_eq(rig.fake.qp[0].modified.mask, IBV_QP_STATE | IBV_QP_AV);
	ck_assert_uint_eq(rig.fake.qp[0].modified.attr.ah.hop_limit, 64);
	memset(&attr, 0, sizeof(attr));
	ck_assert_int_eq(ibv_query_qp(rig.qp, &attr, IBV_QP_AV, &init), 0);
	ck_assert_uint_eq(attr.dest_qp_num, 77);
	ck_assert_uint_eq(attr.rq_psn, 99);
	ck_assert_int_eq(attr.path_mtu, IBV_MTU_2048);
	ck_assert_uint_eq(attr.ah_attr.grh.dgid.raw[15], 1);
	ck_assert_uint_eq(attr.ah_attr.grh.sgid_index, 1);
	ck_assert_uint_eq(attr.cap.max_inline_data, RIG_INLINE);
	ck_assert_ptr_eq(init.send_cq, rig.cq);
	ah = ibv_create_ah(rig.pd, &attr.ah_attr);
	ck_assert_ptr_nonnull(ah);
	ck_assert_uint_eq(ah->handle, 0x30009); /* its number in a WQE */
	ck_assert_uint_eq(rig.fake.ah.attr.hop_limit, 64);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	rig_down(&rig);
}
END_TEST

START_TEST(without_a_daemon_one_line_says_so)
{
	char text[1024];

	start(UROCE_ABI_VERSION);
	fake_die(&rig.fake); /* leaves nothing but the memory of where it was */
	start(UROCE_ABI_VERSION);
	unlink(strcat(strcpy(text, rig.fake.dir), "/control.sock"));
	ck_assert_ptr_null(open_listening(text, sizeof(text)));
	ck_assert_int_eq(errno, ENODEV);
	ck_assert_ptr_nonnull(strstr(text, "no daemon answers for uroce0"));
	ck_assert_uint_eq(count_lines(text), 1);
	ck_assert_ptr_null(open_listening(text, sizeof(text)));
	ck_assert_str_eq(text, "");
	fake_die(&rig.fake);
}
END_TEST

START_TEST(another_version_is_named_beside_ours)
{
	char text[1024];

	start(99);
	ck_assert_ptr_null(open_listening(text, sizeof(text)));
	ck_assert_int_eq(errno, EPROTO);
	ck_assert_ptr_nonnull(strstr(text, "version 1 "));
	ck_assert_ptr_nonnull(strstr(text, "version 99"));
	fake_die(&rig.fake);
}
END_TEST

START_TEST(memory_that_can_be_reached_after_all_opens)
{
	char text[1024];
	struct ibv_context *ctx;

	memset(&rig, 0, sizeof(rig));
	rig.fake.version = UROCE_ABI_VERSION;
	rig.fake.memory_err = EPERM;
	fake_start(&rig.fake);
	ctx = open_listening(text, sizeof(text));
	ck_assert_ptr_nonnull(ctx);
	ck_assert_str_eq(text, "");
	ck_assert_uint_eq(rig.fake.n_probes, 1);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	fake_die(&rig.fake);
}
END_TEST

START_TEST(memory_that_cannot_be_reached_is_explained)
{
	char text[1024];

	memset(&rig, 0, sizeof(rig));
	rig.fake.version = UROCE_ABI_VERSION;
	rig.fake.memory_err = rig.fake.probe_err = EPERM;
	fake_start(&rig.fake);
	ck_assert_ptr_null(open_listening(text, sizeof(text)));
	ck_assert_int_eq(errno, EPERM);
	ck_assert_ptr_nonnull(strstr(text, "cannot reach this program's memory"));
	ck_assert_ptr_nonnull(strstr(text, "CAP_SYS_PTRACE"));
	ck_assert_uint_eq(count_lines(text), 1);
	fake_die(&rig.fake);
}
END_TEST

START_TEST(a_forks_child_does_not_talk_on_the_parents_socket)
{
	int status;
	pid_t pid;

	rig_up(&rig);
	pid = fork();
	if (!pid) {
		/* Nothing is made, taking down succeeds and tells the daemon nothing. */
		if (ibv_alloc_pd(rig.ctx) || errno != EPERM)
			_exit(1);
		if (ibv_destroy_qp(rig.qp) || ibv_destroy_cq(rig.cq) || ibv_dealloc_pd(rig.pd))
			_exit(2);
		_exit(ibv_close_device(rig.ctx) ? 3 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(rig.fake.qp[0].is_used);
	rig_down(&rig);
}
END_TEST

START_TEST(a_forks_child_opens_the_device_anew)
{
	int status;
	pid_t pid;

	rig_up(&rig);
	pid = fork();
	if (!pid) {
		struct ibv_context *ctx = rig_open(); /* the fake serves one connection: the next */

		if (!ctx)
			_exit(1);
		if (!ibv_create_comp_channel(ctx))
			_exit(2);
		_exit(0);
	}
	rig_down_but_daemon(&rig);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	fake_die(&rig.fake);
}
END_TEST

/* Poll until n completions came or the CQ fails; the provider notices a death within milliseconds.
 */
static int drain(struct ibv_cq *cq, struct ibv_wc *wc, int n)
{
	int got = 0;

	while (got < n) {
		int r = ibv_poll_cq(cq, n - got, wc + got);

		if (r < 0)
			break;
		got += r;
	}
	return got;
}

static void close_dead(void)
{
	ck_assert_int_eq(ibv_destroy_qp(rig.qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(rig.cq), 0);
	ck_assert_int_eq(ibv_dealloc_pd(rig.pd), 0);
	ck_assert_int_eq(ibv_close_device(rig.ctx), 0);
}

START_TEST(a_dead_daemon_completes_what_is_outstanding_with_errors)
{
	struct ibv_recv_wr recv = { .wr_id = 50 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_port_attr port;
	struct ibv_wc wc[8];

	rig_up(&rig);
	ck_assert_int_eq(ibv_post_recv(rig.qp, &recv, &bad_recv), 0);
	for (send.wr_id = 1; send.wr_id <= 3; send.wr_id++)
		ck_assert_int_eq(ibv_post_send(rig.qp, &send, &bad), 0);
	fake_die(&rig.fake);
	ck_assert_int_eq(drain(rig.cq, wc, 4), 4);
	ck_assert_int_eq(wc[0].status, IBV_WC_FATAL_ERR);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_uint_eq(wc[i].wr_id, i + 1);
	ck_assert_int_eq(wc[2].status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc[3].wr_id, 50);
	ck_assert_int_eq(wc[3].status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_lt(ibv_poll_cq(rig.cq, 8, wc), 0);
	ck_assert_int_eq(ibv_post_send(rig.qp, &send, &bad), EIO);
	ck_assert_int_eq(ibv_query_port(rig.ctx, 1, &port), EIO);
	ck_assert_ptr_null(ibv_alloc_pd(rig.ctx));
	ck_assert_int_eq(errno, EIO);
	close_dead();
}
END_TEST

START_TEST(the_fatal_word_of_the_doorbell_page_is_a_death_too)
{
	struct ibv_recv_wr recv = { .wr_id = 50 }, *bad_recv;
	struct ibv_wc wc;

	rig_up(&rig);
	ck_assert_int_eq(ibv_post_recv(rig.qp, &recv, &bad_recv), 0);
	((struct uroce_uar *)rig.fake.uar)->fatal = 1;
	ck_assert_int_eq(drain(rig.cq, &wc, 1), 1);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	rig_down(&rig);
}
END_TEST

static void *wait_async(void *arg)
{
	struct ibv_async_event *ev = arg;

	return (void *)(intptr_t)ibv_get_async_event(rig.ctx, ev);
}

START_TEST(a_blocked_reader_of_async_events_gets_device_fatal)
{
	struct ibv_async_event ev = { 0 };
	pthread_t thread;
	void *ret;

	rig_up(&rig);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_async, &ev), 0);
	fake_die(&rig.fake);
	pthread_join(thread, &ret);
	ck_assert_ptr_null(ret);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&ev);
	ck_assert_int_eq(ibv_get_async_event(rig.ctx, &ev), -1);
	ck_assert_int_eq(errno, EIO);
	close_dead();
}
END_TEST

static struct ibv_comp_channel *channel;

static void *wait_cq(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	return ibv_get_cq_event(channel, &cq, &context) ? NULL : cq;
}

START_TEST(a_blocked_reader_of_a_channel_wakes_with_its_cq)
{
	pthread_t thread;
	struct ibv_cq *cq;
	void *got;

	rig_up(&rig);
	channel = ibv_create_comp_channel(rig.ctx);
	cq = ibv_create_cq(rig.ctx, 4, NULL, channel, 0);
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_cq, NULL), 0);
	fake_die(&rig.fake);
	pthread_join(thread, &got);
	ck_assert_ptr_eq(got, cq);
	ibv_ack_cq_events(cq, 1);
	ck_assert_ptr_null(wait_cq(NULL));
	ck_assert_int_eq(errno, EIO);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
	close_dead();
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/open");
	TCase *tc = tcase_create("open");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_test(tc, device_and_port_are_as_the_daemon_says);
	tcase_add_test(tc, registration_passes_the_range_as_it_is);
	tcase_add_test(tc, creation_beyond_the_limits_is_refused);
	tcase_add_test(tc, attributes_travel_both_ways);
	tcase_add_test(tc, without_a_daemon_one_line_says_so);
	tcase_add_test(tc, another_version_is_named_beside_ours);
	tcase_add_test(tc, memory_that_can_be_reached_after_all_opens);
	tcase_add_test(tc, memory_that_cannot_be_reached_is_explained);
	tcase_add_test(tc, a_forks_child_does_not_talk_on_the_parents_socket);
	tcase_add_test(tc, a_forks_child_opens_the_device_anew);
	tcase_add_test(tc, a_dead_daemon_completes_what_is_outstanding_with_errors);
	tcase_add_test(tc, the_fatal_word_of_the_doorbell_page_is_a_death_too);
	tcase_add_test(tc, a_blocked_reader_of_async_events_gets_device_fatal);
	tcase_add_test(tc, a_blocked_reader_of_a_channel_wakes_with_its_cq);
	suite_add_tcase(s, tc);
	return s;
}
