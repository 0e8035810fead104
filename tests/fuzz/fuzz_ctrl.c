/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile client of the control socket: messages of any op, length and contents, with handles
 * that exist and handles that do not, with and without a descriptor. The daemon's real control
 * plane answers, on engines of the test's own. It must stand, answer each request once, and give
 * back all that a client owned when the client goes: no descriptor may be left.
 */
#include <dirent.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/input.h"
#include "tests/unit/daemon/rig.h"

#define REQUIRE(cond) ((cond) ? (void)0 : abort())
#define MESSAGES      32
#define HANDLES       16u

static uint32_t known[HANDLES];
static unsigned n_known;

static unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	REQUIRE(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A word that is often a handle of ours. */
static void put_handle(struct input *in, uint8_t *at)
{
	uint8_t pick = input_u8(in);
	uint32_t h;

	if (pick >= 128 || !n_known)
		return;
	h = known[pick % n_known];
	if (pick >= 120)
		h ^= 1u << (pick & 7); /* nearly one */
	memcpy(at, &h, sizeof(h));
}

static uint32_t pick_op(struct input *in)
{
	uint8_t op = input_u8(in);

	if (op >= 250)
		return input_u32(in);
	return op >= 240 ? UROCE_OP_ADMIN_HELLO + op - 240 : op % 48;
}

static void remember(uint32_t handle)
{
	if (n_known < HANDLES)
		known[n_known++] = handle;
	else
		known[handle % HANDLES] = handle;
}

static void message(struct client *c, struct input *in)
{
	struct {
		struct uroce_req head;
		uint8_t body[UROCE_CTRL_MSG_MAX];
	} q = { .head.op = pick_op(in) };
	uint8_t how = input_u8(in);
	uint32_t len = input_u8(in) * (how & 1 ? 8u : 1u);
	int fd = -1;

	if (q.head.op == UROCE_OP_ADMIN_STOP)
		return; /* stops this process, as it should */
	input_take(in, q.body, len < 256 ? len : 256);
	for (uint32_t at = 0; at < 24 && at + 4 <= len; at += 4)
		put_handle(in, q.body + at);
	q.head.len = how & 2 ? input_u32(in) : len;
	if (how & 4)
		c->fd_out = fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (client_raw(c, &q, sizeof(q.head) + len) && !c->err && c->len >= 4)
		remember(client_handle(c));
	if (fd >= 0)
		close(fd);
}

static void start(void)
{
	static bool is_up;

	if (is_up)
		return;
	is_up = true;
	rig_setup();
	atexit(rig_teardown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	static struct client c;
	unsigned fds;

	start();
	fds = count_fds();
	n_known = 0;
	client_connect(&c);
	if (input_u8(&in) & 3)
		client_hello(&c);
	for (unsigned i = 0; i < MESSAGES && in.left && c.s; i++)
		message(&c, &in);
	if (c.s)
		client_close(&c);
	else
		close(c.fd);
	client_close_fds(&c);
	REQUIRE(count_fds() == fds);
	return 0;
}
