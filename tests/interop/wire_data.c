/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two of these, one on each side of a wire, run every RC operation in both directions over lengths
 * of every remainder and around the path MTU, and compare every byte, guard bytes included.
 *
 * usage: wire_data DEVICE GID_INDEX PATH_MTU PORT MAX_LENGTH TIMEOUT [SERVER]
 *
 * TIMEOUT is that of the QP: with a long one nothing is sent twice because a machine is slow.
 *
 * The TCP connection to SERVER's PORT only says whose turn it is. Exit code 0: all was right.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROOM    (4u << 20)
#define GUARD   64u
#define PSN     0xfffff0u /* wraps soon */
#define SECONDS 60

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *mem; /* GUARD, ROOM, GUARD */
static int sock;
static unsigned step, timeout;

struct hello {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey, qpn;
};
static struct hello own, peer;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "step %u: ", step);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

static void give(const void *p, size_t n)
{
	if (write(sock, p, n) != (ssize_t)n)
		die("the other side is gone");
}

static void take(void *p, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t k = read(sock, (char *)p + got, n - got);

		if (k <= 0)
			die("the other side is gone");
		got += (size_t)k;
	}
}

static void say(char what)
{
	give(&what, 1);
}

static void hear(char what)
{
	char c;

	take(&c, 1);
	if (c != what)
		die("'%c' is expected, the other side says '%c'", what, c);
}

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET }, *a;
	int fd;

	if (getaddrinfo(host, port, &hint, &a))
		die("%s: no such host", host);
	fd = socket(a->ai_family, SOCK_STREAM, 0);
	if (connect(fd, a->ai_addr, a->ai_addrlen))
		die("%s:%s does not answer", host, port);
	freeaddrinfo(a);
	return fd;
}

static int accept_one(const char *port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 1))
		die("port %s is taken", port);
	return accept(fd, NULL, NULL);
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (unsigned i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("%s does not open", name);
}

static void make_qp(int gid_index)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 16, 16, 2, 2, 0 } };

	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	if (posix_memalign((void **)&mem, 4096, ROOM + 2 * GUARD))
		die("no memory");
	mr = ibv_reg_mr(pd, mem, ROOM + 2 * GUARD,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	if (!qp || !mr || ibv_query_gid(ctx, 1, gid_index, &own.gid))
		die("QP, MR or GID %d cannot be had", gid_index);
	own.qpn = qp->qp_num;
	own.addr = (uintptr_t)mem;
	own.rkey = mr->rkey;
}

static void connect_qp(int gid_index, enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };

	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("INIT is refused");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR,
				   .path_mtu = mtu,
				   .dest_qp_num = peer.qpn,
				   .rq_psn = PSN,
				   .max_dest_rd_atomic = 4,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1,
						.port_num = 1,
						.grh = { .dgid = peer.gid,
							 .sgid_index = (uint8_t)gid_index,
							 .hop_limit = 64 } } };
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR is refused");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS,
				   .sq_psn = PSN,
				   .timeout = (uint8_t)timeout,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 4 };
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS is refused");
}

static uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) * 3 + step * 13 + 1);
}

static void fill(uint32_t len)
{
	memset(mem, 0xee, GUARD);
	for (uint32_t i = 0; i < len; i++)
		mem[GUARD + i] = pattern(i);
	memset(mem + GUARD + len, 0xee, GUARD);
}

static void wipe(uint32_t len)
{
	memset(mem, 0xee, len + 2 * GUARD);
}

static void check(uint32_t len)
{
	for (uint32_t i = 0; i < GUARD; i++)
		if (mem[i] != 0xee || mem[GUARD + len + i] != 0xee)
			die("a byte outside the %u of the message changed", len);
	for (uint32_t i = 0; i < len; i++)
		if (mem[GUARD + i] != pattern(i))
			die("byte %u of %u is %02x, not %02x", i, len, mem[GUARD + i], pattern(i));
}

static struct ibv_wc complete(void)
{
	time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		if (time(NULL) > end)
			die("no completion within %d s", SECONDS);
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("completion: %s", n < 0 ? "no CQ" : ibv_wc_status_str(wc.status));
	return wc;
}

static void post_recv(uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)mem + GUARD, len, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad))
		die("the receive is refused");
}

static void post_send(enum ibv_wr_opcode op, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)mem + GUARD, len, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(0xabcd0000 + step) };
	struct ibv_send_wr *bad;

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer.addr + GUARD;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = op == IBV_WR_ATOMIC_CMP_AND_SWP ? 1000 : 5;
		wr.wr.atomic.swap = 77;
	} else {
		wr.wr.rdma.remote_addr = peer.addr + GUARD;
		wr.wr.rdma.rkey = peer.rkey;
	}
	if (ibv_post_send(qp, &wr, &bad))
		die("the request is refused");
}

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool has_recv(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void act(enum ibv_wr_opcode op, uint32_t len)
{
	uint64_t old;

	if (op == IBV_WR_RDMA_READ || is_atomic(op))
		wipe(len);
	else
		fill(len);
	hear('r');
	post_send(op, len);
	complete();
	if (op == IBV_WR_RDMA_READ)
		check(len);
	memcpy(&old, mem + GUARD, sizeof(old));
	if (is_atomic(op) && old != 1000)
		die("the atomic returns %lu, not 1000", (unsigned long)old);
	say('d');
	hear('o');
}

static void check_recv(enum ibv_wr_opcode op, uint32_t len)
{
	struct ibv_wc wc = complete();
	bool has_imm = op != IBV_WR_SEND;

	if (wc.byte_len != len)
		die("%u bytes are received, not %u", wc.byte_len, len);
	if (!(wc.wc_flags & IBV_WC_WITH_IMM) != !has_imm ||
	    (has_imm && ntohl(wc.imm_data) != 0xabcd0000 + step))
		die("the immediate is wrong");
}

static void serve(enum ibv_wr_opcode op, uint32_t len)
{
	uint64_t value = 1000;

	if (op == IBV_WR_RDMA_READ)
		fill(len);
	else
		wipe(len);
	if (is_atomic(op))
		memcpy(mem + GUARD, &value, sizeof(value));
	if (has_recv(op))
		post_recv(op == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : len);
	say('r');
	hear('d');
	if (has_recv(op))
		check_recv(op, len);
	memcpy(&value, mem + GUARD, sizeof(value));
	if (!is_atomic(op))
		check(len);
	else if (value != (op == IBV_WR_ATOMIC_CMP_AND_SWP ? 77 : 1005))
		die("the atomic leaves %lu", (unsigned long)value);
	say('o');
}

static void run(bool is_active, uint32_t mtu, uint32_t max)
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_RDMA_READ };
	const uint32_t len[] = { 0,        1,       2,      3,        4,       5,
				 63,       mtu - 1, mtu,    mtu + 1,  2 * mtu, 3 * mtu + 2,
				 16 * mtu, 65535,   300007, 1u << 20, (3u << 20) + 3, ROOM };

	for (unsigned o = 0; o < sizeof(op) / sizeof(op[0]); o++)
		for (unsigned l = 0; l < sizeof(len) / sizeof(len[0]) && len[l] <= max; l++, step++)
			(is_active ? act : serve)(op[o], len[l]);
	(is_active ? act : serve)(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	step++;
	(is_active ? act : serve)(IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	step++;
}

int main(int argc, char **argv)
{
	bool is_client = argc == 8;
	uint32_t max;
	int gid_index, mtu;

	if (argc != 7 && argc != 8)
		die("usage: wire_data DEVICE GID_INDEX PATH_MTU PORT MAX_LENGTH TIMEOUT [SERVER]");
	gid_index = atoi(argv[2]);
	mtu = atoi(argv[3]);
	max = (uint32_t)atoi(argv[5]);
	timeout = (unsigned)atoi(argv[6]);
	open_device(argv[1]);
	make_qp(gid_index);
	sock = is_client ? connect_to(argv[7], argv[4]) : accept_one(argv[4]);
	give(&own, sizeof(own));
	take(&peer, sizeof(peer));
	connect_qp(gid_index, (enum ibv_mtu)(__builtin_ctz((unsigned)mtu) - 7));
	say('c');
	hear('c');
	run(is_client, (uint32_t)mtu, max);
	run(!is_client, (uint32_t)mtu, max);
	printf("%u operations, every byte right\n", step);
	return 0;
}
