/* Finds the unwind table entry (FDE) that covers a pc, in whatever module is loaded there. */
#ifndef MT_STACK_EHFRAME_H
#define MT_STACK_EHFRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stack/dwarf.h"

/* An FDE together with what its CIE says. Borrowed from the module's memory. */
struct mt_fde {
	struct mt_dwarf initial; /* instructions of the CIE */
	struct mt_dwarf code;    /* instructions of the FDE */
	uint64_t start, end;     /* pcs covered */
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra; /* number of the return address column */
	uint8_t pc_enc;
	bool signal; /* the kernel's trampoline: its caller was interrupted, it didn't call */
};

/* Working memory of a look-up, too large for the stack of a hook. */
struct mt_eh_scratch {
	struct mt_fde fde;   /* the result */
	uint64_t start, end; /* of the module */
	const uint8_t *hdr;  /* its .eh_frame_hdr, or NULL */
	uint64_t object[16]; /* a struct dl_find_object of glibc's */
	struct mt_dwarf d;
};

enum mt_eh { MT_EH_FOUND, MT_EH_UNCOVERED /* a module without an entry for pc */, MT_EH_NO_MODULE };

/* Constructor time: finds glibc's own look-up (2.35 or later) or lists the modules. */
void mt_ehframe_boot(void);

/* Async-signal-safe with glibc >= 2.35. With older ones a pc outside the known modules takes the loader's
 * short lock for its list (dl_iterate_phdr). */
enum mt_eh mt_ehframe_find(struct mt_eh_scratch *s, uint64_t pc);

/* Whether pc is in a module. Never takes a lock. */
bool mt_ehframe_in_module(struct mt_eh_scratch *s, uint64_t pc);

/* The same without working memory; true where that can't be told without a lock. */
bool mt_ehframe_may_be_module(uint64_t pc);

/* Whether pc is in a C library that has no tables, as musl. It calls main() and what threads begin with: these are the
 * outermost frames that can be known. */
bool mt_ehframe_in_bare_libc(uint64_t pc);

/* After a dlclose: forgets what was found in modules that have gone. */
void mt_ehframe_forget(void);

/* For tests: behave as with a glibc before 2.35. */
void mt_ehframe_pretend_old(void);

struct mt_tables;
void mt_ehframe_tables(struct mt_tables *t);

#endif
