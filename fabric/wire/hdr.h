/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of a RoCEv2 packet as they lie on the wire (IBA vol. 1 chapter 9 and annex A17,
 * IEEE 802.3 and 802.1Q, RFC 791, 8200, 768). Every struct is one-byte aligned.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/wire/be.h"

struct eth_hdr {
	uint8_t dst[6];
	uint8_t src[6];
	be16 type;
};
static_assert(sizeof(struct eth_hdr) == 14, "Ethernet header is 14 bytes on the wire");

struct vlan_tag {
	be16 tci;
	be16 type; /* of what follows */
};
static_assert(sizeof(struct vlan_tag) == 4, "802.1Q tag is 4 bytes on the wire");

#define ETH_TYPE_IPV4 0x0800u
#define ETH_TYPE_VLAN 0x8100u
#define ETH_TYPE_IPV6 0x86ddu

struct ipv4_hdr {
	uint8_t ver_ihl; /* 7:4 version, 3:0 header length in words */
	uint8_t tos;
	be16 total_len;
	be16 id;
	be16 frag; /* 14 DF, 13 MF, 12:0 offset */
	uint8_t ttl;
	uint8_t proto;
	be16 checksum;
	uint8_t src[4];
	uint8_t dst[4];
};
static_assert(sizeof(struct ipv4_hdr) == 20, "IPv4 header is 20 bytes without options");
static_assert(offsetof(struct ipv4_hdr, checksum) == 10, "IPv4 checksum");
static_assert(offsetof(struct ipv4_hdr, dst) == 16, "IPv4 destination");

#define IPV4_VER_IHL  0x45u /* RoCEv2 has no IPv4 options */
#define IPV4_DF       0x4000u
#define IPV4_FRAGMENT 0x3fffu /* MF or an offset: part of something larger */

struct ipv6_hdr {
	be32 ver_tc_fl; /* 31:28 version, 27:20 traffic class, 19:0 flow label */
	be16 payload_len;
	uint8_t next;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
};
static_assert(sizeof(struct ipv6_hdr) == 40, "IPv6 header is 40 bytes on the wire");
static_assert(offsetof(struct ipv6_hdr, hop_limit) == 7, "IPv6 hop limit");

#define IPV6_FLOW_MASK 0xfffffu
#define IP_PROTO_UDP   17u

struct udp_hdr {
	be16 sport;
	be16 dport;
	be16 len; /* header and what follows, ICRC included */
	be16 checksum;
};
static_assert(sizeof(struct udp_hdr) == 8, "UDP header is 8 bytes on the wire");

/* Base transport header. */
struct bth {
	uint8_t opcode;
	uint8_t flags; /* 7 SE, 6 MigReq, 5:4 PadCnt, 3:0 TVer */
	be16 pkey;
	be32 fecn_qpn; /* 31 FECN, 30 BECN, 29:24 reserved (resv8a with them), 23:0 DestQP */
	be32 ack_psn;  /* 31 AckReq, 30:24 reserved, 23:0 PSN */
};
static_assert(sizeof(struct bth) == 12, "BTH is 12 bytes on the wire");
static_assert(offsetof(struct bth, fecn_qpn) == 4, "BTH resv8a is byte 4");

#define BTH_SE        0x80u
#define BTH_MIGREQ    0x40u
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK  0x3u
#define BTH_TVER_MASK 0x0fu
#define BTH_FECN      0x80000000u
#define BTH_BECN      0x40000000u
#define BTH_ACKREQ    0x80000000u
#define BTH_24        0xffffffu

static inline uint8_t bth_pad(const struct bth *h)
{
	return (uint8_t)((h->flags >> BTH_PAD_SHIFT) & BTH_PAD_MASK);
}

static inline uint8_t bth_tver(const struct bth *h)
{
	return h->flags & BTH_TVER_MASK;
}

static inline uint32_t bth_dest_qpn(const struct bth *h)
{
	return be32_get(h->fecn_qpn) & BTH_24;
}

static inline uint32_t bth_psn(const struct bth *h)
{
	return be32_get(h->ack_psn) & BTH_24;
}

/* Datagram. */
struct deth {
	be32 qkey;
	be32 src_qpn; /* 23:0 */
};
static_assert(sizeof(struct deth) == 8, "DETH is 8 bytes on the wire");

struct xrceth {
	be32 srqn; /* 23:0 */
};
static_assert(sizeof(struct xrceth) == 4, "XRCETH is 4 bytes on the wire");

/* RDMA. */
/* FLUSH: what shall be seen by whom (IBA 1.5, A19.4.1). */
struct feth {
	be32 bits; /* 5:4 selectivity: 0 range, 1 region; 3:0 placement: 1 global, 2 persistent */
};
static_assert(sizeof(struct feth) == 4, "FETH is 4 bytes on the wire");

struct reth {
	be64 va;
	be32 rkey;
	be32 dma_len;
};
static_assert(sizeof(struct reth) == 16, "RETH is 16 bytes on the wire");

struct atomiceth {
	be64 va;
	be32 rkey;
	be64 swap_add;
	be64 compare;
};
static_assert(sizeof(struct atomiceth) == 28, "AtomicETH is 28 bytes on the wire");

struct aeth {
	be32 syndrome_msn; /* 31:24 syndrome, 23:0 MSN */
};
static_assert(sizeof(struct aeth) == 4, "AETH is 4 bytes on the wire");

struct atomicacketh {
	be64 orig;
};
static_assert(sizeof(struct atomicacketh) == 8, "AtomicAckETH is 8 bytes on the wire");

/* Immediate data: carried as the program gave it. */
struct immdt {
	be32 imm;
};
static_assert(sizeof(struct immdt) == 4, "ImmDt is 4 bytes on the wire");

struct ieth {
	be32 rkey;
};
static_assert(sizeof(struct ieth) == 4, "IETH is 4 bytes on the wire");

/* A congestion notification has 16 reserved bytes after the BTH (IBA A17.9.3). */
#define CNP_RESERVED_LEN 16u

#define ICRC_LEN 4u
