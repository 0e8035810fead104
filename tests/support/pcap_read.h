/* SPDX-License-Identifier: BSD-3-Clause */
/* Just enough of a pcap reader for the test vectors: classic format, Ethernet, host byte order. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#define PCAP_SNAP 9216u

struct pcap_reader {
	FILE *file;
	uint32_t len; /* of the last record */
	uint8_t bytes[PCAP_SNAP];
};

/* 0, or -1 when path cannot be opened or is no such file. */
int pcap_open(struct pcap_reader *r, const char *path);

/* 1: a record is in r->bytes; 0: clean end; -1: damaged file. */
int pcap_next(struct pcap_reader *r);
void pcap_close(struct pcap_reader *r);
