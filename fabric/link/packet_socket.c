/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/packet_socket.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fabric/wire/hdr.h"
#include "fabric/wire/packet.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

static_assert(sizeof(struct packet_vnet) == sizeof(struct virtio_net_hdr), "the kernel's");

#define BUFFER_BYTES (8 << 20) /* each way; what the kernel grants decides */
#define EVERYTHING   0xffffffffu

/* Offsets into a frame; the kernel has put a tag's bytes aside. */
#define ETH      ((uint32_t)sizeof(struct eth_hdr))
#define V6_PORT  (ETH + (uint32_t)sizeof(struct ipv6_hdr) + 2)
#define V6_QPN   (ETH + (uint32_t)(sizeof(struct ipv6_hdr) + sizeof(struct udp_hdr)) + 4)
#define AD(what) ((uint32_t)(SKF_AD_OFF + SKF_AD_##what))

enum { MAX_CODE = 40, DROP = 255 }; /* a jump there is mended when the length is known */

/*
 * Of frames for this host (also in promiscuous mode) those to port 4791 that are no fragments, and
 * whose QPN, modulo the workers, is ours.
 */
static unsigned make_filter(struct sock_filter *code, const struct packet_filter *f)
{
	const struct sock_filter all[MAX_CODE] = {
		/* 0 */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AD(PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, PACKET_OTHERHOST, DROP, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AD(VLAN_TAG)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, f->vlan, 0, DROP),
		/* 5 */
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_TYPE_IPV4, 0, 8),
		/* 7: IPv4 */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH + offsetof(struct ipv4_hdr, proto)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP_PROTO_UDP, 0, DROP),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH + offsetof(struct ipv4_hdr, frag)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, IPV4_FRAGMENT, DROP, 0),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, ETH),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, ETH + 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_UDP_PORT, 0, DROP),
		BPF_JUMP(BPF_JMP | BPF_JA, 5, 0, 0),
		/* 15: IPv6 */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_TYPE_IPV6, 0, DROP),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH + offsetof(struct ipv6_hdr, next)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP_PROTO_UDP, 0, DROP),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, V6_PORT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_UDP_PORT, 3, DROP),
		/* 20: QPN of IPv4 */
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, ETH + (uint32_t)sizeof(struct udp_hdr) + 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, BTH_QPN_MASK),
		BPF_JUMP(BPF_JMP | BPF_JA, 2, 0, 0),
		/* 23: QPN of IPv6 */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, V6_QPN),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, BTH_QPN_MASK),
		/* 25: see handoff.h */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BTH_QPN_MASK, 3, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffff),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, f->n_workers),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, f->worker, 0, DROP),
		/* 29 */
		BPF_STMT(BPF_RET | BPF_K, EVERYTHING),
		/* 30 */
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const unsigned drop = 30;

	for (unsigned i = 0; i <= drop; i++) {
		code[i] = all[i];
		if (BPF_CLASS(code[i].code) != BPF_JMP)
			continue;
		if (code[i].jt == DROP)
			code[i].jt = (uint8_t)(drop - i - 1);
		if (code[i].jf == DROP)
			code[i].jf = (uint8_t)(drop - i - 1);
	}
	return drop + 1;
}

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* As much as we may have: beyond the limit for everybody only with CAP_NET_ADMIN. */
static void set_buffers(int fd)
{
	set_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	set_option(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES);
	set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES);
}

/* All groups: the filter keeps off what is no RoCE. */
static int join_groups(int fd, unsigned interface)
{
	struct packet_mreq m = { .mr_ifindex = (int)interface, .mr_type = PACKET_MR_ALLMULTI };

	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)) ? -errno : 0;
}

int packet_socket_move(int fd, unsigned interface)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)interface };

	if (bind(fd, (struct sockaddr *)&to, sizeof(to)))
		return -errno;
	return join_groups(fd, interface);
}

static int set_up(int fd, unsigned interface, const struct packet_filter *filter)
{
	struct sock_filter code[MAX_CODE];
	struct sock_fprog prog = { (unsigned short)make_filter(code, filter), code };
	int err;

	set_buffers(fd);
	/* The filter knows this too, but without it each packet we send is shown to it first. */
	set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		return -errno;
	err = set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
	return err ? err : packet_socket_move(fd, interface);
}

int packet_socket_open(unsigned interface, const struct packet_filter *filter)
{
	/* Protocol 0: it gets nothing before it is bound, when the filter is there. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	err = set_up(fd, interface, filter);
	if (!err)
		return fd;
	close(fd);
	return err;
}

uint32_t packet_socket_overruns(int fd)
{
	struct tpacket_stats s = { 0 };
	socklen_t len = sizeof(s);

	return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) ? 0 : s.tp_drops;
}

/* Before 6.2 a packet socket cannot describe UDP super-frames, and loses them. */
static bool kernel_describes_super_frames(void)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

static int open_guard(const uint8_t addr[GID_LEN], unsigned interface)
{
	static const struct sock_filter nothing[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	const struct sock_fprog prog = { 1, (struct sock_filter *)nothing };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT) };
	bool v4 = gid_is_ipv4(addr);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	memcpy(&in.sin_addr, addr + 12, 4);
	memcpy(&in6.sin6_addr, addr, GID_LEN);
	in6.sin6_scope_id = gid_is_link_local(addr) ? interface : 0;
	if (!v4)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (kernel_describes_super_frames())
		set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ||
	    bind(fd, v4 ? (struct sockaddr *)&in : (struct sockaddr *)&in6,
		 v4 ? sizeof(in) : sizeof(in6)))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

void packet_guards_add(struct packet_guards *g, const uint8_t addr[GID_LEN], unsigned interface)
{
	int fd = g->n < PACKET_GUARDS ? open_guard(addr, interface) : -1;

	if (fd < 0)
		return;
	g->of[g->n].fd = fd;
	memcpy(g->of[g->n++].addr, addr, GID_LEN);
}

void packet_guards_del(struct packet_guards *g, const uint8_t addr[GID_LEN])
{
	for (unsigned i = 0; i < g->n; i++) {
		if (memcmp(g->of[i].addr, addr, GID_LEN))
			continue;
		close(g->of[i].fd);
		g->of[i] = g->of[--g->n];
		return;
	}
}

void packet_guards_close(struct packet_guards *g)
{
	while (g->n)
		close(g->of[--g->n].fd);
}
