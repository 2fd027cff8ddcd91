#include "analyzer/symbols/module/stripped_code.h"

#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CODE    (64u << 20) /* larger modules are not read through for it */
#define MOST_CHAIN   8           /* a part of a part; from _dl_init to _dl_open */
#define FEWEST_JUMPS 2           /* into what begins like a function: one may be bytes that only look like a jump */
#define NO_RANGE     UINT32_MAX

enum ref_kind { REF_JUMP, REF_CALL, REF_ADDRESS };

/* What the code of one range says of an address in another. */
struct ref {
	uint64_t to;
	uint32_t range : 30;
	enum ref_kind kind : 2;
};

struct symbol_parts {
	Dwfl_Module *module;
	struct symbol_table *table;
	uint64_t bias; /* of libdwfl's addresses */
	int machine;
	const char *file;
	size_t size;
	const uint8_t *code; /* of the executable segment */
	uint64_t start, end; /* where that is */
	uint64_t *starts;    /* of the ranges of .eh_frame, sorted; each ends where the next one begins */
	uint32_t count;
	struct ref *refs; /* sorted by `to`; all others than jumps of the loader alone */
	size_t ref_count, ref_room;
	uint32_t *sources; /* scratch */
	size_t source_room;
	struct {
		uint32_t range;
		const char *name;
	} known[3];
	unsigned known_count;
};

/* ---- what the file says --------------------------------------------------------------------------------- */

static int32_t int32_at(const uint8_t *p)
{
	int32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* The sorted table of .eh_frame_hdr; all linkers write it in this encoding. */
static bool read_ranges(struct symbol_parts *p, const uint8_t *hdr, uint64_t address, size_t bytes)
{
	static const uint8_t head[] = { 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
					DW_EH_PE_datarel | DW_EH_PE_sdata4 };
	if (bytes < 12 || memcmp(hdr, head, sizeof(head)))
		return false;
	uint32_t count = (uint32_t)int32_at(hdr + 8);
	if (count > (bytes - 12) / 8 || count >= 1u << 30)
		return false;
	p->starts = vec_calloc(count + 1ul, sizeof(*p->starts));
	for (uint32_t i = 0; p->starts && i < count; i++) {
		p->starts[i] = address + (uint64_t)(int64_t)int32_at(hdr + 12 + 8ul * i);
		if (i && p->starts[i] < p->starts[i - 1])
			return false;
	}
	p->count = p->starts ? count : 0;
	return p->count > 0;
}

/* The code, and the ranges of it. */
static bool read_file(struct symbol_parts *p, Elf *elf, const GElf_Ehdr *head)
{
	size_t count, hdr_bytes = 0;
	const uint8_t *hdr = NULL;
	uint64_t hdr_address = 0;
	GElf_Phdr ph;
	p->file = elf_rawfile(elf, &p->size);
	if (!p->file || elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &ph); i++) {
		if (ph.p_offset > p->size || ph.p_filesz > p->size - ph.p_offset)
			continue;
		if (ph.p_type == PT_GNU_EH_FRAME) {
			hdr = (const uint8_t *)p->file + ph.p_offset;
			hdr_address = ph.p_vaddr;
			hdr_bytes = ph.p_filesz;
		}
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X && ph.p_filesz > p->end - p->start) {
			p->code = (const uint8_t *)p->file + ph.p_offset;
			p->start = ph.p_vaddr;
			p->end = ph.p_vaddr + ph.p_filesz;
		}
	}
	p->machine = head->e_machine;
	return hdr && p->end - p->start <= MOST_CODE && read_ranges(p, hdr, hdr_address, hdr_bytes);
}

static uint32_t range_of(const struct symbol_parts *p, uint64_t address)
{
	const uint32_t low = SEARCH_FIRST(i, p->count, p->starts[i] > address);
	return low && address < p->end ? low - 1 : NO_RANGE;
}

static uint64_t end_of(const struct symbol_parts *p, uint32_t range)
{
	return range + 1 < p->count ? p->starts[range + 1] : p->end;
}

/* ---- what the code says --------------------------------------------------------------------------------- */

/* Of x86-64 instructions lie at any byte, so that others can look like one of these. */
static bool decode_x86(const uint8_t *at, size_t left, uint64_t pc, struct ref *r)
{
	size_t length;
	if (left < 7)
		return false;
	if (at[0] == 0xe9 || at[0] == 0xe8) {
		r->kind = at[0] == 0xe9 ? REF_JUMP : REF_CALL;
		length = 5;
	} else if (at[0] == 0x0f && (at[1] & 0xf0) == 0x80) {
		r->kind = REF_JUMP;
		length = 6;
	} else if (at[0] == 0x8d && (at[1] & 0xc7) == 0x05) {
		r->kind = REF_ADDRESS;
		length = 6;
	} else {
		return false;
	}
	r->to = pc + length + (uint64_t)(int64_t)int32_at(at + length - 4);
	return true;
}

static uint64_t words(uint32_t field, unsigned bits)
{
	return (uint64_t)((int64_t)((uint64_t)field << (64 - bits)) >> (64 - bits)) * 4;
}

/* b, bl, b.cond, cbz and cbnz; adrp where an add of its register follows. */
static bool decode_arm(const uint8_t *at, size_t left, uint64_t pc, struct ref *r)
{
	uint32_t w = (uint32_t)int32_at(at);
	r->kind = REF_JUMP;
	if ((w & 0x7c000000) == 0x14000000) {
		r->to = pc + words(w & 0x3ffffff, 26);
		r->kind = w >> 31 ? REF_CALL : REF_JUMP;
		return true;
	}
	if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
		r->to = pc + words(w >> 5 & 0x7ffff, 19);
		return true;
	}
	if ((w & 0x9f000000) != 0x90000000)
		return false;
	uint64_t page = (pc & ~0xfffull) + (words((w >> 5 & 0x7ffff) << 2 | (w >> 29 & 3), 21) << 10);
	for (size_t i = 4; i <= 16 && i + 4 <= left; i += 4) {
		uint32_t add = (uint32_t)int32_at(at + i);
		if ((add & 0xffc00000) == 0x91000000 && (add >> 5 & 31) == (w & 31)) {
			r->to = page + (add >> 10 & 0xfff);
			r->kind = REF_ADDRESS;
			return true;
		}
	}
	return false;
}

static bool decode(const struct symbol_parts *p, uint64_t pc, struct ref *r)
{
	const uint8_t *at = p->code + (pc - p->start);
	return p->machine == EM_X86_64 ? decode_x86(at, p->end - pc, pc, r) : decode_arm(at, p->end - pc, pc, r);
}

static int by_target(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;
	return (x->to > y->to) - (x->to < y->to);
}

static bool read_code(struct symbol_parts *p, bool all)
{
	uint64_t width = p->machine == EM_X86_64 ? 1 : 4, end = 0;
	uint32_t range = 0;
	for (uint64_t pc = p->starts[0] > p->start ? p->starts[0] : p->start; pc + 4 <= p->end; pc += width) {
		struct ref r;
		while (range + 1 < p->count && p->starts[range + 1] <= pc)
			range++;
		end = end_of(p, range);
		if (!decode(p, pc, &r) || (r.kind != REF_JUMP && !all) || r.to < p->start || r.to >= p->end ||
		    (r.to >= p->starts[range] && r.to < end))
			continue;
		r.range = range;
		if (vec_reserve_raw(p->refs, p->ref_room, p->ref_count + 1))
			return false;
		p->refs[p->ref_count++] = r;
	}
	if (p->ref_count)
		qsort(p->refs, p->ref_count, sizeof(*p->refs), by_target);
	return true;
}

/* The first one to this address or behind it. */
static size_t refs_from(const struct symbol_parts *p, uint64_t address)
{
	return SEARCH_FIRST(i, p->ref_count, p->refs[i].to >= address);
}

/* ---- the loader ----------------------------------------------------------------------------------------- */

static bool is_loader(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-2.", 5) || !strncmp(name, "ld64.so", 7) ||
	       !strncmp(name, "ld.so", 5);
}

static void know(struct symbol_parts *p, uint32_t range, const char *name)
{
	p->known[p->known_count].range = range;
	p->known[p->known_count++].name = name;
}

/* What alone leads to a range, other than `not`; NO_RANGE if nothing does, or several. */
static uint32_t leads_to(const struct symbol_parts *p, uint32_t range, uint32_t not)
{
	uint32_t source = NO_RANGE;
	for (size_t i = refs_from(p, p->starts[range]); i < p->ref_count && p->refs[i].to == p->starts[range]; i++) {
		if (p->refs[i].range == not|| p->refs[i].range == source)
			continue;
		if (source != NO_RANGE)
			return NO_RANGE;
		source = p->refs[i].range;
	}
	return source;
}

/* A relocation, or the place that one applies to, holds the address. */
static bool is_pointed_to(const struct symbol_parts *p, uint64_t address)
{
	for (size_t i = 0; i + sizeof(address) <= p->size; i += sizeof(address))
		if (memcmp(p->file + i, &address, sizeof(address)) == 0)
			return true;
	return false;
}

/* _dl_init is reached from _dl_open, too, which libc calls through a pointer. */
static void read_dlopen(struct symbol_parts *p, uint32_t entry, uint32_t init)
{
	uint32_t at = init;
	for (unsigned i = 0; i < MOST_CHAIN && (at = leads_to(p, at, entry)) != NO_RANGE; i++)
		if (is_pointed_to(p, p->starts[at])) {
			know(p, at, "_dl_open");
			return;
		}
}

/* _start: call _dl_start; ...; call _dl_init; take the address of _dl_fini; jump to the program. */
static void read_entry(struct symbol_parts *p, uint64_t entry)
{
	uint32_t calls = 0, init = NO_RANGE, range;
	struct ref r;
	for (uint64_t pc = entry; pc < entry + 256 && pc + 4 <= p->end; pc += p->machine == EM_X86_64 ? 1 : 4) {
		if (pc < p->start || !decode(p, pc, &r))
			continue;
		range = range_of(p, r.to);
		if (range == NO_RANGE || p->starts[range] != r.to)
			continue;
		calls += r.kind == REF_CALL;
		if (r.kind == REF_CALL && calls == 2)
			know(p, init = range, "_dl_init");
		if (r.kind == REF_ADDRESS && init != NO_RANGE) {
			know(p, range, "_dl_fini");
			break;
		}
	}
	if (init != NO_RANGE)
		read_dlopen(p, range_of(p, entry), init);
}

/* ---- asking --------------------------------------------------------------------------------------------- */

struct symbol_parts *stripped_code_new(Dwfl_Module *module, struct symbol_table *table, const char *path)
{
	struct symbol_parts *p = calloc(1, sizeof(*p));
	Elf *elf = p ? dwfl_module_getelf(module, &p->bias) : NULL;
	GElf_Ehdr head;
	if (!p)
		return NULL;
	p->module = module;
	p->table = table;
	if (elf && gelf_getehdr(elf, &head) && (head.e_machine == EM_X86_64 || head.e_machine == EM_AARCH64) &&
	    read_file(p, elf, &head) && read_code(p, is_loader(path)) && is_loader(path))
		read_entry(p, head.e_entry);
	return p;
}

void stripped_code_free(struct symbol_parts *p)
{
	if (!p)
		return;
	free(p->starts);
	free(p->refs);
	free(p->sources);
	free(p);
}

/* A function begins with nothing on the stack but its return address; a part of one mostly doesn't. */
static bool begins_like_a_function(const struct symbol_parts *p, uint32_t range)
{
	GElf_Addr bias;
	Dwarf_CFI *cfi = dwfl_module_eh_cfi(p->module, &bias);
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops;
	size_t count;
	if (!cfi || dwarf_cfi_addrframe(cfi, p->starts[range] + p->bias - bias, &frame))
		return true;
	bool x86 = p->machine == EM_X86_64;
	bool plain = dwarf_frame_cfa(frame, &ops, &count) || count != 1 ||
		     (ops[0].atom == (x86 ? DW_OP_breg7 : DW_OP_breg31) && ops[0].number == (x86 ? 8 : 0));
	free(frame);
	return plain;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The number that is there most often; *times says how often. */
static uint32_t most_frequent(uint32_t *list, size_t count, size_t *times)
{
	uint32_t most = NO_RANGE;
	*times = 0;
	if (count)
		qsort(list, count, sizeof(*list), by_number);
	for (size_t i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count && list[i + n] == list[i]; n++)
			;
		if (n > *times) {
			*times = n;
			most = list[i];
		}
	}
	return most;
}

/* The range that this one is a part of. A jump to the beginning of a function may be a call, one behind it is none. */
static uint32_t owner_of(struct symbol_parts *p, uint32_t range)
{
	bool function = begins_like_a_function(p, range);
	size_t count = 0, times;
	for (size_t i = refs_from(p, p->starts[range] + function); i < p->ref_count && p->refs[i].to < end_of(p, range);
	     i++) {
		if (p->refs[i].kind != REF_JUMP)
			continue;
		if (vec_reserve_raw(p->sources, p->source_room, count + 1))
			return NO_RANGE;
		p->sources[count++] = p->refs[i].range;
	}
	uint32_t owner = most_frequent(p->sources, count, &times);
	return function && times < FEWEST_JUMPS ? NO_RANGE : owner;
}

static const char *name_of(const struct symbol_parts *p, uint32_t range)
{
	const void **kept;
	for (unsigned i = 0; i < p->known_count; i++)
		if (p->known[i].range == range)
			return p->known[i].name;
	return symbol_table_find(p->table, p->starts[range] + p->bias, &kept);
}

const char *stripped_code_find(struct symbol_parts *p, uint64_t address)
{
	uint32_t range = p->ref_count && address - p->bias >= p->start ? range_of(p, address - p->bias) : NO_RANGE;
	const char *name = NULL;
	for (unsigned i = 0; i < MOST_CHAIN && range != NO_RANGE && !(name = name_of(p, range)); i++)
		range = owner_of(p, range);
	return name;
}
