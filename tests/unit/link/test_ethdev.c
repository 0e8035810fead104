/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/ethdev.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "tests/support/ck_main.h"
#include "tests/unit/link/eal.h"

static const uint8_t bytes[9000];

static void open_driver(struct ethdev *e, const char *devargs)
{
	memset(e, 0, sizeof(*e));
	ck_assert_int_eq(ethdev_open(e, devargs, 4204, true), 0);
}

START_TEST(a_frame_longer_than_an_mbuf_is_a_chain_where_the_driver_sends_chains)
{
	struct ethdev_out o;
	struct ethdev e;

	open_driver(&e, "net_ring0");
	ck_assert(e.has_chains);
	ck_assert(ethdev_out_start(&e, &o));
	ck_assert(ethdev_out_add(&e, &o, bytes, sizeof(bytes)));
	ck_assert_uint_eq(o.first->pkt_len, sizeof(bytes));
	ck_assert_uint_gt(o.first->nb_segs, 1);
	rte_pktmbuf_free(o.first);
	ethdev_close(&e);
}
END_TEST

START_TEST(where_it_does_not_no_frame_is_longer_than_an_mbuf)
{
	struct ethdev_out o;
	struct ethdev e;

	open_driver(&e, "net_null0");
	ck_assert(!e.has_chains);
	ck_assert(ethdev_out_start(&e, &o));
	ck_assert(ethdev_out_add(&e, &o, bytes, e.longest));
	ck_assert(!ethdev_out_add(&e, &o, bytes, 1));
	ck_assert_uint_eq(o.first->pkt_len, e.longest);
	ck_assert_uint_eq(o.first->nb_segs, 1);
	rte_pktmbuf_free(o.first);
	ethdev_close(&e);
}
END_TEST

START_TEST(the_drivers_buffers_limit_a_frame)
{
	static const struct {
		const char *more;
		uint32_t longest;
	} want[] = { { "", 2048 }, { ",bsize=3000", 3000 }, { ",bsize=65535", ETHDEV_BYTES } };
	char devargs[128];
	struct ethdev e;

	snprintf(devargs, sizeof(devargs),
		 "net_memif%d,role=server,socket=/tmp/uroce-ethdev-%d,socket-abstract=no%s", _i,
		 (int)getpid(), want[_i].more);
	open_driver(&e, devargs);
	ck_assert_uint_eq(e.longest, want[_i].longest);
	ethdev_close(&e);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("ethdev");
	TCase *tc = tcase_create("longest");

	tcase_add_unchecked_fixture(tc, eal_up, NULL);
	tcase_add_test(tc, a_frame_longer_than_an_mbuf_is_a_chain_where_the_driver_sends_chains);
	tcase_add_test(tc, where_it_does_not_no_frame_is_longer_than_an_mbuf);
	tcase_add_loop_test(tc, the_drivers_buffers_limit_a_frame, 0, 3);
	suite_add_tcase(s, tc);
	return s;
}
