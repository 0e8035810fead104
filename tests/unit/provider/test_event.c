/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels, asynchronous events, and destruction while events are in flight. */
#include "tests/support/ck_main.h"
#include "tests/unit/provider/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct rig rig;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq[2];

static void setup(void)
{
	rig_up(&rig);
	channel = ibv_create_comp_channel(rig.ctx);
	ck_assert_ptr_nonnull(channel);
	for (intptr_t i = 0; i < 2; i++) {
		cq[i] = ibv_create_cq(rig.ctx, 4, (void *)(i + 1), channel, 0);
		ck_assert_ptr_nonnull(cq[i]);
	}
	ck_assert_int_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(fcntl(rig.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		if (cq[i])
			ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
	}
	if (channel)
		ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
	rig_down(&rig);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static struct ibv_cq *next_cq(void)
{
	struct ibv_cq *got;
	void *context;

	if (ibv_get_cq_event(channel, &got, &context))
		return NULL;
	ck_assert_ptr_eq(got->cq_context, context);
	return got;
}

START_TEST(an_event_names_its_cq)
{
	ck_assert_ptr_null(next_cq());
	ck_assert_int_eq(errno, EAGAIN);
	fake_notify(&rig.fake, cq[1]->handle);
	ck_assert(is_readable(channel->fd));
	ck_assert_ptr_eq(next_cq(), cq[1]);
	ck_assert_ptr_null(next_cq());
	ibv_ack_cq_events(cq[1], 1);
}
END_TEST

START_TEST(arming_writes_the_arm_word_and_solicited_never_weakens)
{
	struct uroce_cq_page *page = (struct uroce_cq_page *)rig.fake.cq[cq[0]->handle - 1].mem;

	ck_assert_uint_eq(page->arm, UROCE_ARM_NONE);
	ck_assert_int_eq(ibv_req_notify_cq(cq[0], 1), 0);
	ck_assert_uint_eq(page->arm, UROCE_ARM_SOLICITED);
	ck_assert_int_eq(ibv_req_notify_cq(cq[0], 0), 0);
	ck_assert_uint_eq(page->arm, UROCE_ARM_ANY);
	ck_assert_int_eq(ibv_req_notify_cq(cq[0], 1), 0);
	ck_assert_uint_eq(page->arm, UROCE_ARM_ANY);
}
END_TEST

static uint32_t fired_when_armed(int solicited_only)
{
	struct fake_cq *f = &rig.fake.cq[cq[0]->handle - 1];
	uint32_t before = f->n_fired;

	ck_assert_int_eq(ibv_req_notify_cq(cq[0], solicited_only), 0);
	return f->n_fired - before;
}

START_TEST(arming_over_completions_that_no_poll_saw_asks_for_the_event)
{
	struct uroce_cqe plain = { .queue = UROCE_CQE_DEAD };
	struct uroce_cqe solicited = { .queue = UROCE_CQE_DEAD, .solicited = 1 };
	struct ibv_wc wc;

	ck_assert_uint_eq(fired_when_armed(0), 0);
	fake_complete(&rig.fake, cq[0]->handle, 1, &plain);
	ck_assert_uint_eq(fired_when_armed(1), 0);
	ck_assert_uint_eq(fired_when_armed(0), 1);
	fake_complete(&rig.fake, cq[0]->handle, 1, &solicited);
	ck_assert_uint_eq(fired_when_armed(1), 1);
	ck_assert_int_eq(ibv_poll_cq(cq[0], 1, &wc), 0);
	ck_assert_uint_eq(fired_when_armed(0), 0);
}
END_TEST

START_TEST(arming_between_an_event_and_the_poll_asks_for_none)
{
	struct uroce_cqe cqe = { .queue = UROCE_CQE_DEAD };
	struct ibv_wc wc;

	fake_complete(&rig.fake, cq[0]->handle, 0, &cqe);
	fake_notify(&rig.fake, cq[0]->handle);
	ck_assert_ptr_eq(next_cq(), cq[0]);
	ck_assert_uint_eq(fired_when_armed(0), 0);
	ck_assert_int_eq(ibv_poll_cq(cq[0], 1, &wc), 0);
	fake_complete(&rig.fake, cq[0]->handle, 0, &cqe);
	ck_assert_uint_eq(fired_when_armed(0), 1);
	ibv_ack_cq_events(cq[0], 1);
}
END_TEST

START_TEST(unread_events_of_a_destroyed_cq_vanish_and_others_stay)
{
	for (int i = 0; i < 3; i++) {
		fake_notify(&rig.fake, cq[0]->handle);
		fake_notify(&rig.fake, cq[1]->handle);
	}
	ck_assert_int_eq(ibv_destroy_cq(cq[0]), 0);
	cq[0] = NULL;
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_eq(next_cq(), cq[1]);
	ck_assert(!is_readable(channel->fd));
	ck_assert_ptr_null(next_cq());
	ibv_ack_cq_events(cq[1], 3);
}
END_TEST

START_TEST(a_stale_event_alone_does_not_make_the_channel_readable)
{
	fake_notify(&rig.fake, cq[0]->handle);
	ck_assert_int_eq(ibv_destroy_cq(cq[0]), 0);
	cq[0] = NULL;
	ck_assert(!is_readable(channel->fd));
}
END_TEST

static void *ack_later(void *arg)
{
	struct ibv_cq *got = arg;

	ibv_ack_cq_events(got, 1);
	return NULL;
}

START_TEST(destroy_waits_for_the_acknowledgement_of_what_was_read)
{
	pthread_t thread;

	fake_notify(&rig.fake, cq[0]->handle);
	fake_notify(&rig.fake, cq[0]->handle);
	ck_assert_ptr_eq(next_cq(), cq[0]);
	ck_assert_int_eq(pthread_create(&thread, NULL, ack_later, cq[0]), 0);
	ck_assert_int_eq(ibv_destroy_cq(cq[0]), 0);
	cq[0] = NULL;
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_busy_channel_is_not_destroyed_and_an_idle_one_tells_the_daemon)
{
	struct ibv_comp_channel *idle = ibv_create_comp_channel(rig.ctx);

	ck_assert_int_eq(ibv_destroy_comp_channel(channel), EBUSY);
	ck_assert_int_eq(ibv_destroy_comp_channel(idle), 0);
	ck_assert_uint_eq(rig.fake.n_channels_gone, 1);
}
END_TEST

START_TEST(commands_that_are_not_ours_fail)
{
	struct {
		uint32_t command;
		uint16_t in_words, out_words;
		uint64_t response;
	} query_device = { 1, 4, 0, 0 };

	/* Without libibverbs in between the descriptor takes no writes at all. */
	ck_assert_int_eq(write(rig.ctx->cmd_fd, &query_device, sizeof(query_device)), -1);
	ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(a_qp_event_names_its_qp)
{
	struct ibv_async_event ev;

	fake_async(&rig.fake, rig.fake.qp[0].req.token, IBV_EVENT_COMM_EST);
	ck_assert_int_eq(ibv_get_async_event(rig.ctx, &ev), 0);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_COMM_EST);
	ck_assert_ptr_eq(ev.element.qp, rig.qp);
	ibv_ack_async_event(&ev);
}
END_TEST

START_TEST(a_port_event_names_its_port)
{
	struct ibv_async_event ev;

	fake_async(&rig.fake, 1, IBV_EVENT_PORT_ERR);
	ck_assert_int_eq(ibv_get_async_event(rig.ctx, &ev), 0);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_PORT_ERR);
	ck_assert_int_eq(ev.element.port_num, 1);
	ibv_ack_async_event(&ev);
}
END_TEST

START_TEST(destroying_a_qp_does_not_wait_for_events_nobody_reads)
{
	struct ibv_async_event ev;

	fake_async(&rig.fake, rig.fake.qp[0].req.token, IBV_EVENT_COMM_EST);
	fake_async(&rig.fake, 1, IBV_EVENT_PORT_ACTIVE);
	fake_async(&rig.fake, rig.fake.qp[0].req.token, IBV_EVENT_QP_FATAL);
	ck_assert_int_eq(ibv_destroy_qp(rig.qp), 0);
	rig.qp = NULL;
	ck_assert_int_eq(ibv_get_async_event(rig.ctx, &ev), 0);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_PORT_ACTIVE);
	ibv_ack_async_event(&ev);
	ck_assert_int_eq(ibv_get_async_event(rig.ctx, &ev), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert(!is_readable(rig.ctx->async_fd));
}
END_TEST

/* An address that is used again: the old object's events are not the new one's. */
START_TEST(stale_events_are_counted_not_matched_for_ever)
{
	uint64_t token = rig.fake.cq[cq[0]->handle - 1].token;
	uint32_t handle = cq[0]->handle;

	fake_notify(&rig.fake, cq[1]->handle);
	fake_notify(&rig.fake, handle);
	ck_assert_int_eq(ibv_destroy_cq(cq[0]), 0);
	cq[0] = ibv_create_cq(rig.ctx, 4, (void *)1, channel, 0);
	ck_assert_ptr_nonnull(cq[0]);
	if ((uintptr_t)cq[0] != token)
		return; /* the allocator chose another place: nothing to confuse */
	fake_notify(&rig.fake, cq[0]->handle);
	ck_assert_ptr_eq(next_cq(), cq[1]);
	ck_assert_ptr_eq(next_cq(), cq[0]);
	ck_assert_ptr_null(next_cq());
	ibv_ack_cq_events(cq[0], 1);
	ibv_ack_cq_events(cq[1], 1);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("provider/event");
	TCase *tc = tcase_create("events");

	if (!fake_world()) {
		puts("1..0 # SKIP needs root or user namespaces");
		exit(0);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_event_names_its_cq);
	tcase_add_test(tc, arming_writes_the_arm_word_and_solicited_never_weakens);
	tcase_add_test(tc, arming_over_completions_that_no_poll_saw_asks_for_the_event);
	tcase_add_test(tc, arming_between_an_event_and_the_poll_asks_for_none);
	tcase_add_test(tc, unread_events_of_a_destroyed_cq_vanish_and_others_stay);
	tcase_add_test(tc, a_stale_event_alone_does_not_make_the_channel_readable);
	tcase_add_test(tc, destroy_waits_for_the_acknowledgement_of_what_was_read);
	tcase_add_test(tc, a_busy_channel_is_not_destroyed_and_an_idle_one_tells_the_daemon);
	tcase_add_test(tc, commands_that_are_not_ours_fail);
	tcase_add_test(tc, a_qp_event_names_its_qp);
	tcase_add_test(tc, a_port_event_names_its_port);
	tcase_add_test(tc, destroying_a_qp_does_not_wait_for_events_nobody_reads);
	tcase_add_test(tc, stale_events_are_counted_not_matched_for_ever);
	suite_add_tcase(s, tc);
	return s;
}
