/* SPDX-License-Identifier: BSD-3-Clause */
/* `uroce fault`: a line of words in, JSON out. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/daemon/device.h"
#include "dataplane/daemon/links.h"
#include "dataplane/daemon/links_inner.h"
#include "fabric/link/link_fault.h"

/* Takes the first word off *line; NULL: there is none. */
static char *take_word(char **line)
{
	char *word;

	do
		word = strsep(line, " ");
	while (word && !*word);
	return word;
}

static json_t *device_json(const struct links *l, const struct device *of)
{
	const struct links_device *dev = &l->dev[of->index];
	uint64_t count[LINK_FAULT_N_COUNTS];
	char rules[FAULT_TEXT_MAX];
	json_t *counts = json_object();

	link_fault_counters(dev->fault, count);
	for (unsigned i = 0; i < LINK_FAULT_N_COUNTS; i++)
		json_object_set_new(counts, link_fault_count_name[i],
				    json_integer((json_int_t)count[i]));
	return json_pack("{s:s, s:s, s:o}", "device", of->name, "rules",
			 link_fault_text(dev->fault, rules, sizeof(rules)), "counters", counts);
}

/* Runs `verb` on one device; what is wrong goes into err. */
static void run_on(struct links *l, unsigned index, const char *verb, const char *rules, char *err,
		   unsigned size)
{
	struct link_fault *fault = l->dev[index].fault;
	int e = 0;

	if (!strcmp(verb, "set"))
		e = link_fault_set(fault, rules, err, size);
	else if (!strcmp(verb, "clear"))
		e = link_fault_clear(fault);
	if (e && !*err)
		snprintf(err, size, "%s", strerror(-e));
}

/* The rest of the line, "set uroce1 drop=1%" without its first word. NULL: err says why. */
static json_t *run(struct links *l, const char *verb, char *line, char *err, unsigned size)
{
	json_t *list = json_array();
	char *name = take_word(&line);
	unsigned found = 0;

	if (!strcmp(verb, "set") && (!line || !line[strspn(line, " ")]))
		snprintf(err, size, "which faults? set %s NAME=VALUE...", name);

	for (unsigned i = 0; !*err && i < l->d->n_devices; i++) {
		const struct device *dev = l->d->device[i];

		if (name && strcmp(name, dev->name))
			continue;
		found++;
		run_on(l, dev->index, verb, line ? line : "", err, size);
		json_array_append_new(list, device_json(l, dev));
	}
	if (!found && !*err)
		snprintf(err, size, "there is no device %s", name);
	return list;
}

int links_fault(void *ctx, const char *text, char **json)
{
	struct links *l = ctx;
	char *line = strdup(text), *rest = line, err[256] = "", *verb;
	json_t *root = NULL;

	if (!line)
		return -ENOMEM;
	verb = take_word(&rest);
	if (!verb || (strcmp(verb, "set") && strcmp(verb, "show") && strcmp(verb, "clear")))
		snprintf(err, sizeof(err), "set, show or clear is expected");
	else if (!strcmp(verb, "set") && (!rest || !*rest))
		snprintf(err, sizeof(err), "which device? set DEVICE NAME=VALUE...");
	else
		root = run(l, verb, rest, err, sizeof(err));
	if (*err) {
		json_decref(root);
		root = json_pack("{s:s}", "error", err);
	}
	*json = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
	json_decref(root);
	free(line);
	return *json ? 0 : -ENOMEM;
}
