/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The error truth table of docs/TRANSPORT.md, read and run. truth_table.c reads it, truth_rows.c
 * has the scenario of each row, test_truth.c runs them and compares.
 */
#pragma once

#include "tests/sim/scene.h"
#include "tests/support/fake_srq.h"

#define TRUTH_ROWS 128u
#define TRUTH_LIST 8u
#define TRUTH_GONE (-1)   /* state "-" */
#define TRUTH_AT   98304u /* where the good work before and behind the misuse reads and writes */

/* What one side shows, as the table says. */
struct truth_side {
	uint32_t n_status;
	uint8_t status[TRUTH_LIST];
	bool is_flushed; /* and all that was posted behind */
	int state;       /* enum uroce_qps, or TRUTH_GONE */
	uint32_t n_events;
	uint32_t event[TRUTH_LIST];
};

struct truth_row {
	char misuse[96];
	struct truth_side side[2]; /* L, R */
	char remark[96];           /* what L's cell says behind its semicolon */
};

struct truth_table {
	uint32_t n;
	struct truth_row row[TRUTH_ROWS];
};

/* Ends the test, saying what and where, when the file or a cell of it cannot be understood. */
void truth_read(struct truth_table *t, const char *path);
/* How many rows there are, whatever they say; 0 when there is no file or no table. */
unsigned truth_count(const char *path);

enum truth_flag {
	TRUTH_ALONE = 1,   /* nothing is posted before it */
	TRUTH_LAST = 2,    /* nor behind it */
	TRUTH_NO_RECV = 4, /* R has no receives */
};

struct truth {
	struct scene s;
	struct fake_cq *send_cq; /* of L */
	struct fake_srq *srq;    /* of R, if it has one */
	uint32_t n_sends;        /* posted by L; wr_id counts them */
	bool is_signaled[64];
	uint32_t n_recvs[2]; /* posted on each side; wr_id counts them too */
};

struct truth_case {
	const char *misuse;
	void (*set_up)(struct truth *t); /* before anything is posted; may be NULL */
	void (*run)(struct truth *t);    /* posts the misuse at L */
	unsigned flags;                  /* enum truth_flag */
	struct scene_conf conf;
};

struct truth_list {
	const struct truth_case *cases;
	unsigned n;
};
extern const struct truth_list truth_remote; /* R refuses, or is not there */
extern const struct truth_list truth_local;  /* L or its provider did something wrong */
extern const struct truth_list truth_other;  /* states, shared receives, windows, UC and UD */

/* A signaled WR from the start of L's memory to that of R's. */
struct fake_wr truth_wr(struct truth *t, uint8_t opcode, uint32_t len);
void truth_post(struct truth *t, struct fake_wr wr);
void truth_recv(struct truth *t, unsigned side, struct uroce_sge sge);
void truth_recv_list(struct truth *t, unsigned side, const struct uroce_sge *sge, uint32_t n);

/* Another QP instead of the one of that side, in RESET. */
void truth_new_qp(struct truth *t, unsigned side, const struct fake_qp_conf *conf);
