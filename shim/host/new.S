/* Entries of operator new and delete; see new.h. Each jumps to where its word of mt_new_to leads: to mt_new_find at first, which then says
 * where to, for the call at hand or for good. */
#include "shim/arch/jump.h"

	.pushsection .data.rel.local, "aw", %progbits
	.balign 8
	.globl mt_new_to
	.hidden mt_new_to
mt_new_to:
	.popsection

	.set row, 0

FUNCTION(first)
	save
	first_arguments
	CALL mt_new_find
	restore
	JUMP RESULT
END(first)
	.hidden first

/* The same entry under two names, as a symbol has one version. */
#define NEW(symbol, version, name, params, args) ENTRY(symbol, mt_new_##symbol, mt_new_plain_##symbol, mt_new_first_##symbol, version)
#define DELETE NEW
#define ENTRY(symbol, entry, plain, find, version)              \
	.globl plain; .type plain, %function; plain: ;          \
	FUNCTION(entry); go; END(entry);                        \
	.size plain, . - plain;                                 \
	find: first_go;                                         \
	.symver entry, symbol@version;                          \
	.symver plain, symbol@MEMTRACE_HOOKS;                   \
	.pushsection .data.rel.local, "aw", %progbits;          \
	.quad find;                                             \
	.popsection;                                            \
	.set row, row + 1;
#include "shim/hooks/hooks_new.def"
