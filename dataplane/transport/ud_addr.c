/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles and multicast attachments. */
#include <errno.h>
#include <string.h>

#include "dataplane/transport/core.h"
#include "fabric/addr/gid.h"

struct ah *ah_find(struct engine *e, uint32_t ah)
{
	struct ah *a = e->conf.max_ah ? &e->ah[ah & (e->conf.max_ah - 1)] : NULL;

	return a && a->is_live && a->ah == ah ? a : NULL;
}

int ah_add(struct engine *e, const struct cmd_ah_add *c)
{
	struct ah *a;

	if (!e->conf.max_ah)
		return -EOPNOTSUPP;
	a = &e->ah[c->ah & (e->conf.max_ah - 1)];
	if (a->is_live)
		return -EEXIST;
	a->is_live = true;
	a->ah = c->ah;
	a->pd = c->pd;
	net_template_build(&a->tmpl, &c->path);
	return 0;
}

int ah_del(struct engine *e, uint32_t ah)
{
	struct ah *a = ah_find(e, ah);

	if (!a)
		return -ENOENT;
	a->is_live = false;
	return 0;
}

/* The table is small and changes rarely: a scan, so that no order of attachments can degrade it. */
static struct mcast *mcast_find(struct engine *e, uint32_t qpn, const uint8_t *mgid)
{
	for (uint32_t i = 0; i < e->conf.max_mcast; i++) {
		struct mcast *m = &e->mcast[i];

		if (m->qpn == qpn && (!mgid || !memcmp(m->mgid, mgid, sizeof(m->mgid))))
			return m;
	}
	return NULL;
}

int mcast_add(struct engine *e, const struct cmd_mcast *c)
{
	struct qp *qp = qp_find(e, c->qpn);
	struct mcast *m;

	if (!qp)
		return -ENOENT;
	if (qp->type != UROCE_QPT_UD || !gid_is_multicast(c->mgid))
		return -EINVAL;
	if (mcast_find(e, c->qpn, c->mgid))
		return 0; /* IBA vol. 1, 11.2.14.1: attaching twice is attaching once */
	m = mcast_find(e, 0, NULL);
	if (!m)
		return -ENOMEM;
	m->qpn = c->qpn;
	memcpy(m->mgid, c->mgid, sizeof(m->mgid));
	return 0;
}

int mcast_del(struct engine *e, const struct cmd_mcast *c)
{
	struct mcast *m = c->qpn ? mcast_find(e, c->qpn, c->mgid) : NULL;

	if (!m)
		return -EINVAL;
	m->qpn = 0;
	return 0;
}

void mcast_forget(struct engine *e, uint32_t qpn)
{
	struct mcast *m;

	while ((m = mcast_find(e, qpn, NULL)))
		m->qpn = 0;
}
