/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/pcap_read.h"

#define MAGIC_US     0xa1b2c3d4u
#define MAGIC_NS     0xa1b23c4du
#define DLT_ETHERNET 1u

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, link_type;
};

struct record_header {
	uint32_t sec, frac, len, wire_len;
};

int pcap_open(struct pcap_reader *r, const char *path)
{
	struct file_header h;

	r->file = fopen(path, "rb");
	if (!r->file)
		return -1;
	if (fread(&h, sizeof(h), 1, r->file) != 1 || (h.magic != MAGIC_US && h.magic != MAGIC_NS) ||
	    h.link_type != DLT_ETHERNET) {
		fclose(r->file);
		r->file = NULL;
		return -1;
	}
	r->len = 0;
	return 0;
}

int pcap_next(struct pcap_reader *r)
{
	struct record_header h;
	size_t n = fread(&h, 1, sizeof(h), r->file);

	if (n == 0)
		return 0;
	if (n != sizeof(h) || h.len > PCAP_SNAP || h.len != h.wire_len)
		return -1;
	r->len = h.len;
	return fread(r->bytes, 1, h.len, r->file) == h.len ? 1 : -1;
}

void pcap_close(struct pcap_reader *r)
{
	if (r->file)
		fclose(r->file);
	r->file = NULL;
}
