/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor under every transport: three processes and rings in shared memory. A client's messages
 * of 64 bytes go through a middle process (the daemon's place) to a server, and an answer for each
 * comes back the same way. There is no protocol in it; all poll as backoff.h says, as ours do. What
 * a transport costs is the distance from this.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dataplane/abi/backoff.h"
#include "tests/bench/timing.h"

#define DEPTH  128u /* perftest's send depth */
#define BURST  32u
#define LENGTH 64u

struct slot {
	uint8_t bytes[LENGTH];
};

struct ring {
	_Alignas(64) uint32_t prod;
	_Alignas(64) uint32_t cons;
	_Alignas(64) struct slot slot[DEPTH];
};

/* One direction of one hop each: client to middle, middle to server, and back. */
struct shared {
	struct ring to_middle, to_server, from_server, to_client;
};

/* One process's place at a ring. */
struct end {
	struct ring *ring;
	uint32_t own;
};

static struct uroce_backoff backoff;

static uint32_t waiting(const struct end *e)
{
	return __atomic_load_n(&e->ring->prod, __ATOMIC_ACQUIRE) - e->own;
}

static uint32_t room(const struct end *e)
{
	return DEPTH - (e->own - __atomic_load_n(&e->ring->cons, __ATOMIC_ACQUIRE));
}

/* Moves up to a burst on; with `out` NULL they end here. */
static uint32_t move_on(struct end *in, struct end *out)
{
	uint32_t n = waiting(in);
	struct slot copy;

	if (n > BURST)
		n = BURST;
	if (out && n > room(out))
		n = room(out);
	if (!n)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&copy, &in->ring->slot[in->own++ % DEPTH], sizeof(copy));
		__asm__ volatile("" : : "r"(&copy) : "memory");
		if (out)
			memcpy(&out->ring->slot[out->own++ % DEPTH], &copy, sizeof(copy));
	}
	__atomic_store_n(&in->ring->cons, in->own, __ATOMIC_RELEASE);
	if (out)
		__atomic_store_n(&out->ring->prod, out->own, __ATOMIC_RELEASE);
	return n;
}

/* There is no bell here, so a poller yields where ours would sleep. */
static void idle(void)
{
	uint64_t t;

	if (!uroce_backoff_due(&backoff)) {
		__builtin_ia32_pause();
		return;
	}
	t = timing_now();
	if (uroce_backoff_next(&backoff, t) == UROCE_BACKOFF_PAUSE) {
		__builtin_ia32_pause();
		return;
	}
	sched_yield();
	uroce_backoff_yielded(&backoff, timing_now() - t);
}

static _Noreturn void run_middle(struct shared *s)
{
	struct end a = { &s->to_middle, 0 }, b = { &s->to_server, 0 };
	struct end c = { &s->from_server, 0 }, d = { &s->to_client, 0 };

	for (;;) {
		if (move_on(&a, &b) + move_on(&c, &d))
			uroce_backoff_busy(&backoff);
		else
			idle();
	}
}

static _Noreturn void run_server(struct shared *s)
{
	struct end in = { &s->to_server, 0 }, out = { &s->from_server, 0 };

	for (;;) {
		if (move_on(&in, &out))
			uroce_backoff_busy(&backoff);
		else
			idle();
	}
}

static void post(struct end *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		memset(&out->ring->slot[out->own++ % DEPTH], (int)i, LENGTH);
	__atomic_store_n(&out->ring->prod, out->own, __ATOMIC_RELEASE);
}

static void measure_rate(struct shared *s, uint32_t n)
{
	struct end out = { &s->to_middle, 0 }, in = { &s->to_client, 0 };
	uint64_t start = timing_now();
	uint32_t posted = 0, done = 0;

	while (done < n) {
		uint32_t k = DEPTH - (posted - done), got;

		if (k > n - posted)
			k = n - posted;
		if (k)
			post(&out, k);
		posted += k;
		got = move_on(&in, NULL);
		done += got;
		if (k + got)
			uroce_backoff_busy(&backoff);
		else
			idle();
	}
	printf("messages_per_s %.0f\n", n * 1e9 / (double)(timing_now() - start));
}

static void measure_latency(struct shared *s, uint32_t n)
{
	struct end out = { &s->to_middle, 0 }, in = { &s->to_client, 0 };
	uint64_t *ns = calloc(n, sizeof(*ns));

	for (uint32_t i = 0; ns && i < n; i++) {
		uint64_t start = timing_now();

		post(&out, 1);
		while (!move_on(&in, NULL))
			idle();
		uroce_backoff_busy(&backoff);
		ns[i] = timing_now() - start;
	}
	if (ns)
		timing_print_latency(ns, n);
	free(ns);
}

static pid_t start(struct shared *s, void (*run)(struct shared *))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(s);
	_exit(0);
}

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s rate|latency COUNT\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool is_rate = argc == 3 && !strcmp(argv[1], "rate");
	pid_t middle, server;
	uint32_t n;

	if (argc != 3 || s == MAP_FAILED || (!is_rate && strcmp(argv[1], "latency") != 0))
		return usage(argv[0]);
	n = timing_number(argv[2]);
	uroce_backoff_init(&backoff);
	middle = start(s, run_middle);
	server = start(s, run_server);
	if (middle > 0 && server > 0)
		(is_rate ? measure_rate : measure_latency)(s, n);
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid = i ? middle : server;

		if (pid > 0 && !kill(pid, SIGKILL))
			waitpid(pid, NULL, 0);
	}
	return middle > 0 && server > 0 ? 0 : 1;
}
