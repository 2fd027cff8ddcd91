/*
 * Entries of operator new and delete, as new.S has them, but for what C can't do: these call where those jump. An
 * exception passes through them, since they have unwind tables, and their frames don't show (stack.c).
 */
#include "shim/hooks/hooks.h"
#include "shim/host/new.h"

void *mt_new_to[MT_NEW_ROWS];

#define TO(symbol, caller) \
	void *to = __atomic_load_n(&mt_new_to[MT_NEW_ROW_##symbol], __ATOMIC_ACQUIRE); \
	if (!to) \
	to = mt_new_find(MT_NEW_ROW_##symbol, caller)
/* The same entry under two names, as a symbol has one version. */
#define NAMES(type, symbol, version, params) \
	extern MT_EXPORT type mt_new_plain_##symbol params __attribute__((alias("mt_new_" #symbol))); \
	__asm__(".symver mt_new_" #symbol ", " #symbol "@" #version); \
	__asm__(".symver mt_new_plain_" #symbol ", " #symbol "@MEMTRACE_HOOKS");
#define NEW(symbol, version, name, params, args) \
	extern MT_EXPORT void *mt_new_##symbol params; \
	void *mt_new_##symbol params \
	{ \
		TO(symbol, MT_CALLER); \
		return ((void *(*)params)(uintptr_t)to)args; \
	} \
	NAMES(void *, symbol, version, params)
#define DELETE(symbol, version, name, params, args) \
	extern MT_EXPORT void mt_new_##symbol params; \
	void mt_new_##symbol params \
	{ \
		TO(symbol, MT_CALLER); \
		((void(*) params)(uintptr_t)to) args; \
	} \
	NAMES(void, symbol, version, params)
#include "shim/hooks/hooks_new.def"
