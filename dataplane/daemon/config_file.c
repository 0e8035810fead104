/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/daemon/config_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/abi/abi.h"

static int read_device(struct config_device *d, const json_t *o, struct config_error *e)
{
	const char *key;
	json_t *value;
	int err = json_is_object(o) ? 0 : config_fail(e, "a device is not an object");

	json_object_foreach((json_t *)o, key, value)
	{
		char number[24];

		if (err)
			break;
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		if (json_is_string(value))
			err = config_device_set(d, key, json_string_value(value), e);
		else if (json_is_integer(value) && !strcmp(key, "mtu"))
			err = config_device_set(d, key, number, e);
		else
			err = config_fail(e, "%s has a value of the wrong type", key);
	}
	return err;
}

static int read_devices(struct config *c, const json_t *list, struct config_error *e)
{
	size_t n = json_array_size(list);
	int err = 0;

	if (!json_is_array(list) || !n || n > CONFIG_MAX_DEVICES)
		return config_fail(e, "devices is not a list of 1 to %u", CONFIG_MAX_DEVICES);
	memset(c->device, 0, sizeof(c->device));
	c->n_devices = (unsigned)n;
	for (unsigned i = 0; !err && i < n; i++)
		err = read_device(&c->device[i], json_array_get(list, i), e);
	return err;
}

static int read_key(struct config *c, const char *key, const json_t *v, struct config_error *e)
{
	if (!strcmp(key, "devices"))
		return read_devices(c, v, e);
	if (!strcmp(key, "workers")) {
		json_int_t n = json_integer_value(v);

		if (n < 1 || n > UROCE_MAX_WORKERS)
			return config_fail(e, "workers is not a number from 1 to %u",
					   UROCE_MAX_WORKERS);
		c->n_workers = (unsigned)n;
		return 0;
	}
	if (!strcmp(key, "log_level")) {
		int level = json_is_string(v) ? log_level_parse(json_string_value(v)) : -1;

		if (level < 0)
			return config_fail(e, "log_level is not error, warning, info or debug");
		c->log_level = (enum log_level)level;
		return 0;
	}
	if (!strcmp(key, "check_icrc")) {
		if (!json_is_boolean(v))
			return config_fail(e, "check_icrc is neither true nor false");
		c->check_icrc = json_is_true(v);
		return 0;
	}
	return config_fail(e, "'%s' is none of devices, workers, log_level, check_icrc", key);
}

static int read_root(struct config *c, const json_t *root, struct config_error *e)
{
	const char *key;
	json_t *value;
	int err = json_is_object(root) ? 0 : config_fail(e, "not an object");

	json_object_foreach((json_t *)root, key, value) if (!err) err = read_key(c, key, value, e);
	return err;
}

int config_file_read(struct config *c, const char *path, struct config_error *e)
{
	struct config_error why = { "" };
	struct config copy = *c;
	json_error_t at;
	FILE *f = fopen(path, "re");
	json_t *root;
	int err;

	if (!f) {
		err = -errno;
		config_fail(e, "%s: %s", path, strerror(errno));
		return err;
	}
	root = json_loadf(f, JSON_REJECT_DUPLICATES, &at);
	fclose(f);
	if (!root)
		return config_fail(e, "%s:%d:%d: %s", path, at.line, at.column, at.text);
	err = read_root(&copy, root, &why);
	json_decref(root);
	if (err)
		return config_fail(e, "%.100s: %.140s", path, why.text);
	*c = copy;
	return 0;
}
