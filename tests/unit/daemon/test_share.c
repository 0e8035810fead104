/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may import what from whom, and what is left when one of them goes. */
#include "tests/support/ck_main.h"
#include "tests/unit/daemon/fake_engine.h"
#include "tests/unit/daemon/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client owner, guest;
static int cmd_fd;
static uint32_t pd, mr;
static uint8_t buffer[256];
static uint64_t probe_word;

static uint32_t hello(struct client *c, int fd, uint32_t flags)
{
	struct uroce_hello h = { .magic = UROCE_ABI_MAGIC,
				 .version = UROCE_ABI_VERSION,
				 .device = "uroce1",
				 .probe_addr = (uint64_t)(uintptr_t)&probe_word,
				 .flags = flags };

	c->fd_out = fd;
	return client_request(c, UROCE_OP_HELLO, &h, sizeof(h));
}

static void setup(void)
{
	rig_setup();
	cmd_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	client_connect(&owner);
	client_connect(&guest);
	ck_assert_uint_eq(hello(&owner, cmd_fd, 0), 0);
	pd = client_pd(&owner);
	mr = client_mr(&owner, pd, buffer, sizeof(buffer));
}

static void teardown(void)
{
	client_close(&guest);
	if (owner.s)
		client_close(&owner);
	close(cmd_fd);
	rig_teardown();
}

static uint32_t import(uint32_t op, uint32_t handle)
{
	struct uroce_handle h = { .handle = handle };

	return client_request(&guest, op, &h, sizeof(h));
}

static uint32_t import_mr(uint32_t own_pd, uint32_t handle)
{
	struct uroce_import_mr q = { own_pd, handle };

	return client_request(&guest, UROCE_OP_IMPORT_MR, &q, sizeof(q));
}

START_TEST(the_descriptor_says_whose_context_and_which_device)
{
	const struct uroce_hello_rep *rep = (const struct uroce_hello_rep *)guest.body;
	int twin = dup(cmd_fd);

	ck_assert_uint_eq(hello(&guest, twin, UROCE_HELLO_IMPORT), 0);
	ck_assert_str_eq(rep->device, "uroce1");
	close(twin);
}
END_TEST

START_TEST(without_the_very_file_nothing_is_imported)
{
	int other = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_uint_eq(hello(&guest, 0, UROCE_HELLO_IMPORT), EINVAL);
	ck_assert_uint_eq(hello(&guest, other, UROCE_HELLO_IMPORT), EINVAL);
	ck_assert_uint_eq(hello(&guest, cmd_fd, 0x80), EINVAL);
	ck_assert_uint_eq(hello(&guest, other, 0), 0);
	ck_assert_uint_eq(import(UROCE_OP_IMPORT_PD, pd), EINVAL);
	ck_assert_uint_eq(import_mr(pd, mr), EINVAL);
	close(other);
}
END_TEST

START_TEST(keys_of_a_region_come_with_its_pd_only)
{
	struct uroce_reg_mr_rep rep;
	uint32_t own, theirs;

	ck_assert_uint_eq(hello(&guest, cmd_fd, UROCE_HELLO_IMPORT), 0);
	own = client_pd(&guest);
	ck_assert_uint_eq(import(UROCE_OP_IMPORT_PD, pd), 0);
	theirs = client_handle(&guest);
	ck_assert_uint_eq(import_mr(own, mr), EINVAL);
	ck_assert_uint_eq(import_mr(theirs, mr + 1), EINVAL);
	ck_assert_uint_eq(import_mr(theirs, mr), 0);
	memcpy(&rep, guest.body, sizeof(rep));
	ck_assert_uint_ne(rep.lkey, 0);
	ck_assert_uint_eq(client_destroy(&guest, UROCE_OP_DEREG_MR, mr), EINVAL);
}
END_TEST

START_TEST(an_imported_pd_outlives_its_owner)
{
	uint32_t n_pd = owner.s->dev->n_pd;
	struct device *dev = owner.s->dev;

	ck_assert_uint_eq(hello(&guest, cmd_fd, UROCE_HELLO_IMPORT), 0);
	ck_assert_uint_eq(import(UROCE_OP_IMPORT_PD, pd), 0);
	pd = client_handle(&guest);
	ck_assert_uint_eq(dev->n_pd, n_pd);
	client_close(&owner);
	owner.s = NULL;
	ck_assert_uint_eq(dev->n_pd, n_pd);
	client_mr(&guest, pd, buffer, sizeof(buffer));
	ck_assert_uint_eq(import(UROCE_OP_IMPORT_PD, 1), EINVAL); /* from whom? */
	ck_assert_uint_eq(client_destroy(&guest, UROCE_OP_FREE_PD, pd), EBUSY);
}
END_TEST

START_TEST(a_pd_in_use_by_another_is_busy)
{
	uint32_t theirs, handle;

	ck_assert_uint_eq(client_destroy(&owner, UROCE_OP_DEREG_MR, mr), 0);
	ck_assert_uint_eq(hello(&guest, cmd_fd, UROCE_HELLO_IMPORT), 0);
	ck_assert_uint_eq(import(UROCE_OP_IMPORT_PD, pd), 0);
	theirs = client_handle(&guest);
	handle = client_mr(&guest, theirs, buffer, sizeof(buffer));
	ck_assert_uint_eq(client_destroy(&owner, UROCE_OP_FREE_PD, pd), EBUSY);
	ck_assert_uint_eq(client_destroy(&guest, UROCE_OP_DEREG_MR, handle), 0);
	ck_assert_uint_eq(client_destroy(&owner, UROCE_OP_FREE_PD, pd), 0);
	ck_assert_uint_eq(client_destroy(&guest, UROCE_OP_FREE_PD, theirs), 0);
}
END_TEST

START_TEST(device_memory_is_handed_on_as_the_file_it_is)
{
	struct uroce_share_dm q = { .length = 100 };
	const struct uroce_import_dm_rep *rep = (const struct uroce_import_dm_rep *)guest.body;
	int fd = memfd_create("dm", MFD_CLOEXEC);
	struct stat ours, theirs;
	uint32_t dm;

	ck_assert_uint_eq(client_request(&owner, UROCE_OP_SHARE_DM, &q, sizeof(q)), EINVAL);
	owner.fd_out = fd;
	ck_assert_uint_eq(client_request(&owner, UROCE_OP_SHARE_DM, &q, sizeof(q)), 0);
	dm = client_handle(&owner);
	ck_assert_uint_eq(hello(&guest, cmd_fd, UROCE_HELLO_IMPORT), 0);
	ck_assert_uint_eq(import(UROCE_OP_IMPORT_DM, dm), 0);
	ck_assert_uint_eq(rep->length, 100);
	ck_assert_uint_eq(guest.n_fds, 1);
	ck_assert_int_eq(fstat(fd, &ours) | fstat(guest.fds[0], &theirs), 0);
	ck_assert_uint_eq(ours.st_ino, theirs.st_ino);
	ck_assert_uint_eq(client_destroy(&owner, UROCE_OP_UNSHARE_DM, dm), 0);
	ck_assert_uint_eq(import(UROCE_OP_IMPORT_DM, dm), EINVAL);
	ck_assert_uint_eq(client_destroy(&owner, UROCE_OP_UNSHARE_DM, dm), EINVAL);
	close(fd);
}
END_TEST

START_TEST(a_session_cannot_fill_our_table_of_descriptors)
{
	struct uroce_share_dm q = { .length = 1 };
	uint32_t err = 0, n = 0;

	for (; n < 2 * SESSION_MAX_DM && !err; n++) {
		owner.fd_out = cmd_fd;
		err = client_request(&owner, UROCE_OP_SHARE_DM, &q, sizeof(q));
	}
	ck_assert_uint_eq(err, ENOMEM);
	ck_assert_uint_eq(n, SESSION_MAX_DM + 1);
}
END_TEST

/* A descriptor with a request that wants none is closed, not kept. */
START_TEST(descriptors_that_nobody_asked_for_are_closed)
{
	int pipe_fd[2];
	char c;

	ck_assert_int_eq(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
	owner.fd_out = pipe_fd[1];
	client_pd(&owner);
	close(pipe_fd[1]);
	ck_assert_int_eq(read(pipe_fd[0], &c, 1), 0); /* end of file: no writer is left */
	close(pipe_fd[0]);
}
END_TEST

Suite *suite_make(void)
{
	Suite *s = suite_create("daemon/share");
	TCase *tc = tcase_create("share");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_descriptor_says_whose_context_and_which_device);
	tcase_add_test(tc, without_the_very_file_nothing_is_imported);
	tcase_add_test(tc, keys_of_a_region_come_with_its_pd_only);
	tcase_add_test(tc, an_imported_pd_outlives_its_owner);
	tcase_add_test(tc, a_pd_in_use_by_another_is_busy);
	tcase_add_test(tc, device_memory_is_handed_on_as_the_file_it_is);
	tcase_add_test(tc, a_session_cannot_fill_our_table_of_descriptors);
	tcase_add_test(tc, descriptors_that_nobody_asked_for_are_closed);
	suite_add_tcase(s, tc);
	return s;
}
