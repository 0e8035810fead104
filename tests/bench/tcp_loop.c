/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message there and back over a TCP connection on loopback, with both sides asking the socket
 * again and again (busy) or waiting in the kernel (block). qperf does the latter only and knows no
 * percentiles.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/timing.h"

#define MAX_LENGTH 65536u

static uint8_t bytes[MAX_LENGTH];
static int recv_flags;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void send_all(int fd, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = send(fd, bytes + at, n - at, MSG_NOSIGNAL);

		if (k < 0)
			fail("send");
		at += (size_t)k;
	}
}

/* 0 at the end of the connection. */
static int recv_all(int fd, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = recv(fd, bytes + at, n - at, recv_flags);

		if (!k)
			return 0;
		if (k < 0 && errno != EAGAIN)
			fail("recv");
		at += k > 0 ? (size_t)k : 0;
	}
	return 1;
}

static int no_delay(int fd)
{
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)))
		fail("TCP socket");
	return fd;
}

static int listen_on_loopback(struct sockaddr_in *at)
{
	socklen_t length = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in) { .sin_family = AF_INET,
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
	if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)at, &length))
		fail("listening on 127.0.0.1");
	return fd;
}

static void run_server(int listener, size_t n)
{
	int fd = no_delay(accept(listener, NULL, NULL));

	while (recv_all(fd, n))
		send_all(fd, n);
}

static void run_client(const struct sockaddr_in *to, size_t size, uint32_t n)
{
	int fd = no_delay(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	uint64_t *ns = calloc(n, sizeof(*ns));

	if (!ns || connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		fail("connect");
	for (uint32_t i = 0; i < n; i++) {
		uint64_t start = timing_now();

		send_all(fd, size);
		if (!recv_all(fd, size)) {
			fprintf(stderr, "the server hung up\n");
			exit(1);
		}
		ns[i] = timing_now() - start;
	}
	timing_print_latency(ns, n);
	free(ns);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at;
	uint32_t size, n;
	int listener;
	pid_t pid;

	if (argc != 4 || (strcmp(argv[1], "busy") != 0 && strcmp(argv[1], "block") != 0)) {
		fprintf(stderr, "usage: %s busy|block SIZE COUNT\n", argv[0]);
		return 2;
	}
	recv_flags = strcmp(argv[1], "busy") ? 0 : MSG_DONTWAIT;
	size = timing_number(argv[2]);
	n = timing_number(argv[3]);
	if (size > MAX_LENGTH) {
		fprintf(stderr, "%u bytes are more than %u\n", size, MAX_LENGTH);
		return 2;
	}
	listener = listen_on_loopback(&at);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_server(listener, size);
		_exit(0);
	}
	run_client(&at, size, n);
	return waitpid(pid, NULL, 0) == pid ? 0 : 1;
}
