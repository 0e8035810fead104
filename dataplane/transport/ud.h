/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams: address handles, multicast groups, the UD requester and responder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/engine.h"

#define UD_GRH_LEN 40u
#define MCAST_QPN  0xffffffu

struct qp;

struct ah {
	bool is_live;
	uint32_t ah, pd;
	struct net_template tmpl;
};

/* One QP in one group. */
struct mcast {
	uint32_t qpn; /* 0: free */
	uint8_t mgid[16];
};

int ah_add(struct engine *e, const struct cmd_ah_add *cmd);
int ah_del(struct engine *e, uint32_t ah);
struct ah *ah_find(struct engine *e, uint32_t ah);

int mcast_add(struct engine *e, const struct cmd_mcast *cmd);
int mcast_del(struct engine *e, const struct cmd_mcast *cmd);
void mcast_forget(struct engine *e, uint32_t qpn);

unsigned ud_emit(struct engine *e, struct qp *qp, struct frame *const *out, unsigned n);
void ud_rx(struct engine *e, struct qp *qp, const struct packet *pk);
void ud_rx_multicast(struct engine *e, const struct packet *pk);
