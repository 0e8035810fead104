/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/rtnl.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_BYTES 8192

struct mnl_socket *rtnl_open(bool listens)
{
	struct mnl_socket *s =
		mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | (listens ? SOCK_NONBLOCK : 0));
	/* Only against a kernel that never answers. */
	const struct timeval patience = { .tv_sec = 1 };

	if (!s)
		return NULL;
	if (!mnl_socket_bind(s, listens ? RTMGRP_NEIGH : 0, MNL_SOCKET_AUTOPID) &&
	    !setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return s;
	mnl_socket_close(s);
	return NULL;
}

static int family_of(const uint8_t gid[GID_LEN])
{
	return gid_is_ipv4(gid) ? AF_INET : AF_INET6;
}

static void put_address(struct nlmsghdr *h, uint16_t type, const uint8_t gid[GID_LEN])
{
	if (gid_is_ipv4(gid))
		mnl_attr_put(h, type, 4, gid + 12);
	else
		mnl_attr_put(h, type, GID_LEN, gid);
}

static bool address_from(const void *p, uint16_t len, uint8_t gid[GID_LEN])
{
	if (len == 4)
		gid_from_ipv4(gid, p);
	else if (len == GID_LEN)
		memcpy(gid, p, GID_LEN);
	else
		return false;
	return true;
}

/* Sends the question h and reads the answer into buf, h's own. 0 or a negative errno. */
static int ask(struct mnl_socket *s, struct nlmsghdr *h, uint16_t expected)
{
	static uint32_t seq;
	uint32_t own = ++seq;
	ssize_t n;

	h->nlmsg_seq = own;
	h->nlmsg_flags = NLM_F_REQUEST;
	if (mnl_socket_sendto(s, h, h->nlmsg_len) < 0)
		return -errno;
	do {
		int left;

		n = mnl_socket_recvfrom(s, h, ANSWER_BYTES);
		if (n < 0)
			return -errno;
		left = (int)n;
		if (!mnl_nlmsg_ok(h, left))
			return -EPROTO;
	} while (h->nlmsg_seq != own); /* left from a question that timed out */
	if (h->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);

		return e->error ? e->error : -EPROTO;
	}
	return h->nlmsg_type == expected ? 0 : -EPROTO;
}

/* RTA_VIA: a gateway of another family than the route's. */
static bool via_from(const struct nlattr *a, uint8_t gid[GID_LEN])
{
	const struct rtvia *v = mnl_attr_get_payload(a);
	uint16_t len = mnl_attr_get_payload_len(a);

	return len > sizeof(*v) && address_from(v->rtvia_addr, (uint16_t)(len - sizeof(*v)), gid);
}

int rtnl_get_route(struct mnl_socket *s, unsigned interface, const uint8_t dst[GID_LEN],
		   struct rtnl_route *out)
{
	_Alignas(struct nlmsghdr) char buf[ANSWER_BYTES];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct rtmsg *r = mnl_nlmsg_put_extra_header(h, sizeof(*r));
	const struct nlattr *a;
	unsigned oif = interface;
	int err;

	h->nlmsg_type = RTM_GETROUTE;
	r->rtm_family = (unsigned char)family_of(dst);
	r->rtm_dst_len = gid_is_ipv4(dst) ? 32 : 128;
	put_address(h, RTA_DST, dst);
	mnl_attr_put_u32(h, RTA_OIF, interface);
	err = ask(s, h, RTM_NEWROUTE);
	if (err)
		return err;
	memcpy(out->next_hop, dst, GID_LEN);
	out->is_local = r->rtm_type == RTN_LOCAL;
	if (!out->is_local && r->rtm_type != RTN_UNICAST)
		return -ENETUNREACH;
	mnl_attr_for_each(a, h, sizeof(*r))
	{
		if (mnl_attr_get_type(a) == RTA_GATEWAY)
			address_from(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a),
				     out->next_hop);
		else if (mnl_attr_get_type(a) == RTA_VIA)
			via_from(a, out->next_hop);
		else if (mnl_attr_get_type(a) == RTA_OIF)
			oif = mnl_attr_get_u32(a);
	}
	return out->is_local || oif == interface ? 0 : -ENETUNREACH;
}

bool rtnl_read_neigh(const struct nlmsghdr *h, struct rtnl_neigh *out)
{
	const struct ndmsg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *a;
	bool has_addr = false;

	if ((h->nlmsg_type != RTM_NEWNEIGH && h->nlmsg_type != RTM_DELNEIGH) ||
	    h->nlmsg_len < mnl_nlmsg_size(sizeof(*m)))
		return false;
	*out = (struct rtnl_neigh) { .interface = (unsigned)m->ndm_ifindex };
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		uint16_t len = mnl_attr_get_payload_len(a);

		if (mnl_attr_get_type(a) == NDA_DST) {
			has_addr = address_from(mnl_attr_get_payload(a), len, out->addr);
		} else if (mnl_attr_get_type(a) == NDA_LLADDR && len == sizeof(out->mac)) {
			memcpy(out->mac, mnl_attr_get_payload(a), len);
			out->has_mac = true;
		}
	}
	out->is_gone = h->nlmsg_type == RTM_NEWNEIGH && (m->ndm_state & NUD_FAILED);
	out->is_fresh =
		m->ndm_state & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP | NUD_PROBE | NUD_DELAY);
	/* One that is forgotten was right until then, one that is being asked for never was. */
	if (h->nlmsg_type == RTM_DELNEIGH || (m->ndm_state & (NUD_FAILED | NUD_INCOMPLETE)))
		out->has_mac = false;
	return has_addr;
}

int rtnl_get_neigh(struct mnl_socket *s, unsigned interface, const uint8_t addr[GID_LEN],
		   struct rtnl_neigh *out)
{
	_Alignas(struct nlmsghdr) char buf[ANSWER_BYTES];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct ndmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	int err;

	h->nlmsg_type = RTM_GETNEIGH;
	m->ndm_family = (unsigned char)family_of(addr);
	m->ndm_ifindex = (int)interface;
	put_address(h, NDA_DST, addr);
	err = ask(s, h, RTM_NEWNEIGH);
	if (err)
		return err;
	return rtnl_read_neigh(h, out) ? 0 : -EPROTO;
}
