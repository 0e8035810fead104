/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: of engines and links, out to the class tree and to whoever asks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct device;

/* What the port's standard counters are made of. */
struct metrics_port {
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	uint64_t drops; /* frames that the link lost, for whatever reason */
};

/* Set once by main: how the links of this daemon count, all workers together. NULL: not at all. */
typedef void metrics_link_fn(const struct device *dev, struct metrics_port *out);
void metrics_set_link(metrics_link_fn *fn);
void metrics_port(const struct device *dev, struct metrics_port *out);

/* Counter i of the engines of dev; i below engine_n_counters(). */
uint64_t metrics_engine(const struct device *dev, unsigned i);

/* The counter files of ports/1: the value of counters/NAME; false: no such file. */
unsigned metrics_n_port_files(void);
const char *metrics_port_file(unsigned i, const struct metrics_port *m, uint64_t *value);

/* Writes changed values into the class tree. True: something had changed since the last time. */
bool metrics_refresh(struct daemon *d);
/* The device is gone, and with it the files. */
void metrics_forget(const struct device *dev);
void metrics_free(void);
