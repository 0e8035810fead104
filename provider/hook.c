/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_create_comp_channel, the event reads and an import's event descriptor reach no provider op:
 * libibverbs does them with plain read, write, close and ioctl. We point its own GOT slots for
 * these at ours, for our descriptors only. Without the hook (a static or unusual libibverbs) the
 * write of a command finds a read-only descriptor and fails with EBADF; programs that poll are not
 * concerned.
 *
 * The originals are called by name, through our own GOT: a slot's old value may be the resolver's
 * stub, whose first call would put the slot back.
 */
#include "provider/provider.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_GOT_RELOC(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_GOT_RELOC(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_GOT_RELOC(type) 0
#endif

static const struct {
	const char *name;
	verbs_fn fn;
} hook_table[] = {
	{ "read", (verbs_fn)uroce_event_read },
	{ "write", (verbs_fn)uroce_event_write },
	{ "close", (verbs_fn)uroce_event_close },
	{ "ioctl", (verbs_fn)uroce_event_ioctl },
};

/* The loaded object that holds `address`, as far as we need it. */
struct object {
	uintptr_t address;
	uintptr_t base;
	uintptr_t relro, relro_end;
	const ElfW(Sym) *symtab;
	const char *strtab;
	const ElfW(Rela) *rela, *jmprel;
	size_t n_rela, n_jmprel;
};

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && address >= start && address < start + ph->p_memsz)
			return true;
	}
	return false;
}

/* glibc relocates the pointers in the dynamic section, musl does not. */
static const void *at(const struct object *o, ElfW(Addr) ptr)
{
	return (const void *)(ptr < o->base ? o->base + ptr : ptr);
}

static void read_dynamic(struct object *o, const ElfW(Dyn) *dyn)
{
	for (; dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			o->symtab = at(o, dyn->d_un.d_ptr);
			break;
		case DT_STRTAB:
			o->strtab = at(o, dyn->d_un.d_ptr);
			break;
		case DT_RELA:
			o->rela = at(o, dyn->d_un.d_ptr);
			break;
		case DT_RELASZ:
			o->n_rela = dyn->d_un.d_val / sizeof(*o->rela);
			break;
		case DT_JMPREL:
			o->jmprel = at(o, dyn->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			o->n_jmprel = dyn->d_un.d_val / sizeof(*o->jmprel);
			break;
		default:
			break;
		}
	}
}

static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *o = arg;
	const ElfW(Dyn) *dyn = NULL;

	(void)size;
	if (!holds(info, o->address))
		return 0;
	o->base = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *)(o->base + ph->p_vaddr);
		if (ph->p_type == PT_GNU_RELRO) {
			o->relro = o->base + ph->p_vaddr;
			o->relro_end = o->relro + ph->p_memsz;
		}
	}
	if (dyn)
		read_dynamic(o, dyn);
	return 1;
}

/* A slot in RELRO memory is made writable for the store and read-only again behind it. */
static void store_slot(const struct object *o, uintptr_t slot, verbs_fn fn)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)(slot & ~(page - 1));
	bool is_relro = slot >= o->relro && slot < o->relro_end;

	if (is_relro && mprotect(start, page, PROT_READ | PROT_WRITE))
		return;
	__atomic_store_n((verbs_fn *)slot, fn, __ATOMIC_RELEASE);
	if (is_relro)
		mprotect(start, page, PROT_READ);
}

static void patch(const struct object *o, const ElfW(Rela) *rel, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *name;

		if (!IS_GOT_RELOC(ELF64_R_TYPE(rel[i].r_info)))
			continue;
		name = o->strtab + o->symtab[ELF64_R_SYM(rel[i].r_info)].st_name;
		for (size_t h = 0; h < sizeof(hook_table) / sizeof(*hook_table); h++) {
			if (!strcmp(name, hook_table[h].name))
				store_slot(o, o->base + rel[i].r_offset, hook_table[h].fn);
		}
	}
}

static void install(void)
{
	struct object o = { .address = (uintptr_t)verbs_set_ops };

	if (!dl_iterate_phdr(find_object, &o) || !o.symtab || !o.strtab)
		return;
	patch(&o, o.jmprel, o.jmprel ? o.n_jmprel : 0);
	patch(&o, o.rela, o.rela ? o.n_rela : 0);
}

void uroce_hook_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
}
