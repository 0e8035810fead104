/* SPDX-License-Identifier: BSD-3-Clause */
/* RoCEv2 packets: frame bytes → checked view, view → frame bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/wire/frame.h"
#include "fabric/wire/opcode.h"

/*
 * Where a packet goes: what Ethernet, IP and UDP need. Addresses are GIDs in network order; IPv4
 * ones are ::ffff:a.b.c.d. The ECN bits are the low two of tclass.
 */
struct net_path {
	uint8_t dmac[6], smac[6];
	uint8_t sgid[16], dgid[16];
	uint32_t flow_label; /* IPv6 */
	uint16_t vlan;       /* TCI, NET_NO_VLAN: untagged */
	uint16_t udp_sport;
	uint8_t is_ipv4;
	uint8_t tclass;
	uint8_t hop_limit;
};
#define NET_NO_VLAN 0xffffu

/*
 * One packet, decoded, host byte order except where said. Fields of absent headers are 0: so all of
 * the first part is cleared for every packet, and is kept small.
 */
struct packet {
	uint8_t opcode;
	uint8_t pad; /* 0..3 */
	bool solicited, ack_req, mig_req, fecn, becn;
	uint8_t tver;
	uint32_t dest_qpn;
	uint32_t psn; /* below 2^24 */
	/* RETH; AtomicETH shares va and rkey */
	uint64_t va;
	uint64_t swap_add, compare;
	uint64_t atomic_orig; /* AtomicAckETH */
	uint32_t rkey;
	uint32_t dma_len;
	uint32_t flush; /* FETH, FETH_* */
	/* DETH */
	uint32_t qkey, src_qpn;
	uint32_t imm;      /* as it stands on the wire (big-endian): programs treat it so */
	uint32_t inv_rkey; /* IETH */
	uint32_t xrc_srqn; /* XRCETH */
	/* AETH */
	uint32_t msn;
	uint8_t syndrome;
	uint16_t pkey;
	uint32_t payload_len; /* without pad */
	/* filled by packet_parse only */
	uint32_t icrc;        /* as carried */
	uint32_t n_segs;
	const struct frame *frame;
	struct frame_seg seg[FRAME_SEGS]; /* the payload_len bytes */
	struct net_path net;
	uint16_t ip_id;       /* IPv4 identification as carried, or as the ICRC tells it */
};

/* Clears what packet_build looks at. */
static inline void packet_clear(struct packet *pk)
{
	__builtin_memset(pk, 0, __builtin_offsetof(struct packet, icrc));
}

/* Why a frame is no packet for us. Every one is counted under its name. */
enum packet_verdict {
	PACKET_OK,
	PACKET_NOT_ROCE,        /* other EtherType, protocol or UDP port: not ours to judge */
	PACKET_SHORT,           /* ends inside a header */
	PACKET_BAD_IP,          /* version, header length, checksum, fragment, total length */
	PACKET_BAD_UDP_LEN,
	PACKET_BAD_BTH_VERSION, /* TVer */
	PACKET_UNKNOWN_OPCODE,
	PACKET_BAD_PAD,         /* pad longer than the payload, or payload where none may be */
	PACKET_BAD_ICRC,
	PACKET_N_VERDICTS
};
extern const char *const packet_verdict_name[PACKET_N_VERDICTS];

/*
 * Reads f into pk; looks at every byte it relies on. check_icrc: also the ICRC, unless the frame
 * is open and split.
 */
enum packet_verdict packet_parse(struct packet *pk, const struct frame *f, bool check_icrc);

/*
 * A path as header bytes, made once per QP or AH: Ethernet, IP and UDP with zero lengths.
 * IPv4: DF set, identification 0, TTL = hop_limit, and the checksum of just that.
 */
struct net_template {
	uint8_t bytes[14 + 4 + 40 + 8];
	uint8_t len;
	uint8_t l3_off;   /* of the IP header */
	uint8_t is_ipv4;
};
void net_template_build(struct net_template *t, const struct net_path *p);

/*
 * Writes headers, pad and ICRC of pk into f (split form), whose seg[] already holds pk->payload_len
 * bytes of payload. The headers end right at f->buf. pk->pad is computed, pk->icrc ignored. An
 * open frame stays open: without an ICRC.
 */
void packet_build(const struct packet *pk, const struct net_template *t, struct frame *f);

/*
 * The UDP source port for a connected QP pair as Linux computes it (rdma_flow_label,
 * rdma_calc_flow_label).
 */
uint16_t roce_udp_sport(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn);

/*
 * One line for logs: "RC RDMA WRITE First qpn 0x11 psn 5 len 1024 va .. rkey .." into buf; returns
 * buf.
 */
const char *packet_describe(const struct packet *pk, char *buf, unsigned size);

/* FETH: where to, and of what. */
#define FETH_GLOBAL     0x01u
#define FETH_PERSISTENT 0x02u
#define FETH_PLACEMENT  0x0fu
#define FETH_REGION     0x10u /* all of the region; else the RETH's range */
#define FETH_SELECTION  0x30u

#define ROCE_UDP_PORT 4791u
#define BTH_PSN_MASK  0xffffffu
#define BTH_QPN_MASK  0xffffffu
