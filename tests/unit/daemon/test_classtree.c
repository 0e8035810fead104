/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/classtree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/daemon/metrics.h"
#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/rig.h"

static void teardown(void)
{
	classtree_remove(&rig);
	metrics_free();
	rig_teardown();
}

static const char *text(const char *path)
{
	static char buf[300];
	char full[400];
	int fd;
	ssize_t n;

	snprintf(full, sizeof(full), "sys/class/%s", path);
	fd = openat(rig.dir.fd, full, O_RDONLY);
	ck_assert_msg(fd >= 0, "%s is not there", path);
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n < 0 ? 0 : n] = 0;
	return buf;
}

/* What libibverbs and the programs of docs/ARCHITECTURE.md read. */
static const struct {
	const char *path, *text;
} file[] = {
	{ "infiniband_verbs/abi_version", "6\n" },
	{ "infiniband_verbs/uverbs100/ibdev", "uroce0\n" },
	{ "infiniband_verbs/uverbs101/ibdev", "uroce1\n" },
	{ "infiniband_verbs/uverbs100/dev", "1:3\n" },
	{ "infiniband_verbs/uverbs100/abi_version", "1\n" },
	{ "misc/rdma_cm/abi_version", "4\n" },
	{ "infiniband/uroce0/node_type", "1: CA\n" },
	{ "infiniband/uroce0/node_guid", "0055:52ff:fe4f:0001\n" },
	{ "infiniband/uroce1/node_guid", "0055:52ff:fe4f:0002\n" },
	{ "infiniband/uroce0/device/modalias", "uroce:v1\n" },
	{ "infiniband/uroce0/ports/1/state", "4: ACTIVE\n" },
	{ "infiniband/uroce0/ports/1/phys_state", "5: LinkUp\n" },
	{ "infiniband/uroce0/ports/1/link_layer", "Ethernet\n" },
	{ "infiniband/uroce0/ports/1/rate", "100 Gb/sec (4X EDR)\n" },
	{ "infiniband/uroce0/ports/1/pkeys/0", "0xffff\n" },
	{ "infiniband/uroce0/ports/1/gids/0", "fe80:0000:0000:0000:0055:52ff:fe4f:0001\n" },
	{ "infiniband/uroce0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:c612:0001\n" },
	{ "infiniband/uroce1/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:c612:0002\n" },
	{ "infiniband/uroce0/ports/1/gids/15", "0000:0000:0000:0000:0000:0000:0000:0000\n" },
	{ "infiniband/uroce0/ports/1/gid_attrs/types/1", "RoCE v2\n" },
	{ "infiniband/uroce0/ports/1/gid_attrs/ndevs/1", "" },
	{ "infiniband/uroce0/ports/1/counters/port_xmit_data", "0\n" },
	{ "infiniband/uroce0/ports/1/hw_counters/out_of_sequence", "0\n" },
	{ "infiniband/uroce0/ports/1/hw_counters/lifespan", "1000\n" },
};
#define N_FILES ((int)(sizeof(file) / sizeof(file[0])))

START_TEST(files_say_what_programs_expect)
{
	ck_assert_int_eq(classtree_create(&rig), 0);
	ck_assert_str_eq(text(file[_i].path), file[_i].text);
}
END_TEST

START_TEST(the_provider_finds_the_socket)
{
	char want[PATH_MAX + 32];

	ck_assert_int_eq(classtree_create(&rig), 0);
	snprintf(want, sizeof(want), "%s/control.sock\n", rig.dir.path);
	ck_assert_str_eq(text("infiniband/uroce0/device/uroce_socket"), want);
}
END_TEST

START_TEST(a_tree_left_behind_is_replaced_and_links_are_not_followed)
{
	struct stat st;

	ck_assert_int_eq(classtree_create(&rig), 0);
	ck_assert_int_eq(symlinkat("/etc", rig.dir.fd, "sys/class/link"), 0);
	ck_assert_int_eq(mkdirat(rig.dir.fd, "sys.new", 0755), 0);
	ck_assert_int_eq(classtree_create(&rig), 0);
	ck_assert_int_ne(fstatat(rig.dir.fd, "sys/class/link", &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert_int_eq(stat("/etc/passwd", &st), 0);
	classtree_remove(&rig);
	ck_assert_int_ne(fstatat(rig.dir.fd, "sys", &st, 0), 0);
	ck_assert_int_ne(fstatat(rig.dir.fd, "sys.new", &st, 0), 0);
}
END_TEST

static void count(const struct device *dev, struct metrics_port *m)
{
	m->tx_bytes = dev->index ? 0 : 12000;
	m->tx_packets = dev->index ? 0 : 20;
}

START_TEST(counters_appear_when_they_move_and_only_then)
{
	ck_assert_int_eq(classtree_create(&rig), 0);
	ck_assert(!metrics_refresh(&rig));
	metrics_set_link(count);
	fake_count(rig.device[1]->engine[0], 5);
	fake_count(rig.device[1]->engine[1], 6);
	ck_assert(metrics_refresh(&rig));
	ck_assert(!metrics_refresh(&rig));
	metrics_set_link(NULL);
	ck_assert_str_eq(text("infiniband/uroce0/ports/1/counters/port_xmit_data"), "3000\n");
	ck_assert_str_eq(text("infiniband/uroce0/ports/1/counters/port_xmit_packets"), "20\n");
	ck_assert_str_eq(text("infiniband/uroce1/ports/1/hw_counters/out_of_sequence"), "11\n");
	ck_assert_str_eq(text("infiniband/uroce0/ports/1/hw_counters/out_of_sequence"), "0\n");
}
END_TEST

START_TEST(a_device_comes_and_goes)
{
	struct device *dev = rig.device[1];

	ck_assert_int_eq(classtree_create(&rig), 0);
	ck_assert_int_eq(faccessat(rig.dir.fd, "dev/uverbs101", R_OK | W_OK, 0), 0);
	classtree_del(&rig, dev);
	ck_assert_int_ne(faccessat(rig.dir.fd, "sys/class/infiniband/uroce1", F_OK, 0), 0);
	ck_assert_int_ne(faccessat(rig.dir.fd, "sys/class/infiniband_verbs/uverbs101", F_OK, 0), 0);
	ck_assert_int_ne(faccessat(rig.dir.fd, "dev/uverbs101", F_OK, 0), 0);
	ck_assert_str_eq(text("infiniband_verbs/uverbs100/ibdev"), "uroce0\n");
	dev->uverbs = 7;
	ck_assert_int_eq(classtree_add(&rig, dev), 0);
	ck_assert_str_eq(text("infiniband_verbs/uverbs107/ibdev"), "uroce1\n");
	ck_assert_str_eq(text("infiniband/uroce1/ports/1/gids/1"),
			 "0000:0000:0000:0000:0000:ffff:c612:0002\n");
	ck_assert_int_ne(faccessat(rig.dir.fd, "sys.new", F_OK, 0), 0);
}
END_TEST

START_TEST(state_and_gids_follow_the_device_in_place)
{
	struct device *dev = rig.device[0];

	ck_assert_int_eq(classtree_create(&rig), 0);
	dev->is_admin_down = true;
	gid_table_del(&dev->gids, 1);
	classtree_update(&rig, dev);
	ck_assert_str_eq(text("infiniband/uroce0/ports/1/state"), "1: DOWN\n");
	ck_assert_str_eq(text("infiniband/uroce0/ports/1/gids/1"),
			 "0000:0000:0000:0000:0000:0000:0000:0000\n");
	dev->is_admin_down = false;
	classtree_update(&rig, dev);
	ck_assert_str_eq(text("infiniband/uroce0/ports/1/state"), "4: ACTIVE\n");
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("classtree");
	TCase *tc = tcase_create("classtree");

	tcase_add_checked_fixture(tc, rig_setup, teardown);
	tcase_add_loop_test(tc, files_say_what_programs_expect, 0, N_FILES);
	tcase_add_test(tc, the_provider_finds_the_socket);
	tcase_add_test(tc, a_tree_left_behind_is_replaced_and_links_are_not_followed);
	tcase_add_test(tc, counters_appear_when_they_move_and_only_then);
	tcase_add_test(tc, a_device_comes_and_goes);
	tcase_add_test(tc, state_and_gids_follow_the_device_in_place);
	suite_add_tcase(s, tc);
	return s;
}
