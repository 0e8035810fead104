/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "tests/sim/truth.h"

#define HEADING "## What each misuse shows"
#define HEADER  "| misuse | L completes | R completes | QP L | QP R | event at L | event at R |"
#define CELLS   7u

struct name {
	const char *name;
	uint32_t value;
};

static const struct name statuses[] = {
	{ "SUCCESS", UROCE_WC_SUCCESS },
	{ "LOC_LEN_ERR", UROCE_WC_LOC_LEN_ERR },
	{ "LOC_QP_OP_ERR", UROCE_WC_LOC_QP_OP_ERR },
	{ "LOC_PROT_ERR", UROCE_WC_LOC_PROT_ERR },
	{ "WR_FLUSH_ERR", UROCE_WC_WR_FLUSH_ERR },
	{ "MW_BIND_ERR", UROCE_WC_MW_BIND_ERR },
	{ "BAD_RESP_ERR", UROCE_WC_BAD_RESP_ERR },
	{ "LOC_ACCESS_ERR", UROCE_WC_LOC_ACCESS_ERR },
	{ "REM_INV_REQ_ERR", UROCE_WC_REM_INV_REQ_ERR },
	{ "REM_ACCESS_ERR", UROCE_WC_REM_ACCESS_ERR },
	{ "REM_OP_ERR", UROCE_WC_REM_OP_ERR },
	{ "RETRY_EXC_ERR", UROCE_WC_RETRY_EXC_ERR },
	{ "RNR_RETRY_EXC_ERR", UROCE_WC_RNR_RETRY_EXC_ERR },
	{ NULL, 0 },
};

static const struct name events[] = {
	{ "CQ_ERR", UROCE_EVENT_CQ_ERR },
	{ "QP_FATAL", UROCE_EVENT_QP_FATAL },
	{ "QP_REQ_ERR", UROCE_EVENT_QP_REQ_ERR },
	{ "QP_ACCESS_ERR", UROCE_EVENT_QP_ACCESS_ERR },
	{ "COMM_EST", UROCE_EVENT_COMM_EST },
	{ "SQ_DRAINED", UROCE_EVENT_SQ_DRAINED },
	{ "SRQ_LIMIT_REACHED", UROCE_EVENT_SRQ_LIMIT },
	{ "QP_LAST_WQE_REACHED", UROCE_EVENT_QP_LAST_WQE },
	{ NULL, 0 },
};

static const struct name states[] = {
	{ "RESET", UROCE_QPS_RESET }, { "INIT", UROCE_QPS_INIT }, { "RTR", UROCE_QPS_RTR },
	{ "RTS", UROCE_QPS_RTS },     { "SQD", UROCE_QPS_SQD },   { "SQE", UROCE_QPS_SQE },
	{ "ERR", UROCE_QPS_ERR },     { NULL, 0 },
};

/* Where we are, for the words of a failure. */
struct place {
	const char *path;
	unsigned line;
};

static uint32_t look_up(const struct place *at, const struct name *list, const char *word)
{
	for (; list->name; list++)
		if (!strcmp(list->name, word))
			return list->value;
	ck_abort_msg("%s:%u: \"%s\" is no name that belongs there", at->path, at->line, word);
}

static char *trim(char *s)
{
	char *end;

	while (*s == ' ')
		s++;
	end = s + strlen(s);
	while (end > s && (end[-1] == ' ' || end[-1] == '\n'))
		*--end = '\0';
	return s;
}

/* The next word of a list with commas; NULL at its end. */
static char *next_word(char **list)
{
	char *word = *list ? strsep(list, ",") : NULL;

	return word && *trim(word) ? trim(word) : NULL;
}

static void read_statuses(const struct place *at, struct truth_side *side, char *cell)
{
	char *word;

	while ((word = next_word(&cell))) {
		ck_assert_msg(!side->is_flushed, "%s:%u: \"flush\" is the end", at->path, at->line);
		ck_assert_uint_lt(side->n_status, TRUTH_LIST);
		if (!strcmp(word, "flush"))
			side->is_flushed = true;
		else
			side->status[side->n_status++] = (uint8_t)look_up(at, statuses, word);
	}
}

static void read_events(const struct place *at, struct truth_side *side, char *cell)
{
	char *word;

	while ((word = next_word(&cell))) {
		ck_assert_uint_lt(side->n_events, TRUTH_LIST);
		side->event[side->n_events++] = look_up(at, events, word);
	}
}

static int read_state(const struct place *at, char *cell)
{
	char *word = trim(cell);

	return strcmp(word, "-") ? (int)look_up(at, states, word) : TRUTH_GONE;
}

static void read_row(const struct place *at, struct truth_row *row, char *line)
{
	char *cell[CELLS], *rest = trim(line) + 1, *remark;

	for (unsigned i = 0; i < CELLS; i++) {
		cell[i] = strsep(&rest, "|");
		ck_assert_msg(cell[i] && rest, "%s:%u: a row has %u cells", at->path, at->line,
			      CELLS);
	}
	ck_assert_msg(!*trim(rest), "%s:%u: there is something behind the row", at->path,
		      at->line);
	snprintf(row->misuse, sizeof(row->misuse), "%s", trim(cell[0]));
	remark = strchr(cell[1], ';');
	if (remark) {
		*remark++ = '\0';
		snprintf(row->remark, sizeof(row->remark), "%s", trim(remark));
	}
	for (unsigned i = 0; i < 2; i++) {
		read_statuses(at, &row->side[i], cell[1 + i]);
		row->side[i].state = read_state(at, cell[3 + i]);
		read_events(at, &row->side[i], cell[5 + i]);
	}
}

void truth_read(struct truth_table *t, const char *path)
{
	enum { BEFORE, HEADER_NEXT, RULE_NEXT, ROWS, BEHIND } where = BEFORE;
	struct place at = { path, 0 };
	FILE *f = fopen(path, "r");
	char line[512];

	ck_assert_msg(f != NULL, "cannot open %s", path);
	memset(t, 0, sizeof(*t));
	while (fgets(line, sizeof(line), f)) {
		at.line++;
		if (where == BEFORE && !strcmp(trim(line), HEADING)) {
			where = HEADER_NEXT;
		} else if (where == HEADER_NEXT && line[0] == '|') {
			ck_assert_str_eq(trim(line), HEADER);
			where = RULE_NEXT;
		} else if (where == RULE_NEXT) {
			where = ROWS;
		} else if (where == ROWS && line[0] != '|') {
			where = BEHIND;
		} else if (where == ROWS) {
			ck_assert_uint_lt(t->n, TRUTH_ROWS);
			read_row(&at, &t->row[t->n++], line);
		}
	}
	fclose(f);
	ck_assert_msg(where == BEHIND && t->n, "%s: there is no table below \"%s\"", path, HEADING);
}

unsigned truth_count(const char *path)
{
	FILE *f = fopen(path, "r");
	bool is_inside = false;
	unsigned n = 0;
	char line[512];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "## ", 3))
			is_inside = !strcmp(trim(line), HEADING);
		n += is_inside && line[0] == '|';
	}
	fclose(f);
	return n > 2 ? n - 2 : 0;
}
