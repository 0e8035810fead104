/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link/udp_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "fabric/addr/gid.h"
#include "fabric/wire/packet.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

#define BUFFER_BYTES (8 << 20) /* each way; what the kernel grants decides */

struct option {
	int level, name, value;
};

static int set_options(int fd, const struct option *o, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (setsockopt(fd, o[i].level, o[i].name, &o[i].value, sizeof(o[i].value)))
			return -errno;
	return 0;
}

/* DF and identification 0 come with PMTUDISC_DO on a socket that is not connected. */
static int set_ipv4(int fd)
{
	static const struct option o[] = {
		{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO },
		{ IPPROTO_IP, IP_RECVTOS, 1 },
		{ IPPROTO_IP, IP_RECVTTL, 1 },
	};

	return set_options(fd, o, sizeof(o) / sizeof(o[0]));
}

static int set_ipv6(int fd)
{
	static const struct option o[] = {
		{ IPPROTO_IPV6, IPV6_V6ONLY, 1 },
		{ IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO },
		{ IPPROTO_IPV6, IPV6_RECVTCLASS, 1 },
		{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1 },
		{ IPPROTO_UDP, UDP_NO_CHECK6_RX, 1 }, /* Linux rxe sends none over IPv6 either */
	};

	return set_options(fd, o, sizeof(o) / sizeof(o[0]));
}

/* As much as we may have: beyond the limit for everybody only with CAP_NET_ADMIN. */
static void set_buffers(int fd)
{
	static const struct option o[] = {
		{ SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES },
		{ SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES },
		{ SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES },
		{ SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES },
	};

	for (unsigned i = 0; i < sizeof(o) / sizeof(o[0]); i++)
		set_options(fd, &o[i], 1);
}

static int bind_to(int fd, const struct udp_socket *s)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(ROCE_UDP_PORT),
				    .sin6_scope_id = s->scope_id };
	int err;

	memcpy(&in.sin_addr, s->addr + 12, 4);
	memcpy(&in6.sin6_addr, s->addr, 16);
	err = s->is_ipv4 ? bind(fd, (struct sockaddr *)&in, sizeof(in))
			 : bind(fd, (struct sockaddr *)&in6, sizeof(in6));
	return err ? -errno : 0;
}

/* The low half of the QPN, bytes 6 and 7 of the BTH, modulo the workers: see handoff.h. */
static int steer_by_qpn(int fd, unsigned n_workers)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, n_workers),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)) ? -errno
											 : 0;
}

/* What goes to a group leaves by the device's interface, and not beyond its routers. */
static int set_group_sending(int fd, bool is_ipv4, const struct link_udp_addr *a)
{
	const struct ip_mreqn by = { .imr_ifindex = (int)a->interface };
	const struct option v4 = { IPPROTO_IP, IP_MULTICAST_LOOP, a->loops_groups };
	const struct option v6[] = {
		{ IPPROTO_IPV6, IPV6_MULTICAST_LOOP, a->loops_groups },
		{ IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)a->interface },
	};

	if (!is_ipv4)
		return set_options(fd, v6, 2);
	if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by)))
		return -errno;
	return set_options(fd, &v4, 1);
}

/* Other sockets of this host may have the group too: each gets what comes. */
static int join(int fd, const struct udp_socket *s, const struct link_udp_addr *a)
{
	struct ip_mreqn v4 = { .imr_ifindex = (int)a->interface };
	struct ipv6_mreq v6 = { .ipv6mr_interface = a->interface };
	const struct option share = { SOL_SOCKET, SO_REUSEADDR, 1 };
	const struct option there = { SOL_SOCKET, SO_BINDTOIFINDEX, (int)a->interface };
	const struct option only_ours = { s->is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
					  s->is_ipv4 ? IP_MULTICAST_ALL : IPV6_MULTICAST_ALL, 0 };
	int err = set_options(fd, &share, 1);

	if (!err)
		err = set_options(fd, &only_ours, 1);
	/* IPv6 does not ask where a member joined. Kernels before 5.7 ask for a capability. */
	set_options(fd, &there, 1);
	if (err)
		return err;
	memcpy(&v4.imr_multiaddr, s->addr + 12, 4);
	memcpy(&v6.ipv6mr_multiaddr, s->addr, 16);
	err = s->is_ipv4 ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof(v4))
			 : setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &v6, sizeof(v6));
	return err ? -errno : 0;
}

static int open_one(struct udp_socket *s, bool is_shared, const struct link_udp_addr *a)
{
	const struct option gro = { IPPROTO_UDP, UDP_GRO, 1 };
	const struct option share = { SOL_SOCKET, SO_REUSEPORT, 1 };
	int err;

	s->fd = socket(s->is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       IPPROTO_UDP);
	if (s->fd < 0)
		return -errno;
	err = s->is_ipv4 ? set_ipv4(s->fd) : set_ipv6(s->fd);
	if (!err && s->is_group)
		err = join(s->fd, s, a);
	else if (!err && is_shared)
		err = set_options(s->fd, &share, 1);
	if (!err && a->interface && !s->is_group)
		err = set_group_sending(s->fd, s->is_ipv4, a);
	set_options(s->fd, &gro, 1); /* without it packets come one by one */
	set_buffers(s->fd);
	return err ? err : bind_to(s->fd, s);
}

int udp_socket_open(struct udp_socket *s, unsigned n_workers, const struct link_udp_addr *a)
{
	bool is_group = gid_is_multicast(a->gid);
	int err = 0;
	unsigned n;

	/* Their order of binding is their number in the group. */
	for (n = 0; !err && n < n_workers; n++) {
		s[n] = (struct udp_socket) { .scope_id = is_group ? a->interface : a->scope_id,
					     .is_ipv4 = gid_is_ipv4(a->gid),
					     .is_group = is_group };
		memcpy(s[n].addr, a->gid, sizeof(s[n].addr));
		err = open_one(&s[n], n_workers > 1, a);
	}
	if (!err && n_workers > 1 && !is_group)
		err = steer_by_qpn(s[0].fd, n_workers);
	for (unsigned i = 0; err && i < n; i++) {
		if (s[i].fd >= 0)
			close(s[i].fd);
		s[i].fd = -1;
	}
	return err;
}

socklen_t udp_socket_peer(const struct udp_socket *s, const uint8_t *ip_dst,
			  struct sockaddr_storage *to)
{
	if (s->is_ipv4) {
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };

		memcpy(&in.sin_addr, ip_dst, 4);
		memcpy(to, &in, sizeof(in));
		return sizeof(in);
	}
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT) };

	memcpy(&in6.sin6_addr, ip_dst, 16);
	if (ip_dst[0] == 0xfe && (ip_dst[1] & 0xc0) == 0x80)
		in6.sin6_scope_id = s->scope_id;
	memcpy(to, &in6, sizeof(in6));
	return sizeof(in6);
}
