/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of the clients of a device that is removed, and of the list of devices. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/daemon/device_event.h"
#include "dataplane/daemon/device_list.h"
#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/rig.h"

/* As plug_out does it, but for the links, of which there are none here. */
static void remove_device(struct device *dev)
{
	device_hold(dev);
	device_list_del(&rig, dev);
	device_event_removed(dev);
	device_release(dev);
}

static struct uroce_async_record next_event(const struct client *c)
{
	struct uroce_async_record rec = { .type = 999 };

	ck_assert_int_eq(recv(c->fds[1], &rec, sizeof(rec), MSG_DONTWAIT), sizeof(rec));
	return rec;
}

/* HELLO, of which the event socket is kept. */
static void open_device(struct client *c, struct client *events)
{
	client_connect(c);
	client_hello(c);
	*events = *c;
	c->n_fds = 0;
}

START_TEST(clients_are_told_and_may_only_destroy)
{
	struct device *dev = rig.device[0];
	struct uroce_hello h = { .magic = UROCE_ABI_MAGIC,
				 .version = UROCE_ABI_VERSION,
				 .device = "uroce0" };
	struct client c, events, late;
	uint32_t pd, cq, qp;

	open_device(&c, &events);
	pd = client_pd(&c);
	cq = client_cq(&c, 0);
	qp = client_qp(&c, pd, cq);
	remove_device(dev);
	ck_assert_uint_eq(fake.n[ENGINE_QP_MODIFY], 1);
	ck_assert_uint_eq(fake.last.qp_modify.attr.qp_state, UROCE_QPS_ERR);
	ck_assert_uint_eq(session_uar(c.s)->fatal, UROCE_UAR_REMOVED);
	ck_assert_uint_eq(next_event(&events).type, UROCE_EVENT_DEVICE_FATAL);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_ALLOC_PD, NULL, 0), EIO);
	ck_assert_uint_eq(client_request(&c, UROCE_OP_QUERY_PORT, NULL, 0), EIO);
	client_connect(&late);
	ck_assert_uint_eq(client_request(&late, UROCE_OP_HELLO, &h, sizeof(h)), ENODEV);
	client_close(&late);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_QP, qp), 0);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_DESTROY_CQ, cq), 0);
	ck_assert_uint_eq(client_destroy(&c, UROCE_OP_FREE_PD, pd), 0);
	client_close_fds(&events);
	client_close(&c); /* the last: the device is freed, as a leak check sees */
}
END_TEST

START_TEST(clients_of_other_devices_notice_nothing)
{
	struct client c, events;

	open_device(&c, &events);
	remove_device(rig.device[1]);
	ck_assert_uint_eq(rig.n_devices, 1);
	ck_assert_uint_eq(session_uar(c.s)->fatal, 0);
	client_pd(&c);
	ck_assert_int_eq(recv(events.fds[1], &c, 1, MSG_DONTWAIT), -1);
	client_close_fds(&events);
	client_close(&events);
}
END_TEST

START_TEST(port_and_gid_events_reach_the_clients_of_the_device)
{
	struct client c, events;

	open_device(&c, &events);
	rig.device[0]->is_admin_down = true;
	device_event(rig.device[1], UROCE_EVENT_PORT_ERR);
	device_event(rig.device[0], UROCE_EVENT_PORT_ERR);
	device_event(rig.device[0], UROCE_EVENT_GID_CHANGE);
	ck_assert_uint_eq(next_event(&events).element, 1);
	ck_assert_uint_eq(next_event(&events).type, UROCE_EVENT_GID_CHANGE);
	ck_assert_int_eq(recv(events.fds[1], &c, 1, MSG_DONTWAIT), -1);
	client_close_fds(&events);
	client_close(&events);
}
END_TEST

START_TEST(numbers_of_nodes_go_round_past_those_in_use)
{
	ck_assert_uint_eq(rig.device[1]->uverbs, 1);
	for (unsigned i = 2; i < UROCE_N_NODES; i++)
		ck_assert_uint_eq(device_list_take_node(&rig), i);
	ck_assert_uint_eq(device_list_take_node(&rig), 2);
	ck_assert_uint_eq(device_list_free_index(&rig), 2);
	remove_device(rig.device[0]);
	ck_assert_uint_eq(device_list_free_index(&rig), 0);
	ck_assert_str_eq(rig.device[0]->name, "uroce1");
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("plug");
	TCase *tc = tcase_create("plug");

	tcase_add_checked_fixture(tc, rig_setup, rig_teardown);
	tcase_add_test(tc, clients_are_told_and_may_only_destroy);
	tcase_add_test(tc, clients_of_other_devices_notice_nothing);
	tcase_add_test(tc, port_and_gid_events_reach_the_clients_of_the_device);
	tcase_add_test(tc, numbers_of_nodes_go_round_past_those_in_use);
	suite_add_tcase(s, tc);
	return s;
}
