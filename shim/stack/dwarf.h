/*
 * Reading the pieces of .eh_frame: integers, LEB128, encoded pointers. Reading past the end gives zeros and
 * stays at the end, so a damaged table ends a loop instead of leaving its memory.
 */
#ifndef MT_STACK_DWARF_H
#define MT_STACK_DWARF_H

#include <stdint.h>

struct mt_dwarf {
	const uint8_t *p, *end;
};

/* Encodings of pointers (DW_EH_PE_*): the low four bits are the format, the next three what it is relative to. */
enum {
	MT_PE_UDATA4 = 0x03,
	MT_PE_SDATA4 = 0x0b,
	MT_PE_PCREL = 0x10,
	MT_PE_DATAREL = 0x30,
	MT_PE_ALIGNED = 0x50,
	MT_PE_INDIRECT = 0x80,
	MT_PE_OMIT = 0xff,
};

static inline uint64_t mt_dwarf_uint(struct mt_dwarf *d, unsigned bytes)
{
	uint64_t v = 0;

	if ((uint64_t)(d->end - d->p) < bytes) {
		d->p = d->end;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)d->p[i] << (8 * i);
	d->p += bytes;
	return v;
}

static inline int64_t mt_dwarf_sint(struct mt_dwarf *d, unsigned bytes)
{
	unsigned unused = 64 - 8 * bytes;

	return (int64_t)(mt_dwarf_uint(d, bytes) << unused) >> unused;
}

/* The bits of a LEB128 number; *bits is how many were read, *last the byte that they end with. */
static inline uint64_t mt_dwarf_leb(struct mt_dwarf *d, unsigned *bits, uint8_t *last)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte = 0x80;

	for (; d->p < d->end && byte & 0x80; shift += 7) {
		byte = *d->p++;
		v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
	}
	*bits = shift;
	*last = byte;
	return v;
}

static inline uint64_t mt_dwarf_uleb(struct mt_dwarf *d)
{
	unsigned bits;
	uint8_t last;

	return mt_dwarf_leb(d, &bits, &last);
}

static inline int64_t mt_dwarf_sleb(struct mt_dwarf *d)
{
	unsigned bits;
	uint8_t last;
	uint64_t v = mt_dwarf_leb(d, &bits, &last);

	if (bits < 64 && last & 0x40)
		v |= ~0ull << bits;
	return (int64_t)v;
}

static inline void mt_dwarf_skip(struct mt_dwarf *d, uint64_t bytes)
{
	d->p = bytes < (uint64_t)(d->end - d->p) ? d->p + bytes : d->end;
}

static inline uint64_t mt_dwarf_plain(struct mt_dwarf *d, uint8_t enc)
{
	switch (enc & 0x0f) {
	case 0x0:
	case 0x4:
	case 0xc:
		return mt_dwarf_uint(d, 8);
	case 0x1:
		return mt_dwarf_uleb(d);
	case 0x2:
		return mt_dwarf_uint(d, 2);
	case 0x3:
		return mt_dwarf_uint(d, 4);
	case 0x9:
		return (uint64_t)mt_dwarf_sleb(d);
	case 0xa:
		return (uint64_t)mt_dwarf_sint(d, 2);
	case 0xb:
		return (uint64_t)mt_dwarf_sint(d, 4);
	default:
		d->p = d->end;
		return 0;
	}
}

/* An encoded pointer. Indirect ones (personality routines) are read past but not followed. */
static inline uint64_t mt_dwarf_pointer(struct mt_dwarf *d, uint8_t enc, const void *datarel)
{
	uint64_t base = 0, v;

	if (enc == MT_PE_OMIT)
		return 0;
	if ((enc & 0x70) == MT_PE_ALIGNED) {
		mt_dwarf_skip(d, -(uintptr_t)d->p & 7);
		return mt_dwarf_uint(d, 8);
	}
	if ((enc & 0x70) == MT_PE_PCREL)
		base = (uintptr_t)d->p;
	else if ((enc & 0x70) == MT_PE_DATAREL)
		base = (uintptr_t)datarel;
	v = mt_dwarf_plain(d, enc);
	return v ? base + v : 0;
}

#endif
