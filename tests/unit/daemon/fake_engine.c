/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/daemon/fake_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake_engine fake;

struct engine {
	const struct ports *ports;
	uint64_t counter[1];
};

size_t engine_shared_size(const struct engine_conf *conf)
{
	(void)conf;
	return 64;
}

size_t engine_size(const struct engine_conf *conf)
{
	(void)conf;
	return sizeof(struct engine);
}

struct engine *engine_create(const struct engine_conf *conf, const struct ports *ports, void *arena)
{
	struct engine *e = arena;

	(void)conf;
	e->ports = ports;
	return e;
}

size_t engine_qp_size(uint32_t sq_depth)
{
	return 256 + 16ul * sq_depth;
}

/* With fail_from, only that one: what goes back must be able to. */
static bool fake_fails(void)
{
	if (!fake.fail_from)
		return true;
	if (--fake.fail_from)
		return false;
	fake.fail_op = 0;
	return true;
}

int engine_command(struct engine *e, uint64_t now, const struct cmd *cmd, struct cmd_reply *reply)
{
	(void)e;
	(void)now;
	fake.last = *cmd;
	fake.n[cmd->op]++;
	memset(reply, 0, sizeof(*reply));
	if (fake.fail_op == (int)cmd->op + 1 && fake_fails())
		return fake.fail_err;
	if (cmd->op == ENGINE_CQ_DEL || cmd->op == ENGINE_QP_DEL)
		reply->events_sent = fake.events_sent;
	if (cmd->op == ENGINE_QP_QUERY)
		reply->attr.qkey = 0x1234;
	return 0;
}

int engine_qp_info(const struct engine *e, uint32_t qpn, struct engine_qp_info *info)
{
	(void)e;
	(void)qpn;
	memset(info, 0, sizeof(*info));
	info->type = UROCE_QPT_RC;
	info->state = UROCE_QPS_RTS;
	return 0;
}

void engine_rx(struct engine *e, uint64_t now, const struct frame *const *in, unsigned n)
{
	(void)e;
	(void)now;
	(void)in;
	fake.rx += n;
}

void engine_doorbell(struct engine *e, uint64_t now, uint32_t qpn)
{
	(void)e;
	(void)now;
	(void)qpn;
	__atomic_fetch_add(&fake.doorbells, 1, __ATOMIC_RELAXED);
}

unsigned engine_tx(struct engine *e, uint64_t now, struct frame *const *out, unsigned n)
{
	(void)e;
	(void)now;
	(void)out;
	(void)n;
	return 0;
}

bool engine_tx_pending(const struct engine *e)
{
	(void)e;
	return false;
}

uint64_t engine_deadline(const struct engine *e)
{
	(void)e;
	return __atomic_load_n(&fake.deadline, __ATOMIC_RELAXED);
}

void engine_expire(struct engine *e, uint64_t now)
{
	(void)e;
	fake.expired_at = now;
	if (!fake.expired)
		fake.rx_before = fake.rx;
	__atomic_store_n(&fake.deadline, UINT64_MAX, __ATOMIC_RELAXED);
	__atomic_fetch_add(&fake.expired, 1, __ATOMIC_RELEASE);
}

const uint64_t *engine_counters(const struct engine *e)
{
	return e->counter;
}

unsigned engine_n_counters(void)
{
	return 1;
}

const char *engine_counter_name(unsigned i)
{
	return i ? NULL : "out_of_sequence";
}

void fake_count(struct engine *e, uint64_t value)
{
	e->counter[0] = value;
}

void fake_notify(struct engine *e, uint32_t owner, uint64_t channel, uint64_t token)
{
	e->ports->cq_notify(e->ports->ctx, owner, 1, channel, token);
}

void fake_event(struct engine *e, uint32_t owner, uint64_t element, uint32_t type)
{
	struct engine_event ev = { .owner = owner, .element = element, .type = type };

	e->ports->event(e->ports->ctx, &ev);
}
