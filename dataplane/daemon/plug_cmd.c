/* SPDX-License-Identifier: BSD-3-Clause */
/* What `uroce device` asks for. */
#include "dataplane/daemon/plug_cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/daemon/classtree.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/device_list.h"
#include "dataplane/daemon/links.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/plug.h"

static int read_device(const struct daemon *d, const char *text, struct config_device *c,
		       struct config_error *e)
{
	unsigned index = device_list_free_index(d);
	int err;

	if (index == CONFIG_MAX_DEVICES)
		return config_fail(e, "there are %u devices, which is the most",
				   CONFIG_MAX_DEVICES);
	err = config_device_parse(c, text, e);
	if (!err)
		err = config_device_check(c, index, e);
	if (!err && daemon_device(d, c->name))
		err = config_fail(e, "there is a device %s already", c->name);
	return err;
}

static int add(struct links *l, const char *text, struct config_error *e, const char **name)
{
	struct daemon *d = links_daemon(l);
	struct config_device c = { 0 };
	struct device *dev;
	int err = read_device(d, text, &c, e);

	if (err)
		return err;
	if (plug_in(d, l, &c, &dev))
		return config_fail(e, "%s", log_last_error());
	err = classtree_add(d, dev);
	if (err) {
		plug_out(l, dev);
		return config_fail(e, "%s", log_last_error());
	}
	log_info("device %s: added", dev->name);
	*name = dev->name;
	return 0;
}

static int del(struct links *l, struct device *dev)
{
	log_info("device %s: removed", dev->name);
	classtree_del(dev->daemon, dev);
	plug_out(l, dev);
	return 0;
}

static int set(struct links *l, struct device *dev, const char *state, struct config_error *e)
{
	bool is_up = !strcmp(state, "up");

	if (!is_up && strcmp(state, "down"))
		return config_fail(e, "a port can be set up or down, not '%s'", state);
	return plug_set_up(l, dev, is_up) ? config_fail(e, "out of memory") : 0;
}

static int run(struct links *l, const char *line, struct config_error *e, char *name, size_t size)
{
	char verb[8] = "", word[UROCE_DEV_NAME_MAX] = "", state[8] = "";
	const char *added = NULL;
	struct device *dev;
	int n = sscanf(line, "%7s %63s %7s", verb, word, state), err;

	if (n > 1 && !strcmp(verb, "add")) {
		err = add(l, strchr(line, ' ') + 1, e, &added);
		if (!err)
			snprintf(name, size, "%s", added);
		return err;
	}
	if (n < 2 || (strcmp(verb, "del") && (n < 3 || strcmp(verb, "set"))))
		return config_fail(e,
				   "add KEY=VALUE,..., del NAME or set NAME up|down is expected");
	snprintf(name, size, "%s", word);
	dev = daemon_device(links_daemon(l), word);
	if (!dev)
		return config_fail(e, "there is no device %s", word);
	return !strcmp(verb, "del") ? del(l, dev) : set(l, dev, state, e);
}

int plug_command(void *ctx, const char *line, char **json)
{
	char name[UROCE_DEV_NAME_MAX] = "";
	struct config_error e = { "" };
	int err = run(ctx, line, &e, name, sizeof(name));
	json_t *root =
		err ? json_pack("{s:s}", "error", e.text) : json_pack("{s:s}", "device", name);

	*json = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return *json ? 0 : -ENOMEM;
}
