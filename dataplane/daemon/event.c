/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/event.h"

#include "dataplane/abi/ctrl.h"
#include "dataplane/daemon/control.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/objects.h"

void event_completion(void *ctx, uint32_t owner, uint32_t cqn, uint64_t channel, uint64_t token)
{
	struct channel *ch = (struct channel *)(uintptr_t)channel;
	struct daemon *d = ctx;

	(void)owner;
	(void)cqn;
	if (ch && notify_send(&ch->notify, &token))
		control_poke(d->control, CONTROL_POKE_FLUSH);
}

void event_async(void *ctx, const struct engine_event *ev)
{
	struct uroce_async_record rec = { .element = ev->element, .type = ev->type };
	struct daemon *d = ctx;
	struct session *s =
		__atomic_load_n(&d->session[ev->owner % DAEMON_MAX_SESSIONS], __ATOMIC_ACQUIRE);

	if (ev->owner == OWNER_XRC_TARGET)
		xrc_target_event(d, (struct xrc_target *)(uintptr_t)ev->element, ev->type);
	else if (s && notify_send(&s->async, &rec))
		control_poke(d->control, CONTROL_POKE_FLUSH);
}
